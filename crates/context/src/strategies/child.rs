//! Runs a child process for one request: it reads its input, writes its answer and exits, or is killed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kernel::{Deadline, Scope};
use process::{
    Child, Confinement, Ended, Limits, Outlet, Processes, SpawnError, Spec, StandardError, StopPlan,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[derive(Debug)]
pub(super) struct Errand<'a> {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) directory: &'a Path,
    pub(super) environment: BTreeMap<OsString, OsString>,
    /// The owner and the reason that are shown to people.
    pub(super) owner: String,
    pub(super) reason: String,
    pub(super) input: Vec<u8>,
    /// The most bytes of its answer.
    pub(super) output_limit: usize,
}

/// The result. All processes of the command have ended.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) output: Vec<u8>,
    /// The end of its standard error.
    pub(super) said: String,
    pub(super) stopped: Stopped,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Stopped {
    Ended(Ended),
    TooMuch,
    OutOfTime,
    Cancelled,
}

/// Runs a command to its end, or kills it and everything that it started.
///
/// *Cancel safety*: if dropped, the command is stopped in the background.
pub(super) async fn run(
    processes: &Processes,
    errand: Errand<'_>,
    scope: &Scope,
    deadline: &Deadline,
) -> Result<Run, SpawnError> {
    let (input, limit) = (errand.input.clone(), errand.output_limit);
    // A start is short, and isn't interrupted: otherwise a started child would only be stopped later, with no
    // caller waiting for that.
    let child = processes.spawn(errand.spec()).await?;
    let mut output = Vec::new();
    let stopped = tokio::select! {
        biased;
        _ = scope.wait() => Stopped::Cancelled,
        () = deadline.clone().passed() => Stopped::OutOfTime,
        stopped = talk(&child, &input, limit, &mut output) => stopped,
    };
    if !matches!(stopped, Stopped::Ended(_)) {
        child.stop(StopPlan::NOW).await;
    }
    Ok(Run {
        output,
        said: child.stderr_tail(),
        stopped,
    })
}

/// Writes and reads concurrently, because the command may answer before it has read everything.
async fn talk(child: &Child, input: &[u8], limit: usize, output: &mut Vec<u8>) -> Stopped {
    let writing = async {
        if let Some(mut pipe) = child.stdin() {
            // A command doesn't have to read its input.
            pipe.write_all(input).await.ok();
        }
        // The pipe is closed by now, so that the command sees the end of its input.
        std::future::pending::<bool>().await
    };
    let is_whole = tokio::select! {
        is_whole = read(child.stdout(), limit, output) => is_whole,
        never = writing => never,
    };
    if is_whole {
        Stopped::Ended(child.ended().await)
    } else {
        Stopped::TooMuch
    }
}

async fn read(outlet: Option<Outlet>, limit: usize, output: &mut Vec<u8>) -> bool {
    let Some(outlet) = outlet else {
        return true;
    };
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    // A read error leaves the answer incomplete, which is noticed when it is parsed.
    outlet.take(one_more).read_to_end(output).await.ok();
    let is_whole = output.len() <= limit;
    output.truncate(limit);
    is_whole
}

impl Errand<'_> {
    fn spec(self) -> Spec {
        Spec {
            program: self.program,
            arguments: self.arguments,
            directory: self.directory.to_owned(),
            environment: self.environment,
            owner: self.owner,
            reason: self.reason,
            generation: 1,
            limits: Limits {
                core_bytes: Some(0),
                ..Limits::default()
            },
            confinement: Confinement::None,
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: None,
        }
    }
}

pub(super) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}
