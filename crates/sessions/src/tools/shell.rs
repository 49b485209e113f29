//! `shell`: a command in the sandbox, as a job.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use protocol::ToolState;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional, required};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::text::{Excerpt, SHOWN_LIMIT_BYTES, TextPieces, one_line};
use super::tool::{About, Tool, ToolOutput};
use crate::ports::{Ports, ShellEnd, ShellOrder};
use crate::sink::ToolSink;

/// How many pieces of output may be queued. When the queue is full, the runner waits, and so does the command.
const QUEUE_PIECES: usize = 16;
/// The most output of one command that goes into the turn's stream. The job keeps all of it; more would be unreadable
/// in a conversation.
const STREAM_LIMIT_BYTES: usize = 1024 * 1024;
/// The longest command line. Linux doesn't accept a longer argument.
const LINE_LIMIT_BYTES: usize = 128 * 1024 - 1;
/// The longest timeout that can be requested.
const LONGEST_SECONDS: u64 = 6 * 60 * 60;

#[derive(Debug)]
pub(super) struct Shell {
    line: String,
    directory: SandboxPath,
    timeout: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    line: String,
    directory: Option<String>,
    timeout_seconds: Option<u64>,
}

#[async_trait]
impl Tool for Shell {
    type Arguments = Arguments;
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = "Runs a shell command in the sandbox, at the root of the workspace, and returns its \
        output and exit status. It has no terminal and no input. What it changes in the workspace becomes part of the plan. \
        Use the other tools to read, search and change files.";
    const ACCESS: Access = Access::WritesAnywhere;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required(
                "line",
                Takes::Text,
                "A line for `sh -c`, for example `cargo test`.",
            ),
            optional(
                "directory",
                Takes::Text,
                "The directory to run it in. Default: the root of the workspace.",
            ),
            optional(
                "timeout_seconds",
                Takes::Number {
                    least: 1,
                    most: LONGEST_SECONDS,
                },
                "Stop it after so many seconds.",
            ),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        let refused = |why: &str| Err(ToolError::Refused(why.to_owned()));
        if arguments.line.trim().is_empty() {
            return refused("`line` is empty.");
        }
        if arguments.line.contains('\0') {
            return refused("`line` has a NUL in it.");
        }
        if arguments.line.len() > LINE_LIMIT_BYTES {
            return refused("`line` is too long. Write it to a file with `write`, and run that.");
        }
        Ok(Self {
            line: arguments.line,
            directory: running::place_or_root(options, arguments.directory.as_deref()).await?,
            timeout: arguments
                .timeout_seconds
                .map_or(options.timeout, Duration::from_secs),
        })
    }

    fn about(&self) -> About {
        About {
            title: one_line(&format!("$ {}", self.line)),
            subjects: vec![self.line.clone()],
            touches: Touches::Everything,
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let plan = running.plan().await?;
        let options = running.options;
        let order = ShellOrder {
            plan,
            line: self.line,
            // The system gets the raw path, not its display form.
            directory: match self.directory.as_path().map(|path| path.as_path().to_str()) {
                None => String::new(),
                Some(Some(path)) => path.to_owned(),
                Some(None) => {
                    return Err(ToolError::Refused(
                        "the name of `directory` is not text. Use `cd` in the line instead.".to_owned(),
                    ));
                }
            },
            environment: Vec::new(),
            actor: options.desk.actor(),
            timeout: self.timeout,
            scope: options.scope.clone(),
        };
        let (sender, output) = mpsc::channel(QUEUE_PIECES);
        let (over, is_over) = oneshot::channel();
        // Run both at once: a turn with a slow stream must not keep the command from being stopped.
        let (ended, gathered) = tokio::join!(
            async {
                let ended = options.ports.shell.run(order, sender).await;
                drop(over);
                ended
            },
            gather(output, is_over, running.sink)
        );
        // However the command ended, it may have changed something.
        options.desk.tell_changes(Vec::new()).await;
        match ended {
            Ok(end) => Ok(output_of(end, gathered, options.scope.is_cancelled())),
            Err(_) if options.scope.is_cancelled() => Err(ToolError::Cancelled),
            Err(error) => Err(ToolError::Refused(format!("the command was not run: {error}"))),
        }
    }
}

/// Collects output until the command is over, and shows it as it comes.
async fn gather(
    mut output: mpsc::Receiver<Bytes>,
    mut is_over: oneshot::Receiver<()>,
    sink: &ToolSink,
) -> Excerpt {
    let mut show = Show {
        sink,
        excerpt: Excerpt::new(SHOWN_LIMIT_BYTES),
        pieces: TextPieces::default(),
        room: STREAM_LIMIT_BYTES,
    };
    loop {
        tokio::select! {
            biased;
            piece = output.recv() => match piece {
                Some(piece) => show.take(&piece).await,
                None => break,
            },
            // All output sent before the end has arrived by now. A sender that is kept longer doesn't hold
            // anything up.
            _ = &mut is_over => {
                while let Ok(piece) = output.try_recv() {
                    show.take(&piece).await;
                }
                break;
            }
        }
    }
    show.finish().await
}

/// Passes output on to the stream and the answer.
struct Show<'a> {
    sink: &'a ToolSink,
    excerpt: Excerpt,
    pieces: TextPieces,
    /// How many more bytes go into the stream.
    room: usize,
}

impl Show<'_> {
    async fn take(&mut self, piece: &[u8]) {
        self.excerpt.add(piece);
        if self.room == 0 {
            return;
        }
        let fits = piece.len().min(self.room);
        self.room -= fits;
        let text = self.pieces.push(&piece[..fits]);
        self.say(&text).await;
        if self.room == 0 {
            self.say("\n[the output goes on; all of it is in the job]\n")
                .await;
        }
    }

    async fn say(&self, text: &str) {
        // A turn that accepts nothing more is being stopped, and so is the command.
        if !text.is_empty() && self.sink.output(text).await.is_err() {
            tracing::debug!("output of a command after its turn");
        }
    }

    async fn finish(mut self) -> Excerpt {
        if self.room > 0 {
            let rest = std::mem::take(&mut self.pieces).finish();
            self.say(&rest).await;
        }
        self.excerpt
    }
}

fn output_of(end: ShellEnd, gathered: Excerpt, is_stopped: bool) -> ToolOutput {
    let (is_cut, job) = (!gathered.is_whole(), end.job);
    let mut text = gathered.text(&format!("the full output is in {job}"));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{}]", end.text));
    ToolOutput {
        state: match end.exit_code {
            _ if is_stopped => ToolState::Cancelled,
            Some(0) => ToolState::Done,
            _ => ToolState::Failed,
        },
        text,
        full: is_cut.then(|| job.to_string()),
    }
}
