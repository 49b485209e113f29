//! The keeper: a tiny process between the daemon and one command.
//!
//! It is the parent of the command and, as a child subreaper, of everything that the command leaves behind. So it
//! knows the whole tree, and knows when it is gone: when it has no children anymore. Its standard input is a
//! socket to the daemon. End of file there means that the daemon is dead, and the keeper kills the tree at once,
//! without help.
//!
//! It has two threads. The first one is the parent of the command, reaps, and reports; the second one listens,
//! follows the stop plan (`plan`), and signals. It uses no tokio, and no files except `/proc`.
//!
//! **Invariant:** exit code 0 means that the tree is gone or was reported as unkillable. After any other end, the
//! daemon looks for what is left.

mod control;
mod enter;
pub(crate) mod fresh;
mod launch;
mod plan;
mod receive;
mod report;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, getpid, set_child_subreaper, setsid, wait};

use crate::ended::Exit;
use crate::view::{MAKER_NAME, make_view};
use crate::wire::{FromKeeper, Stage};
use launch::LaunchError;
use report::Report;

/// The name of a keeper in process lists, by which it also knows that it is one.
pub(crate) const KEEPER_NAME: &str = "tidelock-keeper";

/// The same for the kernel: fifteen bytes, which is the limit.
const KEEPER_COMMAND_NAME: &std::ffi::CStr = c"tidelock-keeper";

/// How long a keeper waits for its command. The daemon commits a row in the meantime, which takes milliseconds,
/// or seconds with a remote database.
const WAIT_FOR_COMMAND: Duration = Duration::from_secs(30);

/// If this process was started as a keeper or as the maker of a view, becomes one and never returns. Call it
/// first thing in `main`, while there is one thread: both rely on that.
pub fn keep_if_asked() {
    let name = std::env::args_os().next();
    let ended = match name.as_deref() {
        Some(name) if name == OsStr::new(KEEPER_NAME) => keep(),
        Some(name) if name == OsStr::new(MAKER_NAME) => make_view(),
        _ => return,
    };
    std::process::exit(match ended {
        Ok(()) => 0,
        // The daemon reads the exit code, and there is nobody else to tell.
        Err(_) => 1,
    });
}

/// Runs a keeper.
fn keep() -> io::Result<()> {
    fresh::close_inherited();
    fresh::reset_signals();
    // Started through `/proc/self/exe`, it would be called `exe` in process lists.
    rustix::thread::set_name(KEEPER_COMMAND_NAME)?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    set_socket_timeout(&socket, Timeout::Recv, Some(WAIT_FOR_COMMAND))?;
    let (run, descriptors) = receive::run(&socket)?;
    set_socket_timeout(&socket, Timeout::Recv, None)?;

    let started = match launch::launch(run, descriptors) {
        Ok(started) => started,
        Err(LaunchError { stage, source }) => {
            let errno = source.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            return report::send(&socket, &FromKeeper::Failed { stage, errno });
        }
    };
    let report = Report::new(socket.try_clone()?);
    let (notices, notice) = pipe_with(PipeFlags::CLOEXEC)?;
    let listening = {
        let report = report.clone();
        thread::Builder::new()
            .name("control".into())
            .spawn(move || control::run(&socket, &notices, &report))
    };
    if let Err(error) = listening {
        control::kill_everything();
        return Err(error);
    }
    report.say(&FromKeeper::Started {
        command: started.command,
        confinement: started.confinement,
    });
    reap(started.command.pid, &report, &notice)
}

/// Reaps everything, until there is nothing left to reap.
fn reap(command: u32, report: &Report, notice: &OwnedFd) -> io::Result<()> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().cast_unsigned() == command => {
                let exit = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exit::Code(code),
                    (None, Some(signal)) => Exit::Signal(signal),
                    (None, None) => Exit::Unknown,
                };
                report.say(&FromKeeper::Exited { exit });
                rustix::io::write(notice, &[1])?;
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => report.say_last_and_exit(Vec::new()),
            Err(error) => return Err(error.into()),
        }
    }
}

impl From<io::Error> for LaunchError {
    fn from(source: io::Error) -> Self {
        Self {
            stage: Stage::Keeper,
            source,
        }
    }
}
