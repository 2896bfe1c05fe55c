//! The servers under test: what kinds there are, where they are found, how each is started and stopped.

mod children;
mod process;
mod spec;

pub use children::stop_on_signal;
pub use process::{Server, ServerOptions};
pub use spec::{EngineSpec, find_all};
