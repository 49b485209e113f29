//! Information about this process from the system.

use std::fs;

/// The resident memory of this process, if the system reports it.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_know_how_much_memory_we_use() {
        let bytes = resident_bytes().unwrap();
        assert!((100_000..100_000_000_000).contains(&bytes), "{bytes}");
    }
}
