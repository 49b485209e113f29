//! Confinement by Landlock: write access only below some directories. What the kernel can't enforce is reported,
//! never assumed.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, make_bitflags,
};

use crate::spec::Enforcement;

/// The version of Landlock that can refuse every way to write a file: the first one didn't control renames
/// between directories, the second one truncation. Later ones add devices, the network and sockets, which
/// confinement isn't about here.
const COMPLETE: ABI = ABI::V3;

/// Devices that store nothing. Programs write to them without checking, and break if they can't. The terminals
/// below [`TERMINALS`] aren't included: whoever can write to another terminal can type and copy there.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
];

/// The directory of terminals.
const TERMINALS: &str = "/dev/pts";

/// The terminals that a command sees.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Terminals {
    /// Those of the host. The command may write only to the ones it was given.
    ProcessesShared,
    /// Those of its own view.
    Private,
}

/// Identifies a set of terminals, so that a command knows whether it has entered a view with its own.
pub(crate) fn terminals_here() -> Option<u64> {
    Some(rustix::fs::stat(TERMINALS).ok()?.st_dev)
}

/// A confinement that is ready to be enforced.
#[derive(Debug)]
pub(crate) struct Prepared {
    ruleset: RulesetCreated,
}

/// Prepares a confinement. A missing directory is an error, because otherwise nothing could be written without
/// anyone noticing.
pub(crate) fn prepare(
    directories: impl Iterator<Item = PathBuf>,
    terminals: Terminals,
) -> io::Result<Prepared> {
    let mut ruleset = handled()?;
    for place in directories {
        let opened = PathFd::new(place).map_err(first_cause)?;
        let rights = match is_directory(&opened)? {
            true => AccessFs::from_write(COMPLETE),
            false => file_rights(),
        };
        ruleset = add(ruleset, opened, rights)?;
    }
    // A container may not have all of them.
    for device in DEVICES.iter().filter_map(|device| PathFd::new(device).ok()) {
        ruleset = add(ruleset, device, file_rights())?;
    }
    match terminals {
        Terminals::ProcessesShared => {}
        Terminals::Private => {
            let own = PathFd::new(Path::new(TERMINALS)).map_err(first_cause)?;
            ruleset = add(ruleset, own, file_rights())?;
        }
    }
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    for stream in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        // So that the command can open its own terminal again, for example through `/dev/stdout`.
        if rustix::termios::isatty(stream) {
            ruleset = add(ruleset, stream, file_rights())?;
        }
    }
    Ok(Prepared { ruleset })
}

/// The rights that apply to something that isn't a directory.
fn file_rights() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ WriteFile | Truncate })
}

fn is_directory(opened: &PathFd) -> io::Result<bool> {
    let mode = rustix::fs::fstat(opened)?.st_mode;
    Ok(rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::Directory)
}

fn add(ruleset: RulesetCreated, place: impl AsFd, rights: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let rule = PathBeneath::new(place, rights);
    ruleset.add_rule(rule).map_err(first_cause)
}

impl Prepared {
    /// Enforces it for this thread and everything that it starts. It can't be undone.
    pub(crate) fn enforce(self) -> io::Result<Enforcement> {
        let status = self.ruleset.restrict_self().map_err(first_cause)?;
        Ok(match status.ruleset {
            RulesetStatus::FullyEnforced => Enforcement::Full,
            RulesetStatus::PartiallyEnforced => Enforcement::Partial,
            RulesetStatus::NotEnforced => Enforcement::None,
        })
    }
}

fn handled() -> io::Result<RulesetCreated> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(COMPLETE))
        .and_then(Ruleset::create)
        .map_err(first_cause)
}

/// How much of a confinement this kernel can enforce. Asking confines nothing.
#[must_use]
pub fn landlock_support() -> Enforcement {
    let can = |level: CompatLevel, abi: ABI| {
        Ruleset::default()
            .set_compatibility(level)
            .handle_access(AccessFs::from_write(abi))
            .and_then(Ruleset::create)
            .is_ok()
    };
    if can(CompatLevel::HardRequirement, COMPLETE) {
        Enforcement::Full
    } else if can(CompatLevel::HardRequirement, ABI::V1) {
        Enforcement::Partial
    } else {
        Enforcement::None
    }
}

/// The system error behind an error of the library.
fn first_cause(error: impl std::error::Error + 'static) -> io::Error {
    let mut cause: &(dyn std::error::Error + 'static) = &error;
    loop {
        if let Some(number) = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            return io::Error::from_raw_os_error(number);
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => return io::Error::other(error.to_string()),
        }
    }
}
