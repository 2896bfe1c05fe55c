//! The claimant: the one command for whom newcomers step back. Commands compete for shards, and a command that needs many can lose
//! for ever against a stream of commands that need one. So after [`FAILURES_MAX`] failures it may become *the* claimant: it puts
//! its mark on its shards, and for at most [`CLAIM_US`] no other command may take a marked shard. Those who hold one finish, and
//! the claimant finds all of them free.
//!
//! There is one claim at a time, and it expires by the clock alone, so a claimant that went away harms nobody for longer. It must
//! never be a matter of safety: a mark that is lost or stale costs fairness, not exclusion.

use crate::{
    set::ShardId,
    sync::{AtomicU32, AtomicU64, Ordering, now_us},
    word::{TAG_CLAIM_MAX, TAG_SCRIPT},
};

/// Failures of one command after which it may claim.
pub const FAILURES_MAX: u32 = 8;

/// How long newcomers are refused for a claimant, in microseconds.
pub const CLAIM_US: u64 = 1_000;

const TAG_BITS: u32 = 7;

/// The tries of one command: keep it with the command while it is set aside, and give it to each try.
#[derive(Debug, Default)]
pub struct Attempt {
    failures: u32,
    claim: Option<Claim>,
}

impl Attempt {
    /// A command that has not tried yet.
    pub const fn new() -> Self {
        Self {
            failures: 0,
            claim: None,
        }
    }

    /// Failures since it began or since its last claim ran out.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether this command became the claimant (its claim may have run out since).
    pub fn is_claimant(&self) -> bool {
        self.claim.is_some()
    }

    /// A command that is about to claim, for the models.
    #[cfg(all(test, not(feature = "loom-model")))]
    pub(crate) fn failed_before(failures: u32) -> Self {
        Self {
            failures,
            claim: None,
        }
    }

    pub(crate) fn take_claim(&mut self) -> Option<Claim> {
        self.failures = 0;
        self.claim.take()
    }

    pub(crate) fn claim(&self) -> Option<Claim> {
        self.claim
    }
}

/// End in µs, shifted left by 7, and the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim(u64);

impl Claim {
    pub(crate) fn tag(self) -> u8 {
        (self.0 & ((1 << TAG_BITS) - 1)) as u8
    }

    fn until_us(self) -> u64 {
        self.0 >> TAG_BITS
    }

    /// The claim after this one: the next mark, so that marks left behind by this one are told apart from it.
    fn next(self, until_us: u64) -> Self {
        Self((until_us << TAG_BITS) | u64::from(self.tag() % TAG_CLAIM_MAX + 1))
    }

    fn over(self) -> Self {
        Self(u64::from(self.tag()))
    }
}

/// Who claims, and which shard the script waits for.
pub(crate) struct Claims {
    current: AtomicU64,
    /// 0, or the id of the shard for which the holder of the script lock waits, plus 1.
    script_wants: AtomicU32,
}

impl Claims {
    pub(crate) fn new() -> Self {
        Self {
            current: AtomicU64::new(0),
            script_wants: AtomicU32::new(0),
        }
    }

    /// Whether a mark found on a shard still keeps others out.
    pub(crate) fn keeps(&self, tag: u8, id: ShardId) -> bool {
        if tag == TAG_SCRIPT {
            return self.script_wants.load(Ordering::Acquire) == u32::from(id) + 1;
        }
        let current = Claim(self.current.load(Ordering::Acquire));
        current.tag() == tag && now_us() < current.until_us()
    }

    /// Whether this claim still stands.
    pub(crate) fn stands(&self, claim: Claim) -> bool {
        self.current.load(Ordering::Acquire) == claim.0 && now_us() < claim.until_us()
    }

    /// Counts a failure; true if the command has just become the claimant and has to mark its shards.
    pub(crate) fn failed(&self, who: &mut Attempt) -> bool {
        match who.claim {
            Some(claim) if self.stands(claim) => return false,
            Some(claim) => {
                // It ran out behind a long holder. Begin anew, so that those who stepped back get their turn.
                self.end(claim);
                who.take_claim();
                return false;
            }
            None => who.failures += 1,
        }
        if who.failures >= FAILURES_MAX {
            who.claim = self.begin();
        }
        who.claim.is_some()
    }

    /// Ends this claim if it is the current one.
    pub(crate) fn end(&self, claim: Claim) {
        // Failure means that another claim followed already: nothing to do.
        let _ = self.current.compare_exchange(
            claim.0,
            claim.over().0,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }

    fn begin(&self) -> Option<Claim> {
        let seen = Claim(self.current.load(Ordering::Acquire));
        let now = now_us();
        if now < seen.until_us() {
            return None;
        }
        let claim = seen.next(now + CLAIM_US);
        self.current
            .compare_exchange(seen.0, claim.0, Ordering::AcqRel, Ordering::Relaxed)
            .ok()
            .map(|_| claim)
    }

    /// The holder of the script lock waits for this shard (until the guard is dropped).
    pub(crate) fn want_for_script(&self, id: ShardId) -> Want<'_> {
        self.script_wants
            .store(u32::from(id) + 1, Ordering::Release);
        Want(self)
    }

    /// The shard for which the script waits.
    pub(crate) fn script_wants(&self) -> Option<ShardId> {
        let wanted = self.script_wants.load(Ordering::Acquire).checked_sub(1)?;
        ShardId::try_from(wanted).ok()
    }
}

/// See [`Claims::want_for_script`].
pub(crate) struct Want<'s>(&'s Claims);

impl Drop for Want<'_> {
    fn drop(&mut self) {
        self.0.script_wants.store(0, Ordering::Release);
    }
}
