//! Processor time of the server's process and of the client's threads.

use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::fs;
use std::io;

/// Processor time that a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCpu {
    /// All its threads, the ended ones too; exact.
    pub total_ns: u64,
    /// Clock ticks (10 ms) in user mode. The kernel scales them to the exact total, but samples the split.
    pub user_ticks: u64,
    /// Clock ticks in the kernel.
    pub system_ticks: u64,
}

/// Processor time used between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuUsed {
    /// User and system together.
    pub total_ns: f64,
    /// The part in user mode.
    pub user_ns: f64,
    /// The part in the kernel.
    pub system_ns: f64,
}

/// What process `pid` has used so far.
///
/// # Errors
/// The process does not exist or its record cannot be read.
pub fn process_cpu(pid: Pid) -> io::Result<ProcessCpu> {
    let clock = clock_getcpuclockid(pid)?;
    let total_ns = read_clock(clock)?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (user_ticks, system_ticks) = parse_stat(&stat).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected user and system ticks in /proc/{pid}/stat"),
        )
    })?;
    Ok(ProcessCpu {
        total_ns,
        user_ticks,
        system_ticks,
    })
}

/// Processor time, in nanoseconds, that everything on this machine has used so far, in steps of 10 ms.
///
/// # Errors
/// The kernel's record cannot be read.
pub fn machine_cpu_ns() -> io::Result<u64> {
    let stat = fs::read_to_string("/proc/stat")?;
    parse_machine_stat(&stat).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "expected the processors' ticks in /proc/stat",
        )
    })
}

/// The ticks of the first line: user, nice, system, (idle, waiting,) interrupts, soft interrupts, and stolen by the host.
fn parse_machine_stat(stat: &str) -> Option<u64> {
    /// The kernel shows these times in ticks of 1/100 s whatever its own clock is.
    const TICK_NS: u64 = 10_000_000;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .map(|field| field.parse().ok())
        .collect::<Option<_>>()?;
    let busy = [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|place| ticks.get(*place));
    Some(busy.sum::<u64>() * TICK_NS)
}

/// What the calling thread has used so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read_clock(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread may read its own clock")
}

fn read_clock(clock: ClockId) -> io::Result<u64> {
    let time = clock_gettime(clock)?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// The user and system ticks in a line of `/proc/PID/stat`.
fn parse_stat(line: &str) -> Option<(u64, u64)> {
    // The command name may hold spaces and parentheses; the fields are counted from behind its last parenthesis.
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

impl ProcessCpu {
    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Self) -> CpuUsed {
        let total_ns = self.total_ns.saturating_sub(earlier.total_ns) as f64;
        let user = self.user_ticks.saturating_sub(earlier.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(earlier.system_ticks) as f64;
        let share = if user + system > 0.0 {
            user / (user + system)
        } else {
            0.0
        };
        CpuUsed {
            total_ns,
            user_ns: total_ns * share,
            system_ns: total_ns * (1.0 - share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_command_name_with_parentheses_does_not_confuse() {
        let line = "1 (a b) c) S 1 2 3 4 5 6 7 8 9 10 111 222 0 0 20";
        assert_eq!(parse_stat(line), Some((111, 222)));
        assert_eq!(parse_stat("1 (x) S 1"), None);
    }

    #[test]
    fn idle_time_of_the_machine_is_left_out() {
        let stat = "cpu  1 2 4 1000 1000 8 16 32 64 128\ncpu0 9 9\n";
        assert_eq!(parse_machine_stat(stat), Some(63 * 10_000_000));
        assert_eq!(parse_machine_stat("intr 1"), None);
        assert!(machine_cpu_ns().unwrap() > 0);
    }

    #[test]
    fn a_busy_thread_uses_time_and_the_process_at_least_as_much() {
        let pid = Pid::this();
        let (process, thread) = (process_cpu(pid).unwrap(), thread_cpu_ns());
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let used_by_thread = thread_cpu_ns() - thread;
        let used = process_cpu(pid).unwrap().since(&process);
        assert!(used_by_thread > 1_000_000, "{used_by_thread} ns");
        assert!(used.total_ns >= used_by_thread as f64);
        assert!((used.user_ns + used.system_ns - used.total_ns).abs() < 1.0);
    }
}
