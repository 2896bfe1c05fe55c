//! The worker threads: which driver they use, how they start and end, and how connections are given to them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::bell::{Bell, WakeHandle};
use crate::conn::Origin;
use crate::epoll::Epoll;
use crate::io::{Io, Service};
use crate::mailbox::{Envelope, Mailbox, Remote};
use crate::sys;
use crate::uring::{self, Uring};
use crate::worker::{Backend, Worker};

/// A kind of driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Driver {
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
}

impl Driver {
    /// `io_uring` or `epoll`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}

/// Which driver is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoChoice {
    /// io_uring where it works, else epoll.
    #[default]
    Auto,
    /// io_uring, or fail.
    Uring,
    /// epoll.
    Epoll,
}

/// How a pool is made.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Number of worker threads, at least 1.
    pub workers: usize,
    /// Which driver.
    pub io: IoChoice,
    /// Bind each worker to a processor of its own, as far as there are enough.
    pub pin: bool,
    /// Connections of all workers together, beyond which the acceptor refuses. May change at run time.
    pub max_clients: Arc<AtomicUsize>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            io: IoChoice::Auto,
            pin: false,
            max_clients: Arc::new(AtomicUsize::new(10_000)),
        }
    }
}

/// The worker threads, for mail of type `M`. Dropping the pool does not stop them; see [`Remote::stop_all`] and
/// [`Pool::join`].
pub struct Pool<M> {
    remote: Remote<M>,
    intake: Intake,
    driver: Driver,
    reason: String,
    threads: Vec<JoinHandle<()>>,
}

impl<M: Send + 'static> Pool<M> {
    /// Probes the driver, starts the workers, and makes each one's service on its own thread with `make`. Returns
    /// when all run. Errors: the wanted driver does not work, or the system gives no thread or descriptor; workers
    /// that had started are stopped then.
    pub fn start<S, F>(options: PoolOptions, make: F) -> io::Result<Self>
    where
        S: Service<Mail = M> + 'static,
        F: Fn(usize, Remote<M>) -> S + Send + Sync + 'static,
    {
        let (driver, reason) = choose(options.io, uring::probe)?;
        let make = Arc::new(make);
        match Self::launch(&options, driver, reason, make.clone()) {
            // One ring works but not one for each worker (a limit on locked memory, on older kernels).
            Err(error) if options.io == IoChoice::Auto && driver == Driver::Uring => Self::launch(
                &options,
                Driver::Epoll,
                format!("epoll: a worker's ring: {error}"),
                make,
            ),
            result => result,
        }
    }

    /// Starts the workers with one kind of driver, or none at all.
    fn launch<S, F>(
        options: &PoolOptions,
        driver: Driver,
        reason: String,
        make: Arc<F>,
    ) -> io::Result<Self>
    where
        S: Service<Mail = M> + 'static,
        F: Fn(usize, Remote<M>) -> S + Send + Sync + 'static,
    {
        let workers = options.workers.max(1);
        let bells = (0..workers)
            .map(|_| Bell::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()?;
        let boxes: Arc<[Mailbox<M>]> = bells
            .iter()
            .map(|bell| Mailbox::new(bell.clone()))
            .collect();
        let load: Arc<[AtomicUsize]> = (0..workers).map(|_| AtomicUsize::new(0)).collect();
        let remote = Remote {
            boxes: boxes.clone(),
            wake: WakeHandle {
                bells: bells.into(),
            },
        };
        let intake = Intake {
            place: Arc::new(boxes),
            load,
            max_clients: options.max_clients.clone(),
        };
        let mut pool = Self {
            remote,
            intake,
            driver,
            reason,
            threads: Vec::with_capacity(workers),
        };
        match pool.spawn(workers, options.pin, &make) {
            Ok(()) => Ok(pool),
            Err(error) => {
                pool.remote.stop_all();
                pool.join();
                Err(error)
            }
        }
    }

    fn spawn<S, F>(&mut self, workers: usize, pin: bool, make: &Arc<F>) -> io::Result<()>
    where
        S: Service<Mail = M> + 'static,
        F: Fn(usize, Remote<M>) -> S + Send + Sync + 'static,
    {
        let cpus = if pin { sys::allowed_cpus() } else { Vec::new() };
        let (report, reports) = channel();
        for number in 0..workers {
            let seat = Seat {
                number,
                cpu: (cpus.len() >= workers).then(|| cpus[number]),
                remote: self.remote.clone(),
                load: self.intake.load.clone(),
                report: report.clone(),
            };
            let make = make.clone();
            let driver = self.driver;
            let thread = std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || {
                    let _guard = AbortOnPanic;
                    seat.run(driver, &*make);
                })?;
            self.threads.push(thread);
        }
        drop(report);
        for _ in 0..workers {
            reports
                .recv()
                .map_err(|_| io::Error::other("a worker ended before it started"))??;
        }
        Ok(())
    }

    /// A handle to the workers.
    pub fn remote(&self) -> Remote<M> {
        self.remote.clone()
    }

    /// Where connections are handed in.
    pub fn intake(&self) -> Intake {
        self.intake.clone()
    }

    /// Which driver runs, and why: `io_uring: kernel allows it`, or `epoll: ` and what failed.
    pub fn driver_report(&self) -> (Driver, String) {
        (self.driver, self.reason.clone())
    }

    /// Waits until every worker has stopped.
    pub fn join(self) {
        for thread in self.threads {
            // A panic has aborted the process, so there is no error to see here.
            let _ = thread.join();
        }
    }
}

/// Chooses the driver by trying it.
fn choose(
    choice: IoChoice,
    probe: impl FnOnce() -> Result<(), String>,
) -> io::Result<(Driver, String)> {
    if choice == IoChoice::Epoll {
        return Ok((Driver::Epoll, "epoll: chosen by configuration".to_owned()));
    }
    match probe() {
        Ok(()) if choice == IoChoice::Uring => Ok((
            Driver::Uring,
            "io_uring: chosen by configuration".to_owned(),
        )),
        Ok(()) => Ok((Driver::Uring, "io_uring: kernel allows it".to_owned())),
        Err(why) if choice == IoChoice::Auto => Ok((Driver::Epoll, format!("epoll: {why}"))),
        Err(why) => Err(io::Error::new(io::ErrorKind::Unsupported, why)),
    }
}

/// What a worker's thread is given.
struct Seat<M> {
    number: usize,
    cpu: Option<usize>,
    remote: Remote<M>,
    load: Arc<[AtomicUsize]>,
    report: Sender<io::Result<()>>,
}

impl<M: Send + 'static> Seat<M> {
    fn run<S: Service<Mail = M>>(self, driver: Driver, make: &impl Fn(usize, Remote<M>) -> S) {
        if let Some(cpu) = self.cpu {
            // Pinning is a wish: a processor may have been taken away meanwhile.
            let _ = sys::pin_to(cpu);
        }
        let bell = self.remote.wake.bells[self.number].clone();
        match driver {
            Driver::Uring => self.work(driver, Uring::new(bell), make),
            Driver::Epoll => self.work(driver, Epoll::new(&bell), make),
        }
    }

    fn work<S: Service<Mail = M>, B: Backend>(
        self,
        driver: Driver,
        backend: io::Result<B>,
        make: &impl Fn(usize, Remote<M>) -> S,
    ) {
        let backend = match backend {
            Ok(backend) => backend,
            Err(error) => {
                let _ = self.report.send(Err(error));
                return;
            }
        };
        let worker = Worker {
            io: Io::new(self.number, driver),
            backend,
            service: make(self.number, self.remote.clone()),
            mailbox: self.remote.boxes.clone(),
            bell: self.remote.wake.bells[self.number].clone(),
            load: self.load,
        };
        let _ = self.report.send(Ok(()));
        drop(self.report);
        if let Err(error) = worker.run() {
            // The connections of this worker can be served no more, and others may wait for it.
            panic!("worker {}: {} failed: {error}", self.number, driver.name());
        }
    }
}

/// Ends the process when its thread unwinds: see "Panics" in the crate's text.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            eprintln!(
                "thread {} panicked; the process ends",
                thread.name().unwrap_or("?")
            );
            std::process::abort();
        }
    }
}

/// Gives connections to workers. Cheap to clone; knows nothing of mail.
#[derive(Clone)]
pub struct Intake {
    place: Arc<dyn Place>,
    load: Arc<[AtomicUsize]>,
    max_clients: Arc<AtomicUsize>,
}

impl Intake {
    /// Gives a connected, blocking stream socket to the worker with the fewest connections. The limit of clients is
    /// not looked at: that is the acceptor's business. Returns the worker.
    pub fn place(&self, fd: OwnedFd, origin: Origin) -> usize {
        let worker = self.least_loaded();
        self.load[worker].fetch_add(1, Ordering::AcqRel);
        self.place.place(worker, fd, Box::new(origin));
        worker
    }

    /// Connections of all workers, with those that were placed and are not open yet.
    pub fn connections(&self) -> usize {
        self.load
            .iter()
            .map(|load| load.load(Ordering::Acquire))
            .sum()
    }

    /// There are as many connections as the limit allows.
    pub fn is_full(&self) -> bool {
        self.connections() >= self.max_clients.load(Ordering::Relaxed)
    }

    fn least_loaded(&self) -> usize {
        let loads = self.load.iter().map(|load| load.load(Ordering::Acquire));
        loads
            .enumerate()
            .min_by_key(|&(_, load)| load)
            .map_or(0, |(worker, _)| worker)
    }
}

/// The mailboxes, without their type of mail.
trait Place: Send + Sync {
    fn place(&self, worker: usize, fd: OwnedFd, origin: Box<Origin>);
}

impl<M: Send + 'static> Place for Arc<[Mailbox<M>]> {
    fn place(&self, worker: usize, fd: OwnedFd, origin: Box<Origin>) {
        self[worker].put(Envelope::Connection(fd, origin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_falls_back_only_where_it_may() {
        let refused = || Err("io_uring_setup: Operation not permitted (os error 1)".to_owned());
        let (driver, reason) = choose(IoChoice::Auto, refused).expect("falls back");
        assert_eq!(driver, Driver::Epoll);
        assert_eq!(
            reason,
            "epoll: io_uring_setup: Operation not permitted (os error 1)"
        );
        let error = choose(IoChoice::Uring, refused).expect_err("was demanded");
        assert!(error.to_string().contains("not permitted"));
        assert_eq!(
            choose(IoChoice::Auto, || Ok(())).expect("works").0,
            Driver::Uring
        );
        let asked = choose(IoChoice::Epoll, || unreachable!("epoll needs no probe"));
        assert_eq!(asked.expect("works").0, Driver::Epoll);
    }
}
