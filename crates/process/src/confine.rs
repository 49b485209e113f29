//! Confinement by Landlock: write only below some directories. What the kernel cannot do is said, never assumed.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, make_bitflags,
};

use crate::spec::Enforcement;

/// The version of Landlock that can refuse every way to write a file: the first one left renames between directories
/// out of its control, the second one truncation. Later ones add devices, the network and sockets, which are not what a
/// confinement is about here.
const COMPLETE: ABI = ABI::V3;

/// Devices that keep nothing. Programs write to them without a thought, and break if they cannot. The terminals below
/// [`TERMINALS`] are not among them: whoever can write to somebody else's terminal can type and copy there.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
];

/// Where terminals are.
const TERMINALS: &str = "/dev/pts";

/// The terminals that a command finds at their place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Terminals {
    /// Everybody's. The command may write only to those that it was given.
    Shared,
    /// Those of its own view.
    Private,
}

/// Tells one set of terminals from another, so that a command knows whether it has entered a view with its own.
pub(crate) fn terminals_here() -> Option<u64> {
    Some(rustix::fs::stat(TERMINALS).ok()?.st_dev)
}

/// A confinement that is ready to be taken on.
#[derive(Debug)]
pub(crate) struct Prepared {
    ruleset: RulesetCreated,
}

/// Prepares a confinement. A place that is not there is an error: nobody would know that nothing can be written.
pub(crate) fn prepare(places: impl Iterator<Item = PathBuf>, terminals: Terminals) -> io::Result<Prepared> {
    let mut ruleset = handled()?;
    for place in places {
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
        Terminals::Shared => {}
        Terminals::Private => {
            let own = PathFd::new(Path::new(TERMINALS)).map_err(first_cause)?;
            ruleset = add(ruleset, own, file_rights())?;
        }
    }
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    for stream in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        // So that the command can open its own terminal once more, by way of `/dev/stdout` for one.
        if rustix::termios::isatty(stream) {
            ruleset = add(ruleset, stream, file_rights())?;
        }
    }
    Ok(Prepared { ruleset })
}

/// What can be done to something that is not a directory.
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
    /// Takes it on, for this thread and everything that it starts. It cannot be taken off.
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

/// How much of a confinement this kernel can enforce. Nothing is confined by asking.
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

/// The error of the system behind an error of the library.
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
