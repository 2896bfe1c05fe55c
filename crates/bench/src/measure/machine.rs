//! What machine a run took place on, as far as a reader of the results needs it.

use serde::Serialize;
use std::fs;

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu_model: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Memory.
    pub memory_bytes: u64,
    /// When the kernel gives huge pages to programs (`always`, `madvise` or `never`): it moves resident sizes.
    pub huge_pages: String,
    /// The kernel's default for TCP; one that paces (`bbr`) costs both sides of a loopback connection more than one that does not.
    pub tcp_congestion: String,
}

impl Machine {
    /// Reads it from `/proc`; what cannot be read is "unknown" or 0.
    pub fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu_model: field(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_bytes: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok())
                .map_or(0, |kilobytes| kilobytes * 1024),
            tcp_congestion: read("/proc/sys/net/ipv4/tcp_congestion_control")
                .trim()
                .to_owned(),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        }
    }
}

fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The choice that a kernel setting shows in brackets.
fn chosen(text: &str) -> String {
    let rest = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    rest.map_or("unknown", |(word, _)| word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_the_word_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen(""), "unknown");
    }

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        let machine = Machine::read();
        assert!(machine.cores >= 1 && machine.memory_bytes > 0 && !machine.kernel.is_empty());
    }
}
