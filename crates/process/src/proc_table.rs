//! Processes as `/proc` shows them. What is read here may change at any time, so open a descriptor of a process
//! and check again before acting on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

use crate::identity::Identity;

/// One process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    /// The name of the program, at most 15 bytes.
    pub(crate) name: String,
    state: u8,
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) start_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    pub(crate) fn read(pid: u32) -> Option<Self> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// The name may contain spaces and parentheses, so the last closing one ends it.
    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The third field of the whole line is the first one here.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
            state: *field(3)?.as_bytes().first()?,
            parent: field(4)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            start_ticks: field(22)?.parse().ok()?,
            resident_pages: field(24)?.parse().ok()?,
        })
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            pid: self.pid,
            start_ticks: self.start_ticks,
        }
    }

    /// Whether it still runs. A zombie doesn't.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_pages * rustix::param::page_size() as u64
    }
}

/// A snapshot of all processes, nearly: reading them takes a few milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Table {
    by_pid: BTreeMap<u32, Stat>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl Table {
    pub(crate) fn read() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Self::of(pids.filter_map(Stat::read))
    }

    fn of(stats: impl Iterator<Item = Stat>) -> Self {
        let mut table = Self::default();
        for stat in stats {
            table.children.entry(stat.parent).or_default().push(stat.pid);
            table.by_pid.insert(stat.pid, stat);
        }
        table
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Stat> {
        self.by_pid.values()
    }

    pub(crate) fn get(&self, pid: u32) -> Option<&Stat> {
        self.by_pid.get(&pid)
    }

    /// The process, if exactly that one exists.
    pub(crate) fn find(&self, identity: Identity) -> Option<&Stat> {
        self.get(identity.pid).filter(|stat| stat.identity() == identity)
    }

    /// Everything below a process, without it. A snapshot of a changing tree can have a cycle, so nothing is
    /// visited twice.
    pub(crate) fn below(&self, root: u32) -> Vec<&Stat> {
        let (mut found, mut visited) = (Vec::new(), BTreeSet::from([root]));
        let mut open = VecDeque::from([root]);
        while let Some(parent) = open.pop_front() {
            for &child in self.children.get(&parent).into_iter().flatten() {
                if visited.insert(child) {
                    open.push_back(child);
                    found.extend(self.get(child));
                }
            }
        }
        found
    }

    /// A process and its parents, upwards.
    pub(crate) fn upwards(&self, pid: u32) -> Vec<&Stat> {
        let (mut line, mut visited) = (Vec::new(), BTreeSet::new());
        let mut next = self.get(pid);
        while let Some(stat) = next.filter(|stat| visited.insert(stat.pid)) {
            line.push(stat);
            next = self.get(stat.parent);
        }
        line
    }
}

/// A process and its parents, upwards, without reading any other process.
pub(crate) fn upwards(pid: u32) -> Vec<Stat> {
    let (mut line, mut visited) = (Vec::new(), BTreeSet::new());
    let mut next = Stat::read(pid);
    while let Some(stat) = next.filter(|stat| visited.insert(stat.pid)) {
        next = Stat::read(stat.parent);
        line.push(stat);
    }
    line
}

/// Everything below a process, without it. If the kernel lists the children of a process, this only reads the
/// tree; otherwise it reads the whole table.
pub(crate) fn below(root: u32) -> Vec<Stat> {
    let Some(first) = children(root) else {
        return Table::read().below(root).into_iter().cloned().collect();
    };
    let (mut found, mut visited) = (Vec::new(), BTreeSet::from([root]));
    let mut open = VecDeque::from(first);
    while let Some(pid) = open.pop_front() {
        if visited.insert(pid) {
            found.extend(Stat::read(pid));
            open.extend(children(pid).unwrap_or_default());
        }
    }
    found
}

/// The children of all threads of a process; `None` if it is gone or the kernel doesn't list them.
fn children(pid: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let listed = fs::read_to_string(task.path().join("children"));
        match listed {
            Ok(listed) => found.extend(
                listed
                    .split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            ),
            // A thread may end while we look.
            Err(_) if task.path().join("stat").exists() => return None,
            Err(_) => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32) -> Stat {
        Stat {
            pid,
            name: format!("p{pid}"),
            state: b'S',
            parent,
            session: 1,
            start_ticks: u64::from(pid),
            resident_pages: 1,
        }
    }

    fn pids(stats: &[&Stat]) -> Vec<u32> {
        stats.iter().map(|stat| stat.pid).collect()
    }

    #[test]
    fn a_line_is_read_whatever_the_name_is() {
        let rest = "S 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000 77 18446744073709551615 1 1";
        for name in ["sh", "a b", "x) S 1 (y", ""] {
            let expected = Stat {
                pid: 42,
                name: name.to_owned(),
                state: b'S',
                parent: 7,
                session: 9,
                start_ticks: 12345,
                resident_pages: 77,
            };
            assert_eq!(Stat::parse(&format!("42 ({name}) {rest}")), Some(expected));
        }
        for broken in ["", "42", "42 (sh) S 1", "x (sh) S"] {
            assert_eq!(Stat::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn trees_are_walked_both_ways_and_circles_end() {
        let table = Table::of(
            [(2, 1), (3, 2), (4, 3), (5, 2), (6, 1), (8, 9), (9, 8)]
                .map(|(p, q)| stat(p, q))
                .into_iter(),
        );
        for (root, below) in [(2, vec![3, 5, 4]), (4, vec![]), (8, vec![9]), (77, vec![])] {
            assert_eq!(pids(&table.below(root)), below, "below {root}");
        }
        for (pid, upwards) in [(4, vec![4, 3, 2]), (6, vec![6]), (8, vec![8, 9]), (77, vec![])] {
            assert_eq!(pids(&table.upwards(pid)), upwards, "upwards from {pid}");
        }
    }

    #[test]
    fn this_process_is_found_with_its_memory() {
        let own = std::process::id();
        let table = Table::read();
        let stat = table.get(own).unwrap();
        assert!(stat.is_alive() && stat.resident_bytes() > 100_000, "{stat:?}");
        assert_eq!(table.find(stat.identity()).map(|stat| stat.pid), Some(own));
        let reused = Identity {
            start_ticks: stat.start_ticks + 1,
            ..stat.identity()
        };
        assert_eq!(table.find(reused), None);
        assert!(below(stat.parent).iter().any(|stat| stat.pid == own));
    }
}
