//! Robustness suite: bad clients, huge requests and exhausted limits get a clear error or a closed connection, and other clients are not harmed.

mod clients;
mod lifecycle;
mod limits;
mod sizes;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pantala_tests::resp::Conn;
use pantala_tests::server::Server;

/// An ordinary client that works while something bad happens beside it. It fails the test if a reply is wrong or does not come, and tells how long
/// the slowest took.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Duration>>,
}

impl Bystander {
    /// Starts to work.
    pub fn start(server: &Server) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut conn, ended) = (server.conn(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut slowest = Duration::ZERO;
            let mut count = 0u64;
            while !ended.load(Ordering::Relaxed) {
                count += 1;
                let start = Instant::now();
                assert_eq!(conn.cmd(&format!("SET bystander {count}")).text(), "OK");
                assert_eq!(conn.cmd("GET bystander").text(), count.to_string());
                slowest = slowest.max(start.elapsed());
                std::thread::sleep(Duration::from_millis(2));
            }
            assert!(count > 0);
            slowest
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Ends the work; how long the slowest pair of commands took.
    pub fn stop(mut self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("stopped once");
        thread.join().expect("an ordinary client was harmed")
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Waits until `condition` holds, for at most ten seconds.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < end, "waited 10 s in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One field of `INFO`.
pub fn info(conn: &mut Conn, field: &str) -> String {
    let text = conn.cmd("INFO").text();
    let prefix = format!("{field}:");
    text.lines()
        .find_map(|line| line.strip_prefix(&prefix))
        .unwrap_or_default()
        .trim()
        .to_owned()
}
