//! Who may touch which shard, and when. This crate knows nothing of keys, tables, sockets or commands: it hands out exclusive use of
//! numbered contents `T` to the threads (*parties*) of one process, so that a command may touch any shards atomically. It must never
//! let a thread wait with a shard in hand (but for one, the holder of the script lock), lose a wake, or stay closed.
//!
//! # A shard's life
//!
//! Each shard has one lock word (`word.rs`): held or not, long or not, a mark, and a mask of waiting parties.
//!
//! ```text
//!            try_one: one CAS                     park: CAS sets the party's bit
//!   free ───────────────────────────▶ held ───────────────────────────▶ held, waited for
//!    ▲ ◀────────────────────────────── │                                        │
//!    │       give back: one CAS                                                 │
//!    └──────────────── give back: CAS takes the whole mask, then each is woken ─┘
//!
//!   claimant or script marks a word (free or held):     free, marked ── only its own take ──▶ held
//! ```
//!
//! Invariants, each tested by a model under shuttle (`src/models.rs`) or loom (`src/orders.rs`):
//!
//! 1. **Exclusion.** The content is reached only through a [`Borrow`], and a `Borrow` lists exactly the words it took (`cell.rs`).
//! 2. **No lost wake.** The mask is non-empty only while the word is held, because "is it held? then write me down" is one CAS on the
//!    word that giving back changes. So whoever is registered is woken by that holder's give-back, and whoever is not registered was
//!    told that the shard is free. A claim that runs out wakes nobody, and need not: nobody can be registered on a free shard
//!    ([`Parked::Reserved`] says "come back", for at most [`CLAIM_US`]).
//! 3. **No deadlock.** Sets are taken in ascending order; a spin is bounded, and whoever ends it without success gives all back and
//!    is set aside. A waiting command holds nothing. The script lock comes before all shards; its holder is the only one that waits
//!    with shards in hand, and it is one.
//! 4. **No starvation.** Woken parties compete with newcomers (handing over in line order would make each shard as slow as a thread
//!    switch). A command that lost [`FAILURES_MAX`] times may become the claimant (`claim.rs`): newcomers step back from its shards
//!    for at most a millisecond, in which those who hold one finish. A claim that runs out behind a long holder starts anew after
//!    further failures, so others get their turn between. Among several that may claim, chance decides who is next; each claim serves
//!    one of them.
//! 5. **The gate opens.** It is closed for at most the closer's limit plus its act, also when the act panics (`gate.rs`).
//! 6. **Give-back on unwind.** A panic of a handler gives its shards back; whether the process goes on is for the process to decide.
//!
//! # Which call when
//!
//! | who | call |
//! |---|---|
//! | a worker, one key | [`Shards::try_one`], else [`Shards::try_borrow`] with an [`Attempt`], else [`Shards::park`] and set the connection aside |
//! | a worker, several keys | [`Shards::try_borrow`], then the same |
//! | a helper with a long command | [`Gate::enter_and_borrow_blocking`] |
//! | a script that may touch any key | [`ScriptLock::try_lock`], its known shards by [`Shards::try_borrow`], others by [`Borrow::extend_under_script`] |
//! | all of these | inside the gate: [`Gate::enter`] once per batch of commands |
//! | snapshot cut, role change, FLUSHALL | outside the gate: [`Gate::close`] |
//!
//! # Costs
//!
//! An uncontended pair of borrow and give-back is two compare-and-swaps on one cache line; `examples/borrow_cost.rs` measures it.
//! A shard takes 128 bytes beyond its content's size rounded up; a party 256 bytes.

mod cell;
mod claim;
mod gate;
mod script;
mod seat;
mod set;
mod shards;
mod sync;
mod word;

pub use cell::Borrow;
pub use claim::{Attempt, CLAIM_US, FAILURES_MAX};
pub use gate::{Closed, Gate, Inside, Visit, World};
pub use script::{ScriptLock, ScriptToken};
pub use seat::{Party, Wake};
pub use set::{ShardId, ShardSet};
pub use shards::{Outcome, Shards};
pub use word::Parked;

#[cfg(all(test, not(feature = "loom-model")))]
mod models;
#[cfg(all(test, feature = "loom-model"))]
mod orders;
