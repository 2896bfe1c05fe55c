//! A worker's mailbox: any thread puts in, the worker takes out all at once. The queue holds what the senders put
//! there; how much that may be is their business. The reactor itself sends only connections (bounded by the limit of
//! clients) and the order to stop.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bell::{Bell, WakeHandle};
use crate::conn::Origin;

/// What a worker may find in its mailbox.
pub(crate) enum Envelope<M> {
    Mail(M),
    Connection(OwnedFd, Box<Origin>),
    Stop,
}

/// One worker's mailbox.
pub(crate) struct Mailbox<M> {
    queue: Mutex<Queue<M>>,
    bell: Arc<Bell>,
}

struct Queue<M> {
    items: Vec<Envelope<M>>,
    /// The worker has ended: what is sent now is dropped.
    closed: bool,
}

impl<M> Mailbox<M> {
    pub fn new(bell: Arc<Bell>) -> Self {
        Self {
            queue: Mutex::new(Queue {
                items: Vec::new(),
                closed: false,
            }),
            bell,
        }
    }

    pub fn put(&self, item: Envelope<M>) {
        if self.lay(item) {
            self.bell.wake();
        }
    }

    /// Puts in without waking the worker. False: the worker has ended.
    pub fn lay(&self, item: Envelope<M>) -> bool {
        let mut queue = self.lock();
        if queue.closed {
            drop(queue);
            drop(item);
            return false;
        }
        queue.items.push(item);
        true
    }

    /// Moves what is there into `into`, which must be empty; the two vectors change places, so steady traffic
    /// allocates nothing. A vector that grew in a burst is given up.
    pub fn take(&self, into: &mut Vec<Envelope<M>>) {
        const KEPT_CAPACITY: usize = 4096;
        debug_assert!(into.is_empty());
        if into.capacity() > KEPT_CAPACITY {
            *into = Vec::new();
        }
        std::mem::swap(&mut self.lock().items, into);
    }

    /// Refuses mail from now on and drops what is there.
    pub fn close(&self) {
        let items = {
            let mut queue = self.lock();
            queue.closed = true;
            std::mem::take(&mut queue.items)
        };
        drop(items);
    }

    /// The lock is only held for a push or a swap, neither of which can leave the queue half-changed.
    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle to all workers: sends mail, wakes, stops. Cheap to clone.
pub struct Remote<M> {
    pub(crate) boxes: Arc<[Mailbox<M>]>,
    pub(crate) wake: WakeHandle,
}

impl<M> Clone for Remote<M> {
    fn clone(&self) -> Self {
        Self {
            boxes: self.boxes.clone(),
            wake: self.wake.clone(),
        }
    }
}

impl<M: Send + 'static> Remote<M> {
    /// Delivers `mail` to a worker, in the order of sending, within its next turn. Mail for a worker that has
    /// stopped, or that does not exist, is dropped.
    pub fn send(&self, worker: usize, mail: M) {
        if let Some(mailbox) = self.boxes.get(worker) {
            mailbox.put(Envelope::Mail(mail));
        }
    }

    /// Like [`send`](Self::send), but the worker may sleep on: the sender must [`wake`](Self::wake) it once it has sent all that it has
    /// to send. Many letters then cost one wake, and the worker finds them together.
    pub fn send_quietly(&self, worker: usize, mail: M) {
        if let Some(mailbox) = self.boxes.get(worker) {
            mailbox.lay(Envelope::Mail(mail));
        }
    }

    /// Makes a worker start a turn soon. See [`WakeHandle::wake`].
    pub fn wake(&self, worker: usize) {
        self.wake.wake(worker);
    }

    /// The part of this handle that needs no type of mail.
    pub fn wake_handle(&self) -> WakeHandle {
        self.wake.clone()
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.boxes.len()
    }

    /// Asks every worker to leave its loop, as [`Io::stop`](crate::Io::stop) does.
    pub fn stop_all(&self) {
        for mailbox in self.boxes.iter() {
            mailbox.put(Envelope::Stop);
        }
    }
}
