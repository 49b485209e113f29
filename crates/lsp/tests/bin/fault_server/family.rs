//! The processes around the server: shims before it, grandchildren behind it.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::Path,
    process::{Child, Command, ExitCode},
    time::Duration,
};

use kernel::{Deadline, SystemClock};

use crate::{Anything, script::Grandchild};

/// How long a grandchild lives if nobody kills it, so that a failed test leaves nothing for long.
const GRANDCHILD_LIFE: Duration = Duration::from_secs(600);

/// What this process is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    Server,
    Shim,
    ShimOrphan,
    /// Lives only to leave a grandchild without a parent.
    Orphanage,
    Grandchild,
    GrandchildInOwnSession,
}

/// The command line.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) role: Role,
    pub(crate) script: Option<String>,
    pub(crate) tcp_port: Option<u16>,
    /// Everything but the role, for the next one in line.
    rest: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Anything<Self> {
        let mut options = Self {
            role: Role::Server,
            script: std::env::var("FAULT_SCRIPT").ok(),
            tcp_port: None,
            rest: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} wants a value"));
            match argument.as_str() {
                "--shim" => options.role = Role::Shim,
                "--shim-orphan" => options.role = Role::ShimOrphan,
                "--orphanage" => options.role = Role::Orphanage,
                "--grandchild" => options.role = Role::Grandchild,
                "--grandchild-in-own-session" => options.role = Role::GrandchildInOwnSession,
                "--script" => {
                    let script = value()?;
                    options.rest.extend([argument.clone(), script.clone()]);
                    options.script = Some(script.clone());
                }
                "--tcp" => {
                    let port = value()?;
                    options.rest.extend([argument.clone(), port.clone()]);
                    options.tcp_port = Some(port.parse()?);
                }
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(options)
    }

    /// The same program again, which inherits everything.
    fn again(&self, flag: Option<&str>) -> Anything<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(command.args(&self.rest).args(flag).spawn()?)
    }
}

/// Stands before the server, and passes nothing on but its end.
pub(crate) fn shim(options: &Options) -> Anything<ExitCode> {
    let status = options.again(None)?.wait()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::from(71), ExitCode::from))
}

/// Starts the next in line and goes away at once.
pub(crate) fn leave_an_orphan(options: &Options) -> Anything<ExitCode> {
    let flag = (options.role == Role::Orphanage).then_some("--grandchild");
    drop(options.again(flag)?);
    Ok(ExitCode::SUCCESS)
}

/// Does nothing, and keeps everything open that it has inherited.
pub(crate) fn linger(options: &Options) -> Anything<ExitCode> {
    if options.role == Role::GrandchildInOwnSession {
        rustix::process::setsid()?;
    }
    if let Some(pids) = crate::script::Script::read(options)?.pids {
        note_pid(&pids, "grandchild", 0)?;
    }
    let end = Deadline::after(&SystemClock::shared(), GRANDCHILD_LIFE);
    kernel::block_on(end.passed());
    Ok(ExitCode::SUCCESS)
}

/// Starts a grandchild of the given kind.
pub(crate) fn spawn_grandchild(options: &Options, kind: Grandchild) -> Anything<()> {
    let flag = match kind {
        Grandchild::Plain => "--grandchild",
        Grandchild::OwnSession => "--grandchild-in-own-session",
        Grandchild::Orphan => "--orphanage",
    };
    let mut child = options.again(Some(flag))?;
    if kind == Grandchild::Orphan {
        child.wait()?;
    }
    Ok(())
}

/// Adds a line `PID ROLE START` to the file of processes.
pub(crate) fn note_pid(pids: &Path, role: &str, start: u64) -> Anything<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(pids)?;
    let line = format!("{} {role} {start}\n", std::process::id());
    Ok(file.write_all(line.as_bytes())?)
}

/// Which start of the server this is, counted from one by the lines of the file.
pub(crate) fn count_start(pids: &Path) -> u64 {
    let lines = std::fs::read_to_string(pids).unwrap_or_default();
    let servers = lines.lines().filter(|line| line.contains(" server "));
    servers.count() as u64 + 1
}
