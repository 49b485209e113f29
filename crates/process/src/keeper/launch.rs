//! Starts the command.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::Mode;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
    umask,
};

use super::enter::{Namespaces, give_up_rights};
use super::receive::Descriptors;
use crate::confine::{self, Terminals};
use crate::descriptors;
use crate::identity::Identity;
use crate::spec::{Enforcement, Limits};
use crate::wire::{Run, Stage};

/// A command that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) command: Identity,
    pub(super) confinement: Enforcement,
}

/// A command that couldn't be started.
#[derive(Debug)]
pub(super) struct LaunchError {
    pub(super) stage: Stage,
    pub(super) source: io::Error,
}

fn at(stage: Stage) -> impl Fn(io::Error) -> LaunchError {
    move |source| LaunchError { stage, source }
}

/// Starts the command in its own process group, and closes our copies of its descriptors.
pub(super) fn launch(run: Run, descriptors: Descriptors) -> Result<Started, LaunchError> {
    let directory = PathBuf::from(OsString::from(run.directory));
    let write_below = run.write_below.map(|directories| {
        let paths = directories.into_iter().map(OsString::from);
        paths.map(PathBuf::from).collect()
    });
    let (progress, progress_end) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;

    let mut command = Command::new(OsString::from(run.program));
    command
        .args(run.arguments.into_iter().map(OsString::from))
        .env_clear()
        .envs(
            run.environment
                .into_iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
        .process_group(0)
        .stdin(Stdio::from(descriptors.stdin))
        .stdout(Stdio::from(descriptors.stdout))
        .stderr(Stdio::from(descriptors.stderr));
    let setup = Setup {
        keeper: getpid(),
        namespaces: descriptors.namespaces,
        directory,
        limits: run.limits,
        open_files_before: run.open_files_before,
        write_below,
        progress: File::from(progress_end),
    };
    before_exec(&mut command, setup);
    let spawned = command.spawn();
    // This drops the command's descriptors and the write end of `progress`: only the child's copies are left.
    drop(command);
    let reached = read_progress(File::from(progress));
    let child = spawned.map_err(at(stage_of(reached)))?;
    let command = Identity::of(child.id()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(Started {
        command,
        confinement: enforcement_of(reached),
    })
}

/// What is done in the child, between fork and exec.
#[derive(Debug)]
struct Setup {
    keeper: Pid,
    /// Everything below is looked up in them.
    namespaces: Option<Namespaces>,
    directory: PathBuf,
    limits: Limits,
    open_files_before: Option<u64>,
    write_below: Option<Vec<PathBuf>>,
    /// Gets one letter per step. The last one tells how far it came.
    progress: File,
}

const AT_VIEW: u8 = b'v';
const AT_DIRECTORY: u8 = b'd';
/// The umask of a command: files aren't writable by others. Shells use it nearly everywhere.
const USUAL_MASK: u32 = 0o022;
/// The file for a process's OOM score adjustment: from -1000 (never kill) to 1000.
const OOM_ADJUSTMENT: &str = "/proc/self/oom_score_adj";
/// The adjustment of a command: as if it used half of the memory in addition.
const COMMAND_OOM_ADJUSTMENT: i32 = 500;

const AT_PARENT: u8 = b'p';
const AT_LIMITS: u8 = b'l';
const AT_RIGHTS: u8 = b'r';
const AT_CONFINEMENT: u8 = b'c';
const AT_PROGRAM_FULL: u8 = b'F';
const AT_PROGRAM_PARTIAL: u8 = b'P';
const AT_PROGRAM_NONE: u8 = b'N';

impl Setup {
    fn apply(&mut self) -> io::Result<()> {
        self.progress.write_all(&[AT_LIMITS])?;
        // This comes first, because a view may cover `/proc`.
        offer_to_the_oom_killer()?;
        let terminals = confine::terminals_here();
        if let Some(namespaces) = &self.namespaces {
            self.progress.write_all(&[AT_VIEW])?;
            namespaces.enter()?;
        }
        // `std` wouldn't tell whether the directory or the program is missing, and would resolve it outside the
        // view.
        self.progress.write_all(&[AT_DIRECTORY])?;
        std::env::set_current_dir(&self.directory)?;
        self.progress.write_all(&[AT_PARENT])?;
        // After entering the view, because a change of credentials resets it.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The signal is for a death from now on; the keeper may already be dead.
        if getppid() != Some(self.keeper) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.progress.write_all(&[AT_LIMITS])?;
        descriptors::take_back(self.open_files_before)?;
        apply_limits(self.limits)?;
        // Files of the daemon are for its user alone; files of a command are the user's own business.
        umask(Mode::from_raw_mode(USUAL_MASK));
        if self.namespaces.is_some() {
            self.progress.write_all(&[AT_RIGHTS])?;
            give_up_rights()?;
        }
        self.progress.write_all(&[AT_CONFINEMENT])?;
        let enforced = match self.write_below.take() {
            None => Enforcement::None,
            Some(directories) => {
                let terminals = match confine::terminals_here() == terminals {
                    true => Terminals::ProcessesShared,
                    false => Terminals::Private,
                };
                confine::prepare(directories.into_iter(), terminals)?.enforce()?
            }
        };
        let letter = match enforced {
            Enforcement::Full => AT_PROGRAM_FULL,
            Enforcement::Partial => AT_PROGRAM_PARTIAL,
            Enforcement::None => AT_PROGRAM_NONE,
        };
        self.progress.write_all(&[letter])
    }
}

#[expect(
    unsafe_code,
    reason = "the view, the parent-death signal, limits and Landlock belong to the child, and only code between fork \
              and exec can set them there"
)]
fn before_exec(command: &mut Command, mut setup: Setup) {
    // SAFETY: after a fork only the calling thread exists in the child, and locks that other threads held (such
    // as the allocator's) stay locked there forever. The keeper has one thread at this moment: `keep_if_asked` is
    // the first thing in `main`, and the control thread is started after the command. So nobody holds a lock, and
    // the closure may do anything, including allocate. What it owns lives in `command`, which outlives the fork.
    unsafe {
        command.pre_exec(move || setup.apply());
    }
}

/// When memory runs out, the system should kill a command before the daemon, which may be far larger than a
/// command that has just started. The adjustment is inherited by everything that the command starts; only root
/// can lower it again.
fn offer_to_the_oom_killer() -> io::Result<()> {
    let now = fs::read_to_string(OOM_ADJUSTMENT)?;
    match now.trim().parse::<i32>() {
        Ok(now) if now >= COMMAND_OOM_ADJUSTMENT => Ok(()),
        _ => fs::write(OOM_ADJUSTMENT, COMMAND_OOM_ADJUSTMENT.to_string()),
    }
}

/// Lowers limits, both soft and hard. None is raised.
fn apply_limits(limits: Limits) -> io::Result<()> {
    for (resource, limit) in [
        (Resource::As, limits.address_space_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Core, limits.core_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Nproc, limits.processes),
    ] {
        let Some(limit) = limit else {
            continue;
        };
        let lowered = getrlimit(resource).maximum.map_or(limit, |now| now.min(limit));
        let both = Rlimit {
            current: Some(lowered),
            maximum: Some(lowered),
        };
        setrlimit(resource, both)?;
    }
    Ok(())
}

/// The last letter, once the child has executed its program or failed.
fn read_progress(mut progress: File) -> Option<u8> {
    let mut letters = Vec::new();
    progress.read_to_end(&mut letters).ok()?;
    letters.last().copied()
}

fn stage_of(reached: Option<u8>) -> Stage {
    match reached {
        Some(AT_VIEW | AT_PARENT | AT_RIGHTS) => Stage::Keeper,
        Some(AT_DIRECTORY) => Stage::Directory,
        Some(AT_LIMITS) => Stage::Limits,
        Some(AT_CONFINEMENT) => Stage::Confinement,
        _ => Stage::Program,
    }
}

fn enforcement_of(reached: Option<u8>) -> Enforcement {
    match reached {
        Some(AT_PROGRAM_FULL) => Enforcement::Full,
        Some(AT_PROGRAM_PARTIAL) => Enforcement::Partial,
        _ => Enforcement::None,
    }
}
