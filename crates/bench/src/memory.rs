//! How much memory processes hold, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;

pub(crate) fn resident_kib(pid: u32) -> Result<u64> {
    Ok(number(
        &fs::read_to_string(format!("/proc/{pid}/status"))?,
        "VmRSS",
    ))
}

pub(crate) fn tree_mib(root: u32) -> Result<f64> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may end between listing and reading.
        if let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
            parents.insert(pid, number(&status, "PPid"));
        }
    }
    let kib: u64 = tree(root, &parents)
        .into_iter()
        .map(|pid| resident_kib(pid).unwrap_or(0))
        .sum();
    Ok(kib as f64 / 1024.0)
}

fn tree(root: u32, parents: &BTreeMap<u32, u64>) -> Vec<u32> {
    let mut found = vec![root];
    let mut looked_at = 0;
    while let Some(parent) = found.get(looked_at).copied() {
        looked_at += 1;
        let children = parents.iter().filter(|(_, of)| **of == u64::from(parent));
        found.extend(children.map(|(pid, _)| *pid));
    }
    found
}

/// The number in a line such as `VmRSS:    5432 kB`; zero if there is none.
pub(crate) fn number(status: &str, name: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_a_process_and_everything_below_it() {
        let parents = BTreeMap::from([(1, 0), (2, 1), (3, 2), (4, 1), (5, 4), (6, 3)]);
        assert_eq!(tree(2, &parents), [2, 3, 6]);
        assert_eq!(tree(5, &parents), [5]);
    }

    #[test]
    fn this_program_holds_memory() {
        let own = std::process::id();
        let (alone, with_children) = (resident_kib(own).unwrap(), tree_mib(own).unwrap());
        assert!(alone > 0 && with_children > 0.0);
    }
}
