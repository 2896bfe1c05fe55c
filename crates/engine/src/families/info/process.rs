//! What the operating system knows of this process.

use std::time::Duration;

/// Resident memory in bytes, 0 when it cannot be read.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    kib_field(&status, "VmRSS:") * 1_024
}

/// A field such as `VmRSS:    1234 kB`, in KiB.
fn kib_field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok())
        .unwrap_or(0)
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the kernel.
    pub system: Duration,
    /// In the program.
    pub user: Duration,
}

/// CPU time of this process; zero when it cannot be read.
pub fn cpu_time() -> CpuTime {
    let Ok(usage) = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF) else {
        return CpuTime::default();
    };
    let duration = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(u64::try_from(time.tv_sec()).unwrap_or(0))
            + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or(0))
    };
    CpuTime {
        system: duration(usage.system_time()),
        user: duration(usage.user_time()),
    }
}

/// Name and version of the kernel, and the architecture: `Linux 6.1.0 x86_64`.
pub fn os_name() -> String {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .map_or_else(|_| String::new(), |text| text.trim().to_owned())
    };
    format!(
        "{} {} {}",
        read("ostype"),
        read("osrelease"),
        std::env::consts::ARCH
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tpantala\nVmHWM:\t  200 kB\nVmRSS:\t  123 kB\nThreads:\t4\n";
        assert_eq!(kib_field(status, "VmRSS:"), 123);
        assert_eq!(kib_field(status, "VmSwap:"), 0);
        assert_eq!(kib_field(status, "Threads:"), 0);
    }

    #[test]
    fn this_process_uses_memory_and_time() {
        assert!(resident_bytes() > 0);
        assert!(
            cpu_time().user + cpu_time().system > Duration::ZERO
                || cpu_time() == CpuTime::default()
        );
        assert!(os_name().contains(std::env::consts::ARCH));
    }
}
