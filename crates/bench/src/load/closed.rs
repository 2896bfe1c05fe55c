//! The closed loop: each connection sends a batch, waits for all its replies, and sends the next. It finds the highest
//! throughput; its latencies are those of a client that slows down with the server, so the open loop is the one to judge tails by.

use super::worker::{NAP, Phase, Worker};
use std::io;
use std::time::Instant;

/// Runs until the end of the measured part, or until every sweep is done.
///
/// # Errors
/// A connection failed, or replies did not come.
pub fn run(worker: &mut Worker<'_>, pipeline: usize) -> io::Result<()> {
    for number in 0..worker.connections.len() {
        send_batch(worker, number, pipeline, Instant::now())?;
    }
    let mut active = true;
    while active {
        let phase = worker.observe_phase();
        worker.poll(NAP.as_millis() as u8, |worker, number, done| {
            let now = Instant::now();
            let sent_at = worker.connections[number].sent_at;
            worker.record(now.saturating_duration_since(sent_at), done);
            if worker.connections[number].outstanding == 0 && phase != Phase::Drain {
                send_batch(worker, number, pipeline, now)?;
            }
            Ok(())
        })?;
        active = phase != Phase::Drain || worker.still_draining()?;
    }
    Ok(())
}

/// Runs until every connection's sweep is done.
///
/// # Errors
/// A connection failed, or replies did not come.
pub fn sweep(worker: &mut Worker<'_>, pipeline: usize) -> io::Result<()> {
    let mut active = 0usize;
    for number in 0..worker.connections.len() {
        active += usize::from(send_batch(worker, number, pipeline, Instant::now())?);
    }
    while active > 0 {
        if worker.observe_phase() == Phase::Drain && !worker.still_draining()? {
            break;
        }
        worker.poll(NAP.as_millis() as u8, |worker, number, _| {
            if worker.connections[number].outstanding == 0
                && !send_batch(worker, number, pipeline, Instant::now())?
            {
                active -= 1;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Sends the next batch of a connection; `false` when there is nothing more to send.
fn send_batch(
    worker: &mut Worker<'_>,
    number: usize,
    pipeline: usize,
    now: Instant,
) -> io::Result<bool> {
    let count = (0..pipeline).take_while(|_| worker.enqueue(number)).count();
    if count == 0 {
        return Ok(false);
    }
    worker.connections[number].sent_at = now;
    worker.flush(number)?;
    Ok(true)
}
