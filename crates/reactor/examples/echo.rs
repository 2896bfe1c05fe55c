//! An echo server on both drivers, and a small load for it.
//!
//! ```text
//! echo serve ADDRESS [auto|uring|epoll] [WORKERS]      serve until killed
//! echo load [CONNECTIONS] [PIPELINE] [SECONDS]         measure both drivers, one worker each, within this process
//! ```
//! `load` reports messages per second and the processor time of the worker thread per message, from the kernel's
//! own account of that thread.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pantala_reactor::{
    Acceptor, AcceptorOptions, ConnId, Io, IoChoice, Listener, Next, Origin, Pool, PoolOptions,
    Service,
};

struct Echo;

impl Service for Echo {
    type Mail = ();
    fn opened(&mut self, _: &mut Io, _: ConnId, _: &Origin) {}
    fn received(&mut self, io: &mut Io, conn: ConnId, bytes: &[u8]) {
        io.out(conn).extend_from_slice(bytes);
        if io.out_len(conn) > Io::OUT_HIGH {
            io.pause(conn);
        }
    }
    fn ended(&mut self, io: &mut Io, conn: ConnId) {
        io.close_after_flush(conn);
    }
    fn closed(&mut self, _: &mut Io, _: ConnId) {}
    fn drained(&mut self, io: &mut Io, conn: ConnId) {
        io.resume(conn);
    }
    fn mail(&mut self, _: &mut Io, (): ()) {}
    fn timer(&mut self, _: &mut Io, _: u64) {}
    fn turn(&mut self, _: &mut Io) -> Next {
        Next::Wait
    }
}

type Failure = Box<dyn std::error::Error>;

fn start(
    address: SocketAddr,
    io: IoChoice,
    workers: usize,
) -> Result<(Pool<()>, Acceptor, SocketAddr), Failure> {
    let pool = Pool::start(
        PoolOptions {
            workers,
            io,
            ..PoolOptions::default()
        },
        |_, _| Echo,
    )?;
    let listener = Listener::tcp(0, address, 511)?;
    let bound = listener
        .local_addr()
        .ok_or("a TCP listener has an address")?;
    let acceptor = Acceptor::start(pool.intake(), AcceptorOptions::default())?;
    acceptor.add(listener);
    Ok((pool, acceptor, bound))
}

/// Nanoseconds on a processor of the thread with this name, as the kernel counts them.
fn thread_cpu_ns(name: &str) -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return 0;
    };
    for task in tasks.flatten() {
        let path = task.path();
        if std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name) {
            let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            return text
                .split(' ')
                .next()
                .and_then(|field| field.parse().ok())
                .unwrap_or(0);
        }
    }
    0
}

/// One client thread that keeps `connections` busy: writes a batch to each, then reads a batch from each.
fn client(
    address: SocketAddr,
    connections: usize,
    pipeline: usize,
    stop: &AtomicBool,
    count: &AtomicU64,
) -> Result<(), Failure> {
    let message = [b'x'; 40];
    let batch = message.repeat(pipeline);
    let mut answer = vec![0; batch.len()];
    let mut streams = (0..connections)
        .map(|_| TcpStream::connect(address))
        .collect::<Result<Vec<_>, _>>()?;
    for stream in &mut streams {
        stream.set_nodelay(true)?;
    }
    while !stop.load(Ordering::Relaxed) {
        for stream in &mut streams {
            stream.write_all(&batch)?;
        }
        for stream in &mut streams {
            stream.read_exact(&mut answer)?;
        }
        count.fetch_add((pipeline * connections) as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn load(connections: usize, pipeline: usize, seconds: f64) -> Result<(), Failure> {
    for io in [IoChoice::Uring, IoChoice::Epoll] {
        let (pool, acceptor, address) = start(SocketAddr::from(([127, 0, 0, 1], 0)), io, 1)?;
        let (stop, count) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (client_stop, client_count) = (stop.clone(), count.clone());
        let thread = std::thread::spawn(move || {
            client(address, connections, pipeline, &client_stop, &client_count)
                .map_err(|error| error.to_string())
        });
        std::thread::sleep(Duration::from_millis(300));
        let (start, before, cpu) = (
            Instant::now(),
            count.load(Ordering::Relaxed),
            thread_cpu_ns("worker-0"),
        );
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let (messages, cpu) = (
            count.load(Ordering::Relaxed) - before,
            thread_cpu_ns("worker-0") - cpu,
        );
        let rate = messages as f64 / start.elapsed().as_secs_f64();
        println!(
            "{:9} {connections:5} connections, pipeline {pipeline:3}: {rate:9.0} messages/s, {:6.3} us of worker per message",
            pool.driver_report().0.name(),
            cpu as f64 / messages.max(1) as f64 / 1000.0
        );
        stop.store(true, Ordering::Relaxed);
        thread.join().map_err(|_| "the client panicked")??;
        acceptor.stop();
        pool.remote().stop_all();
        pool.join();
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |index: usize, default: &'static str| {
        arguments
            .get(index)
            .map_or(default, String::as_str)
            .to_owned()
    };
    match text(0, "").as_str() {
        "serve" => {
            let io = match text(2, "auto").as_str() {
                "uring" => IoChoice::Uring,
                "epoll" => IoChoice::Epoll,
                _ => IoChoice::Auto,
            };
            let (pool, _acceptor, address) = start(text(1, "127.0.0.1:7007").parse()?, io, text(3, "1").parse()?)?;
            println!("listening on {address}; {}", pool.driver_report().1);
            pool.join();
            Ok(())
        }
        "load" => load(text(1, "50").parse()?, text(2, "1").parse()?, text(3, "2").parse()?),
        _ => Err("usage: echo serve ADDRESS [auto|uring|epoll] [WORKERS] | echo load [CONNECTIONS] [PIPELINE] [SECONDS]".into()),
    }
}
