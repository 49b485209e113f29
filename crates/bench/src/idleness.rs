//! How often the threads of a process woke up, and how long they ran.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::memory::number;

#[derive(Debug)]
pub(crate) struct Used {
    by_thread: BTreeMap<String, Use>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// Context switches, voluntary or not.
    pub(crate) switches: u64,
    pub(crate) cpu: Duration,
}

pub(crate) fn used_by(pid: u32) -> Result<Used> {
    let mut by_thread = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let entry = entry?;
        let read = |name| fs::read_to_string(entry.path().join(name));
        // A thread may end between listing and reading.
        let (Ok(status), Ok(schedule)) = (read("status"), read("schedstat")) else {
            continue;
        };
        let thread = entry.file_name().to_string_lossy().into_owned();
        by_thread.insert(thread, use_in(&status, &schedule));
    }
    Ok(Used { by_thread })
}

/// The first number of the schedule is the CPU time in nanoseconds.
fn use_in(status: &str, schedule: &str) -> Use {
    let switches = number(status, "voluntary_ctxt_switches") + number(status, "nonvoluntary_ctxt_switches");
    let cpu = schedule.split_whitespace().next();
    let cpu = cpu.and_then(|number| number.parse().ok()).unwrap_or(0);
    Use {
        switches,
        cpu: Duration::from_nanos(cpu),
    }
}

impl Used {
    /// The difference since then, for all threads that exist now.
    pub(crate) fn since(&self, before: &Self) -> Use {
        let mut added = Use::default();
        for (thread, now) in &self.by_thread {
            let before = before.by_thread.get(thread).copied().unwrap_or_default();
            added.switches += now.switches.saturating_sub(before.switches);
            added.cpu += now.cpu.saturating_sub(before.cpu);
        }
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_counters_are_read_and_summed() {
        let status = "VmRSS:\t    5432 kB\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let used = |switches, nanoseconds| Use {
            switches,
            cpu: Duration::from_nanos(nanoseconds),
        };
        assert_eq!(use_in(status, "2500 17 3\n"), used(15, 2500));
        assert_eq!(use_in("", ""), used(0, 0));
        let by_thread = |pairs: &[(&str, Use)]| Used {
            by_thread: pairs
                .iter()
                .map(|(thread, used)| ((*thread).to_owned(), *used))
                .collect(),
        };
        let before = by_thread(&[("1", used(10, 100)), ("2", used(5, 50))]);
        let after = by_thread(&[("1", used(12, 130)), ("3", used(4, 7))]);
        assert_eq!(after.since(&before), used(6, 37));
    }

    #[test]
    fn this_program_has_used_something() {
        let used = used_by(std::process::id()).unwrap();
        let nothing = Used {
            by_thread: BTreeMap::new(),
        };
        let all = used.since(&nothing);
        assert!(all.switches > 0 && !all.cpu.is_zero(), "{all:?}");
    }
}
