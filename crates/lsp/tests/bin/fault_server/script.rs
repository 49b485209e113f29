//! What the server is told to do: every member may be left out.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Anything,
    family::{self, Options},
};

/// The script.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Script {
    /// A file that gets a line `PID ROLE START` from every process: `server` or `grandchild`; starts are counted by it.
    pub(crate) pids: Option<PathBuf>,
    /// A file that gets every message received, one JSON object a line.
    pub(crate) record: Option<PathBuf>,
    /// Written to standard error at the start.
    pub(crate) stderr: Option<String>,
    /// Ends at the start, before anything is read.
    pub(crate) exit_at_start: Option<i32>,
    /// Ends instead of answering a request after so many, with that code.
    pub(crate) exit_after_requests: Option<ExitAfter>,
    /// Does not end when it is asked to by a signal.
    pub(crate) trap_term: bool,
    /// Does not answer `shutdown`.
    pub(crate) ignore_shutdown: bool,
    /// Does not end at `exit`, nor at the end of its input.
    pub(crate) ignore_exit: bool,
    /// Ends when the process dies whose id was given in `initialize`.
    pub(crate) watch_parent: bool,
    /// Leaves a process behind it that inherits its pipes.
    pub(crate) grandchild: Option<Grandchild>,
    /// What becomes of `initialize`.
    pub(crate) initialize: Initialize,
    /// Put over the capabilities that follow from the rest.
    pub(crate) capabilities: Map<String, Value>,
    /// `utf-8`, `utf-16` (the default) or `utf-32`.
    pub(crate) position_encoding: Encoding,
    /// How documents are kept in step.
    pub(crate) sync: Sync,
    /// How diagnostics are given out.
    pub(crate) diagnostics: Diagnostics,
    /// Said before the answer to `initialize`.
    pub(crate) before_initialize: Vec<Said>,
    /// Said after `initialized` has come.
    pub(crate) after_initialized: Vec<Said>,
    /// Work that begins with `initialized`; the server is ready when it ends.
    pub(crate) progress: Option<Progress>,
    /// Tells `experimental/serverStatus` at the beginning and the end of work.
    pub(crate) server_status: bool,
    /// The text of every hover, instead of what is known of the document.
    pub(crate) hover_text: Option<String>,
    /// How many references there are to everything.
    pub(crate) references: Option<u32>,
    /// Faults that methods meet.
    pub(crate) on: BTreeMap<String, Trigger>,
    /// Members that replace those above at the n-th start; this wants `pids`.
    pub(crate) by_start: BTreeMap<u64, Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitAfter {
    pub(crate) requests: u64,
    pub(crate) code: i32,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grandchild {
    /// A child like any other.
    Plain,
    /// One that has left the session and the process group.
    OwnSession,
    /// One whose parent is gone.
    Orphan,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Initialize {
    #[default]
    Answer,
    /// Never answers.
    Hang,
    /// Answers once this file exists.
    HoldUntilFile(PathBuf),
    /// Answers after so many milliseconds.
    DelayMs(u64),
    /// Answers with an error.
    Error { code: i64, message: String },
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub(crate) enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[default]
    #[serde(rename = "utf-16")]
    Utf16,
    #[serde(rename = "utf-32")]
    Utf32,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sync {
    None,
    Full,
    #[default]
    Incremental,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Diagnostics {
    None,
    #[default]
    Push,
    Pull,
    Both,
}

/// Something that the server says by itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Value,
    #[serde(default)]
    pub(crate) kind: SaidKind,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SaidKind {
    #[default]
    Notification,
    Request,
}

/// Work with progress.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    #[serde(default = "indexing")]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) steps: u32,
    #[serde(default)]
    pub(crate) step_ms: u64,
    /// Does not end before this file exists.
    #[serde(default)]
    pub(crate) hold_until_file: Option<PathBuf>,
}

fn indexing() -> String {
    "Indexing".to_owned()
}

/// A fault that a method meets.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Trigger {
    #[serde(flatten)]
    pub(crate) fault: Fault,
    /// How often; for ever, if it is left out.
    pub(crate) times: Option<u32>,
}

/// The ways to misbehave. Those marked with * answer the request as well, as it should be.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Ends.
    Exit {
        #[serde(default)]
        code: i32,
        #[serde(default)]
        stderr: String,
    },
    /// Ends by a signal, with a core dump if there are any.
    Abort,
    /// Does not answer.
    Silence,
    /// * After so many milliseconds.
    Delay { ms: u64 },
    /// * Once this file exists.
    HoldUntilFile { path: PathBuf },
    /// Answers with an error.
    Error { code: i64, message: String },
    /// Answers with this.
    Result { result: Value },
    /// * And once more.
    AnswerTwice,
    /// * After so many answers to requests that nobody made.
    UnknownIds { count: u32 },
    /// Sends a body that is no JSON.
    BrokenJson,
    /// Sends a header with this length, and an empty object.
    ContentLength { value: String },
    /// Sends headers without a length.
    MissingLength,
    /// Sends a header of so many bytes that does not end.
    EndlessHeader { bytes: usize },
    /// Prints a text where only messages may stand.
    Garbage { text: String },
    /// Closes its output and lives on.
    CloseStdout,
    /// * And closes its input and lives on.
    CloseStdin,
    /// * And reads nothing any more.
    StopReading,
    /// Writes nothing any more.
    StopWriting,
    /// Answers with so many bytes.
    Oversized {
        bytes: usize,
        #[serde(default)]
        id: IdPlace,
    },
    /// * So many bytes at a time, with so many milliseconds in between.
    Drip { bytes: usize, every_ms: u64 },
    /// Sends the first half of the answer.
    HalfMessage,
    /// * After so many messages with so many bytes.
    Flood {
        messages: u32,
        #[serde(default)]
        bytes: usize,
        #[serde(default)]
        kind: SaidKind,
    },
}

/// Where the id of an oversized answer stands.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IdPlace {
    #[default]
    First,
    Last,
    Absent,
}

impl Script {
    /// Reads the script that was given on the command line or in the environment.
    pub(crate) fn read(options: &Options) -> Anything<Self> {
        let text = match options.script.as_deref() {
            None => "{}".to_owned(),
            Some(text) if text.trim_start().starts_with('{') => text.to_owned(),
            Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?,
        };
        let script: Self = serde_json::from_str(&text)?;
        let start = script.pids.as_deref().map_or(1, family::count_start);
        let Some(changes) = script.by_start.get(&start) else {
            return Ok(script);
        };
        let mut members: Map<String, Value> = serde_json::from_str(&text)?;
        members.extend(changes.clone());
        Ok(serde_json::from_value(Value::Object(members))?)
    }
}
