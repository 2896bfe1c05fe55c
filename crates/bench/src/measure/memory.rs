//! Resident memory of the server's process, in bytes, as the kernel counts it.

use nix::unistd::Pid;
use std::fs;
use std::io;

/// What process `pid` holds in memory now.
///
/// # Errors
/// The process does not exist or its record cannot be read.
pub fn resident_bytes(pid: Pid) -> io::Result<u64> {
    // The counter in `status` is kept per processor and off by some hundred kilobytes; the roll-up walks the page tables.
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    if let Some(bytes) = rollup.ok().and_then(|text| kilobytes(&text, "Rss:")) {
        return Ok(bytes);
    }
    status(pid, "VmRSS:")
}

/// The most that process `pid` ever held, or held since the last reset.
///
/// # Errors
/// The process does not exist or its record cannot be read.
pub fn peak_resident_bytes(pid: Pid) -> io::Result<u64> {
    status(pid, "VmHWM:")
}

/// Makes the peak start from what is resident now.
///
/// # Errors
/// The process does not exist or may not be written to.
pub fn reset_peak(pid: Pid) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

fn status(pid: Pid, name: &str) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    kilobytes(&text, name).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected {name} in /proc/{pid}/status"),
        )
    })
}

/// The value of the line that starts with `name`, which stands in units of 1,024 bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_name() {
        let text = "VmHWM:\t    2048 kB\nVmRSS:\t  1024 kB\n";
        assert_eq!(kilobytes(text, "VmRSS:"), Some(1024 * 1024));
        assert_eq!(kilobytes(text, "VmHWM:"), Some(2 * 1024 * 1024));
        assert_eq!(kilobytes(text, "Rss:"), None);
    }

    #[test]
    fn memory_that_is_written_becomes_resident() {
        let pid = Pid::this();
        let before = resident_bytes(pid).unwrap();
        let block = vec![1u8; 64 << 20];
        let after = resident_bytes(pid).unwrap();
        assert!(after > before + (60 << 20), "{before} then {after}");
        assert!(peak_resident_bytes(pid).unwrap() > 60 << 20);
        drop(block);
    }
}
