//! What is measured beside the load itself: processor time, resident memory, latencies, the machine.

pub mod cpu;
pub mod latency;
pub mod machine;
pub mod memory;
