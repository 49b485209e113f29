//! Confinement by Landlock: write only below some directories. What the kernel cannot do is said, never assumed.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, make_bitflags,
};

use crate::spec::Enforcement;

/// The version of Landlock that can refuse every way to write a file: the first one left renames between directories
/// out of its control, the second one truncation. Later ones add devices, the network and sockets, which are not what a
/// confinement is about here.
const COMPLETE: ABI = ABI::V3;

/// Devices that keep nothing. Programs write to them without a thought, and break if they cannot.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// A confinement that is ready to be taken on.
#[derive(Debug)]
pub(crate) struct Prepared {
    ruleset: RulesetCreated,
}

/// Prepares a confinement. A directory that is not there is an error: nobody would know that nothing can be written.
pub(crate) fn prepare(directories: impl Iterator<Item = PathBuf>) -> io::Result<Prepared> {
    let mut ruleset = handled()?;
    for directory in directories {
        let opened = PathFd::new(directory).map_err(first_cause)?;
        let rule = PathBeneath::new(opened, AccessFs::from_write(COMPLETE));
        ruleset = ruleset.add_rule(rule).map_err(first_cause)?;
    }
    let write: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ WriteFile | Truncate });
    for device in DEVICES.iter().filter_map(|device| PathFd::new(device).ok()) {
        ruleset = ruleset
            .add_rule(PathBeneath::new(device, write))
            .map_err(first_cause)?;
    }
    Ok(Prepared { ruleset })
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
