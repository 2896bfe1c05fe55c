//! Finds out whether io_uring works here, by making a ring and trying every operation that the driver needs. Asking
//! for the kernel's version would not do: sandboxes forbid what the version promises.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use io_uring::types::Fd;
use io_uring::{cqueue, opcode};

use super::{Operation, Uring, tag, untag};
use crate::bell::Bell;
use crate::conn::ConnId;
use crate::uring::buffer_ring::GROUP;
use crate::worker::Patience;

/// Tries a ring. The error says what failed.
pub(crate) fn probe() -> Result<(), String> {
    let explain = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let bell = Arc::new(Bell::new().map_err(explain("eventfd"))?);
    let mut uring = Uring::new(bell.clone()).map_err(explain("io_uring_setup"))?;
    let (near, far) = UnixStream::pair().map_err(explain("socketpair"))?;
    let result =
        try_operations(&mut uring, &bell, &near, &far).map_err(explain("io_uring operations"));
    // The receive ends with its socket; the ring is dropped after it.
    drop(far);
    if result.is_ok() {
        while uring.outstanding > 0 {
            step(&mut uring).map_err(explain("io_uring_enter"))?;
            for done in std::mem::take(&mut uring.batch) {
                if untag(done.data).0 != Some(Operation::Bell) && !cqueue::more(done.flags) {
                    uring.outstanding -= 1;
                }
            }
        }
    } else {
        // The kernel may still hold the receive: its buffers are better leaked than freed.
        std::mem::forget(uring.buffers.take());
    }
    result
}

fn step(uring: &mut Uring) -> io::Result<()> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(1);
    uring.submit_and_wait(Patience::Until(deadline))?;
    uring.collect();
    if uring.batch.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "no completion within a second",
        ));
    }
    Ok(())
}

/// A multishot receive that delivers twice, a send, and the bell.
fn try_operations(
    uring: &mut Uring,
    bell: &Bell,
    near: &UnixStream,
    far: &UnixStream,
) -> io::Result<()> {
    static MESSAGE: [u8; 4] = *b"ping";
    let id = ConnId::new(0, 0);
    let receive = opcode::RecvMulti::new(Fd(near.as_raw_fd()), GROUP)
        .build()
        .user_data(tag(Operation::Receive, id));
    let send = opcode::Send::new(Fd(far.as_raw_fd()), MESSAGE.as_ptr(), MESSAGE.len() as u32)
        .flags(libc::MSG_NOSIGNAL)
        .build()
        .user_data(tag(Operation::Send, id));
    uring.outstanding += 2;
    uring.push(&receive)?;
    uring.push(&send)?;
    bell.ring();
    let (mut rang, mut sent, mut received, mut again) = (false, false, 0, false);
    while !(rang && sent && received == 2 * MESSAGE.len()) {
        step(uring)?;
        for done in std::mem::take(&mut uring.batch) {
            let (operation, _) = untag(done.data);
            if done.result < 0 {
                return Err(io::Error::from_raw_os_error(-done.result));
            }
            match operation {
                Some(Operation::Bell) => rang = true,
                Some(Operation::Send) => {
                    sent = true;
                    uring.outstanding -= 1;
                }
                Some(Operation::Receive) => {
                    if !cqueue::more(done.flags) {
                        return Err(io::Error::new(
                            io::ErrorKind::Unsupported,
                            "receive is not multishot",
                        ));
                    }
                    received += done.result as usize;
                    uring.return_buffer(cqueue::buffer_select(done.flags));
                }
                _ => {}
            }
        }
        if sent && !again && received >= MESSAGE.len() {
            again = true;
            (&*far).write_all(&MESSAGE)?;
        }
    }
    Ok(())
}
