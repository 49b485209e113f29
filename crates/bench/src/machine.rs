//! The hardware and software behind the figures.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

/// The packages whose versions the report names.
const PEERS: &[&str] = &[
    "failsafe",
    "recloser",
    "rusqlite",
    "tokio",
    "tokio-util",
    "tower-resilience-circuitbreaker",
];

/// Like `PEERS`, for separate programs with their own lock file.
const PEERS_OUTSIDE: &[&str] = &["apalis-postgres", "apalis-sqlite"];
const LOCK_OUTSIDE: &str = "crates/bench/peers/apalis/Cargo.lock";

/// The rows at the head of the report. Must run in the root of the repository.
pub(crate) fn describe() -> Result<Vec<(&'static str, String)>> {
    let cpu = fs::read_to_string("/proc/cpuinfo").context("cannot read the CPU's name")?;
    let memory = fs::read_to_string("/proc/meminfo").context("cannot read the size of the memory")?;
    let kernel =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's version")?;
    let mut versions = versions_in(Path::new("Cargo.lock"), PEERS)?;
    versions.extend(versions_in(Path::new(LOCK_OUTSIDE), PEERS_OUTSIDE)?);
    let cores = std::thread::available_parallelism()?;
    Ok(vec![
        ("CPU", field(&cpu, "model name").unwrap_or("unknown").to_owned()),
        ("cores", cores.to_string()),
        ("memory", gibibytes(field(&memory, "MemTotal").unwrap_or("0 kB"))),
        ("kernel", format!("Linux {}", kernel.trim())),
        ("compiler", first_line("rustc", &["--version"])?),
        ("peers", versions.join(", ")),
        ("git", first_line("git", &["--version"])?),
        ("SQLite", rusqlite::version().to_owned()),
        ("date", first_line("date", &["-u", "+%Y-%m-%d"])?),
    ])
}

fn versions_in(lock: &Path, packages: &[&str]) -> Result<Vec<String>> {
    let lock = fs::read_to_string(lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let version = |package| version_of(&lock, package).unwrap_or("(not in the lock file)");
    Ok(packages
        .iter()
        .map(|package| format!("{package} {}", version(package)))
        .collect())
}

/// The value in the first line of the form `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// `8052756 kB` as `7.7 GiB`.
fn gibibytes(kibibytes: &str) -> String {
    let number: f64 = kibibytes.trim_end_matches("kB").trim().parse().unwrap_or(0.0);
    format!("{:.1} GiB", number / (1024.0 * 1024.0))
}

/// The version of a package in a lock file, where the version follows the name.
fn version_of<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

fn first_line(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or("unknown").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_versions_are_read() {
        let cpu = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(field(cpu, "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(field(cpu, "flags"), None);
        assert_eq!(gibibytes("8388608 kB"), "8.0 GiB");
        let lock = "[[package]]\nname = \"tokio-util\"\nversion = \"0.7.1\"\n\n[[package]]\nname = \"tokio\"\nversion = \"1.2.3\"\n";
        assert_eq!(version_of(lock, "tokio"), Some("1.2.3"));
        assert_eq!(version_of(lock, "recloser"), None);
    }
}
