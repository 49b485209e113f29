//! The tools that the steps need, and how to get each.
//!
//! Adding a tool means adding a row to `TOOLS`. A tool that can be installed is installed, and that is reported; one
//! that can't be is reported as well, and the tests that need it report a skip.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Step, bounded, postgres};
use crate::child::{self, Ended};
use crate::workspace::cargo;

#[derive(Debug)]
struct Tool {
    /// The program's name on the PATH.
    name: &'static str,
    needed_by: &'static [Step],
    why: &'static str,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A toolchain component, which has to be selected when installing Rust.
    Component(&'static str),
    Debian(&'static str),
    /// A crate with a binary, in the one version that we have tested.
    Crate {
        name: &'static str,
        version: &'static str,
        takes: &'static str,
    },
    /// Used if present, not required otherwise.
    Optional,
    /// Debian packages that are installed separately from the others. They are not required.
    DebianIfPossible(&'static [&'static str]),
    ComponentsIfPossible(&'static [&'static str]),
}

/// A component is tens of megabytes.
const COMPONENTS_WITHIN: Duration = Duration::from_secs(300);

/// How long another installation may keep us waiting, and how often we try.
const APT_LOCK_WITHIN: Duration = Duration::from_secs(600);
const APT_LOCK_EVERY: Duration = Duration::from_secs(5);

const TOOLS: &[Tool] = &[
    Tool {
        name: "cargo-fmt",
        needed_by: &[Step::Format],
        why: "checks the format",
        source: Source::Component("rustfmt"),
    },
    Tool {
        name: "cargo-clippy",
        needed_by: &[Step::Clippy],
        why: "finds mistakes",
        source: Source::Component("clippy"),
    },
    Tool {
        name: "chromium",
        needed_by: &[Step::Tests],
        why: "shows the page to the browser tests",
        source: Source::Debian("chromium"),
    },
    Tool {
        name: "chromedriver",
        needed_by: &[Step::Tests],
        why: "drives the browser of the browser tests",
        source: Source::Debian("chromium-driver"),
    },
    Tool {
        name: "postgres",
        needed_by: &[Step::Tests, Step::Machines],
        why: "is the server that the log is tested on",
        source: Source::Debian("postgresql"),
    },
    Tool {
        name: "pgbouncer",
        needed_by: &[Step::Tests],
        why: "stands between the log and its server in a test",
        source: Source::Debian("pgbouncer"),
    },
    Tool {
        name: "faketime",
        needed_by: &[Step::Tests],
        why: "gives a daemon a clock that is wrong",
        source: Source::Debian("faketime"),
    },
    Tool {
        name: "bindfs",
        needed_by: &[Step::Tests],
        why: "is a mount that stops answering, for the tests of plans",
        source: Source::Debian("bindfs"),
    },
    Tool {
        name: "python3",
        needed_by: &[Step::Tests],
        why: "installs language servers for the tests",
        source: Source::Debian("python3-venv"),
    },
    Tool {
        name: "npm",
        needed_by: &[Step::Tests],
        why: "installs language servers for the tests",
        source: Source::Debian("npm"),
    },
    Tool {
        name: "rust-analyzer",
        needed_by: &[Step::Tests],
        why: "is the language server for Rust",
        source: Source::ComponentsIfPossible(&["rust-analyzer", "rust-src"]),
    },
    Tool {
        name: "gopls",
        needed_by: &[Step::Tests],
        why: "is the language server for Go",
        source: Source::DebianIfPossible(&["golang-go", "gopls"]),
    },
    Tool {
        name: "cargo-deny",
        needed_by: &[Step::Deny],
        why: "checks licences, bans and sources",
        source: Source::Crate {
            name: "cargo-deny",
            version: "0.20.2",
            takes: "two or three minutes",
        },
    },
    Tool {
        name: "cargo-nextest",
        needed_by: &[Step::Tests],
        why: "runs the tests of all crates side by side",
        source: Source::Optional,
    },
];

/// Looks for every tool that a wanted step needs and installs the missing ones.
pub(super) fn install(is_wanted: impl Fn(Step) -> bool) -> Result<()> {
    let mut packages = Vec::new();
    for tool in TOOLS
        .iter()
        .filter(|tool| tool.needed_by.iter().copied().any(&is_wanted))
    {
        if tool.is_here() {
            println!("{:<14} present, {}", tool.name, tool.why);
            continue;
        }
        match tool.source {
            Source::Component(component) => bail!(
                "{} is missing ({}); add it with `rustup component add {component}`, or install Debian's \
                 package of that name if Rust came from Debian",
                tool.name,
                tool.why
            ),
            Source::Optional => println!("{:<14} not here; `cargo test` is used instead", tool.name),
            Source::Debian(package) => {
                println!(
                    "{:<14} missing, {}: Debian's {package} will be installed",
                    tool.name, tool.why
                );
                packages.push(package);
            }
            Source::Crate { name, version, takes } => {
                println!(
                    "{:<14} missing, {}: building it takes {takes}",
                    tool.name, tool.why
                );
                install_crate(name, version);
            }
            Source::DebianIfPossible(packages) => {
                println!("{:<14} not here, {}: trying Debian's", tool.name, tool.why);
                install_packages(packages);
            }
            Source::ComponentsIfPossible(components) => {
                println!("{:<14} not here, {}: trying rustup", tool.name, tool.why);
                install_components(components);
            }
        }
    }
    if !packages.is_empty() {
        install_packages(&packages);
    }
    Ok(())
}

impl Tool {
    /// Asks a component for its version, since rustup puts its name on the PATH before it is installed.
    fn is_here(&self) -> bool {
        match self.source {
            Source::Component(_) | Source::ComponentsIfPossible(_) => {
                child::probe(&[self.name, "--version"]).is_some()
            }
            Source::Debian(_) | Source::DebianIfPossible(_) | Source::Crate { .. } | Source::Optional => {
                is_present(self.name)
            }
        }
    }
}

/// Whether there is a program of that name on the PATH, where cargo installs, or where Debian keeps Postgres. It
/// starts no program, since a browser is slow to respond.
pub(super) fn is_present(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Cargo finds its subcommands there even if it is not on the PATH, as with a Rust from Debian.
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let installed = cargo_home.map(|home| home.join("bin"));
    let directories = std::env::split_paths(&path)
        .chain(installed)
        // Debian keeps servers there, and not every user has it on the PATH.
        .chain([PathBuf::from("/usr/sbin")])
        .chain(postgres::directories());
    is_on_path(name, directories)
}

pub(super) fn is_on_path(name: &str, mut directories: impl Iterator<Item = impl AsRef<Path>>) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    directories.any(|directory| {
        let metadata = std::fs::metadata(directory.as_ref().join(name));
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

fn install_crate(name: &str, version: &str) {
    let installed = child::run(cargo().args(["install", "--locked", name, "--version", version]));
    if let Err(error) = installed {
        println!("could not install {name}: {error:#}");
    }
}

/// Runs rustup once. A Rust from another source has none.
fn install_components(components: &[&str]) {
    let log = std::env::temp_dir().join(format!("tidelock-rustup-{}.log", std::process::id()));
    let mut command = Command::new("rustup");
    command.args(["component", "add"]).args(components);
    if let Err(error) = bounded::run(&mut command, &log, COMPONENTS_WITHIN) {
        println!("note: {} cannot be had here: {error:#}", components.join(", "));
    }
    std::fs::remove_file(log).ok();
}

/// Installs Debian packages, refreshing the package lists only if the first attempt fails.
fn install_packages(packages: &[&str]) {
    let Some(prefix) = administrator_prefix() else {
        println!("cannot install packages: this wants root, or sudo without a password, and apt-get");
        println!("do it by hand: apt-get install {}", packages.join(" "));
        return;
    };
    let apt = |arguments: &[&str]| apt(prefix, arguments);
    let install: Vec<&str> = ["install", "--yes", "--no-install-recommends"]
        .iter()
        .chain(packages)
        .copied()
        .collect();
    let installed = apt(&install).or_else(|_| {
        println!("trying once more with fresh package lists");
        apt(&["update"]).and_then(|()| apt(&install))
    });
    if let Err(error) = installed {
        println!("could not install {}: {error:#}", packages.join(", "));
    }
}

/// Runs apt-get. Another installation, such as the machine's own updates, may hold its locks for a while. apt-get can
/// wait for the dpkg lock, but never for the lock of the package lists, so we retry.
fn apt(prefix: &[&str], arguments: &[&str]) -> Result<()> {
    let started = Instant::now();
    loop {
        let timeout = format!("DPkg::Lock::Timeout={}", APT_LOCK_WITHIN.as_secs());
        let environment = ["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"];
        let mut words = prefix.iter().copied().chain(environment);
        let mut command = Command::new(words.next().unwrap_or("env"));
        command
            .args(words)
            .args(["apt-get", "-o", &timeout])
            .args(arguments);
        let mut is_locked = false;
        let ended = child::run_reading(&mut command, |line| {
            is_locked |= line.contains("Could not get lock");
        })?;
        if ended == Ended::Well {
            return Ok(());
        }
        if !is_locked || started.elapsed() > APT_LOCK_WITHIN {
            bail!("`apt-get {}` failed", arguments.join(" "));
        }
        sleep(APT_LOCK_EVERY);
    }
}

/// The prefix for a command that only root may run; `None` if there is no way.
fn administrator_prefix() -> Option<&'static [&'static str]> {
    if !is_present("apt-get") {
        return None;
    }
    if child::probe(&["id", "-u"]).as_deref() == Some("0") {
        return Some(&[]);
    }
    child::probe(&["sudo", "-n", "true"]).map(|_| ["sudo", "-n"].as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_an_executable_file_on_the_path() {
        let directory = std::env::temp_dir().join(format!("tidelock-tools-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("folder")).unwrap();
        std::fs::write(directory.join("plain"), "").unwrap();
        let path = || [Path::new("/nowhere"), Path::new("/bin"), directory.as_path()].into_iter();
        let found = ["sh", "plain", "folder", "absent"].map(|name| is_on_path(name, path()));
        assert_eq!(found, [true, false, false, false]);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
