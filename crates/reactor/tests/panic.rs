//! A panic in a callback ends the process, with a message: tested in a child process.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use common::{Habit, Stage, both};
use pantala_reactor::IoChoice;

const DRIVER: &str = "REACTOR_PANIC_WITH";

#[test]
fn a_panic_ends_the_process() {
    if let Ok(driver) = std::env::var(DRIVER) {
        let io = if driver == "Uring" {
            IoChoice::Uring
        } else {
            IoChoice::Epoll
        };
        let stage = Stage::new(io, Habit::Report);
        stage.remote.send(0, Box::new(|_| panic!("for the test")));
        stage.pool.join();
        panic!("the worker ended without ending the process");
    }
    both(|io| {
        let output = Command::new(std::env::current_exe().expect("own path"))
            .args(["a_panic_ends_the_process", "--nocapture"])
            .env(DRIVER, format!("{io:?}"))
            .stdin(Stdio::null())
            .output()
            .expect("child runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.signal().is_some(),
            "{:?}: {text}",
            output.status
        );
        assert!(
            text.contains("for the test")
                && text.contains("thread worker-0 panicked; the process ends"),
            "{text}"
        );
    });
}
