//! Configuration: one table of options, from which everything else is made — the file in the style of `redis.conf`,
//! the command line, the environment, Dragonfly's flags, `CONFIG GET`, `SET` and `REWRITE`, and `--help`.
//!
//! The tables stand in `options.rs` (options that work) and `inert.rs` (recognised without effect). [`Settings`] has
//! one typed field for each option that works. Nothing here does I/O, but for [`read_config_file`]; nothing here
//! panics on any input; and no option is accepted silently that does not do what it says.
//!
//! [`glob_match`], [`split_args`] and [`quote`] are Redis's patterns and words, for all who need them.

mod arguments;
mod error;
mod glob;
mod help;
mod inert;
mod load;
mod options;
mod quote;
mod rewrite;
mod runtime;
mod spec;
mod table;
mod types;
mod value;

pub use error::{ConfigError, Place};
pub use glob::glob_match;
pub use help::help_text;
pub use load::{Action, FILE_LIMIT_BYTES, INCLUDES_MAX, Loaded, load, read_config_file};
pub use options::Settings;
pub use quote::{quote, split_args};
pub use rewrite::rewrite;
pub use runtime::{ConfigSetError, changed, config_get, config_set};
pub use spec::{Alias, Effect, Group, House, Kind, OptionSpec, Percent, Translation};
pub use table::{Found, find, nearest, options};
pub use types::{
    BindAddress, BindAddresses, BufferLimit, BusyReplyScope, EvictionPolicy, IoDriver,
    KeyspaceEvents, LogLevel, OutputBufferLimits, Percentiles, ProtectedAction, RenamedCommands,
    SanitizeDump, SaveRule, SaveRules, ShutdownFlags, percentile_text,
};
pub use value::MemorySize;
