//! Asks git for the history of a tree.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use kernel::{Deadline, Scope};
use process::{Exit, SpawnError};

use super::super::child::{self, Errand, Stopped};
use super::history::History;
use super::log::{self, Whole};
use crate::ports::ForCommands;
use crate::strategy::StrategyError;

/// How many commits are read. Older ones have little to do with current work.
const COMMITS: &str = "--max-count=1000";
/// The output limit. Older commits are left out.
const OUTPUT_LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// How much of git's standard error is included in its failure.
const SAID_LIMIT_CHARS: usize = 300;

/// Settings that override the repository's. Each of these could make git start a program, fetch, or write.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

const QUESTION: [&str; 17] = [
    "log",
    COMMITS,
    "-z",
    "--name-only",
    "--format=tformat:%x01%s",
    "--encoding=UTF-8",
    "--relative",
    "--no-renames",
    "--diff-merges=off",
    "--ignore-submodules=all",
    "--no-ext-diff",
    "--no-textconv",
    "--no-show-signature",
    "--no-color",
    "--no-decorate",
    "--no-notes",
    "-O/dev/null",
];

#[derive(Debug)]
pub(super) struct Read {
    pub(super) history: History,
    pub(super) whole: Whole,
}

/// The history of a tree up to a commit. At the deadline, it returns what was read so far.
///
/// *Cancel safety*: if dropped, git is stopped in the background.
pub(super) async fn history(
    commands: &ForCommands,
    root: &Path,
    commit: &str,
    scope: &Scope,
    deadline: &Deadline,
) -> Result<Read, StrategyError> {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
    let arguments = ["--no-optional-locks", "--no-pager"].into_iter().chain(settings);
    let errand = Errand {
        program: "git".into(),
        arguments: arguments
            .chain(QUESTION)
            .chain([commit, "--"])
            .map(OsString::from)
            .collect(),
        directory: root,
        environment: environment(&commands.environment),
        owner: "context/recent".to_owned(),
        reason: "the history of a tree".to_owned(),
        input: Vec::new(),
        output_limit: OUTPUT_LIMIT_BYTES,
    };
    let run = match child::run(&commands.processes, errand, scope, deadline).await {
        Ok(run) => run,
        Err(SpawnError::Program { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(StrategyError::NotApplicable("git is not installed".to_owned()));
        }
        Err(error) => return Err(StrategyError::Failed(child::in_full(&error))),
    };
    let whole = match run.stopped {
        Stopped::Ended(ended) if ended.exit == Exit::Code(0) => Whole::Yes,
        // The problem is with this repository, and doesn't affect the next one.
        Stopped::Ended(ended) => {
            let said: String = run.said.trim().chars().take(SAID_LIMIT_CHARS).collect();
            let why = format!("git cannot read the history ({}): {said}", ended.exit);
            return Err(StrategyError::NotApplicable(why));
        }
        Stopped::TooMuch => Whole::Enough,
        Stopped::OutOfTime => Whole::No,
        Stopped::Cancelled => return Err(StrategyError::Cancelled),
    };
    Ok(Read {
        history: log::read(&run.output, whole),
        whole,
    })
}

/// Only `PATH`, the user's settings, and no prompts, fetches or locks.
fn environment(given: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    let kept = ["PATH", "HOME", "XDG_CONFIG_HOME"]
        .into_iter()
        .filter_map(|name| {
            let value = given.get(OsStr::new(name))?;
            Some((OsString::from(name), value.clone()))
        });
    let own = [
        ("LC_ALL", "C"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        // An older git doesn't know the former; this one overrides what a repository allows.
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
    ];
    own.map(|(name, value)| (name.into(), value.into()))
        .into_iter()
        .chain(kept)
        .collect()
}
