//! A session as a document: JSON for programs, Markdown for people.
//!
//! It's produced turn by turn, oldest first, so that a session of any length can be exported with little memory: only
//! one turn and the ids of all turns are held at once.

use std::fmt::Write as _;

use eventlog::{Log, UnixMs};
use protocol::{
    PermissionAnswer, SessionId, ToolState, TurnError, TurnId, TurnItem, TurnState, TurnTranscript, Usage,
};
use serde::Serialize;
use serde_json::Value;

use crate::error::SessionError;
use crate::follow::transcript;
use crate::service::Sessions;
use crate::session::Session;
use crate::store;
use crate::turn::Turn;

/// How much of a tool's output goes into a Markdown document.
const SHOWN_OUTPUT_BYTES: usize = 2000;
/// How much of a tool's arguments goes into a Markdown document.
const SHOWN_ARGUMENT_BYTES: usize = 1000;

/// The format of an exported session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExportFormat {
    /// One JSON object: `session`, and `turns`.
    Json,
    /// Text for people.
    Markdown,
}

/// A session that is being exported.
#[derive(Debug)]
pub struct Export {
    log: Log,
    session: Session,
    format: ExportFormat,
    /// The turns still to be exported; the next one is last.
    turns: Vec<TurnId>,
    next: Next,
}

/// A turn in an export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedTurn {
    /// The turn.
    pub turn: Turn,
    /// Everything said in it so far.
    pub transcript: TurnTranscript,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    Head,
    FirstTurn,
    Turn,
    Nothing,
}

impl Sessions {
    /// Exports a session as of now: the turns that have begun, oldest first, including those from before a fork, and
    /// then the queued ones. *Cancel safety*: may be dropped at any time.
    pub async fn export(&self, session: SessionId, format: ExportFormat) -> Result<Export, SessionError> {
        let session = self.get(session).await?;
        Export::open(&self.shared.log, session, format).await
    }
}

impl Export {
    pub(crate) async fn open(
        log: &Log,
        session: Session,
        format: ExportFormat,
    ) -> Result<Self, SessionError> {
        let mut turns: Vec<TurnId> = session.record.queue.iter().rev().copied().collect();
        let mut next = session.record.last_turn;
        while let Some(turn) = next {
            turns.push(turn);
            next = match store::turn(log, turn).await {
                Ok(found) => found.record.previous,
                // It's left out later, when its turn comes.
                Err(SessionError::TurnNotFound(_)) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(Self {
            log: log.clone(),
            session,
            format,
            turns,
            next: Next::Head,
        })
    }

    /// The session, as it was when the export began.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The next turn; `None` after the last one. A turn that was removed meanwhile is left out. *Cancel safety*: if
    /// dropped midway, nothing is skipped.
    pub async fn next_turn(&mut self) -> Result<Option<ExportedTurn>, SessionError> {
        while let Some(id) = self.turns.last().copied() {
            let found = exported(&self.log, id).await;
            self.turns.pop();
            match found {
                Err(SessionError::TurnNotFound(_)) => {}
                found => return found.map(Some),
            }
        }
        Ok(None)
    }

    /// The next piece of the document; `None` after the last one. *Cancel safety*: if dropped midway, nothing is
    /// skipped.
    pub async fn next_piece(&mut self) -> Result<Option<String>, SessionError> {
        match self.next {
            Next::Nothing => Ok(None),
            Next::Head => {
                self.next = Next::FirstTurn;
                Ok(Some(match self.format {
                    ExportFormat::Json => json_head(&self.session),
                    ExportFormat::Markdown => markdown_head(&self.session),
                }))
            }
            Next::FirstTurn | Next::Turn => {
                let turn = self.next_turn().await?;
                let separator = if self.next == Next::FirstTurn { "" } else { "," };
                self.next = if turn.is_some() { Next::Turn } else { Next::Nothing };
                Ok(Some(match (self.format, turn) {
                    (ExportFormat::Json, Some(turn)) => format!("{separator}\n{}", json_turn(&turn)),
                    (ExportFormat::Json, None) => "\n]}\n".to_owned(),
                    (ExportFormat::Markdown, Some(turn)) => markdown_turn(&turn),
                    (ExportFormat::Markdown, None) => String::new(),
                }))
            }
        }
    }
}

async fn exported(log: &Log, id: TurnId) -> Result<ExportedTurn, SessionError> {
    let turn = store::turn(log, id).await?;
    let (_, transcript) = transcript(log, id).await?;
    Ok(ExportedTurn { turn, transcript })
}

#[derive(Serialize)]
struct JsonSession<'a> {
    id: SessionId,
    state: &'static str,
    title: &'a str,
    directory: String,
    agent: &'a str,
    opened_at_ms: UnixMs,
    prompts: u64,
}

fn json_head(session: &Session) -> String {
    let record = &session.record;
    let head = JsonSession {
        id: session.id,
        state: record.state().name(),
        title: &record.title,
        directory: record.facts.directory.display().to_string(),
        agent: &record.agent.name,
        opened_at_ms: record.facts.opened_at,
        prompts: record.prompts,
    };
    format!("{{\"session\":{},\"turns\":[", one_line(&head))
}

#[derive(Serialize)]
struct JsonTurn<'a> {
    id: TurnId,
    state: TurnState,
    number: u64,
    prompt: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<&'a str>,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    accepted_at_ms: UnixMs,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at_ms: Option<UnixMs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at_ms: Option<UnixMs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a TurnError>,
    items: &'a [TurnItem],
}

fn json_turn(exported: &ExportedTurn) -> String {
    let (turn, record) = (&exported.turn, &exported.turn.record);
    one_line(&JsonTurn {
        id: turn.id,
        state: record.state,
        number: record.number,
        prompt: &record.prompt.text,
        attachments: attachments(turn),
        agent: &record.agent.name,
        model: record.agent.model.as_deref(),
        accepted_at_ms: record.accepted_at,
        started_at_ms: record.started_at,
        ended_at_ms: record.ended_at,
        plan: record.plan.map(|plan| plan.to_string()),
        usage: record.usage,
        error: record.error.as_ref(),
        items: &exported.transcript.items,
    })
}

/// A struct of strings and numbers always serializes to JSON.
fn one_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn attachments(turn: &Turn) -> Vec<&str> {
    let attachments = turn.record.prompt.attachments.iter();
    attachments
        .map(|attachment| attachment.about.name.as_str())
        .collect()
}

fn markdown_head(session: &Session) -> String {
    let record = &session.record;
    let title = if record.title.is_empty() {
        "Session"
    } else {
        &record.title
    };
    format!(
        "# {title}\n\n`{}` in `{}`, agent `{}`, {} prompts\n",
        session.id,
        record.facts.directory.display(),
        record.agent.name,
        record.prompts,
    )
}

fn markdown_turn(exported: &ExportedTurn) -> String {
    let (turn, record) = (&exported.turn, &exported.turn.record);
    let mut text = format!(
        "\n## {}. Prompt\n\n{}\n",
        record.number,
        record.prompt.text.trim_end()
    );
    let attachments = attachments(turn);
    if !attachments.is_empty() {
        text += &format!("\nWith: {}\n", attachments.join(", "));
    }
    text += &format!("\n### {}\n", record.agent.name);
    for item in &exported.transcript.items {
        text.push('\n');
        text += &markdown_item(item);
    }
    text += &format!("\n*{}*", record.state.name());
    if let Some(error) = &record.error {
        text += &format!(": {} (`{}`)", error.text, error.code);
    }
    text.push('\n');
    text
}

fn markdown_item(item: &TurnItem) -> String {
    match item {
        TurnItem::Text { text } => format!("{}\n", text.trim_end()),
        TurnItem::Reasoning { text } => text.lines().map(|line| format!("> {line}\n")).collect(),
        TurnItem::Tool {
            tool,
            title,
            arguments,
            output,
            state,
            answer,
            ..
        } => {
            let state = state.map_or("not ended", ToolState::name);
            let asked = match arguments {
                _ if !title.is_empty() => title.clone(),
                Value::String(so_far) => so_far.clone(),
                whole => whole.to_string(),
            };
            let said = match output.as_str() {
                "" => answer.as_deref().unwrap_or_default(),
                output => output,
            };
            fenced(&format!(
                "{tool}: {state}\n{}{}",
                shortened(&asked, SHOWN_ARGUMENT_BYTES),
                shortened(said, SHOWN_OUTPUT_BYTES)
            ))
        }
        TurnItem::Permission {
            tool,
            subject,
            answer,
            by,
            ..
        } => {
            let answer = answer.map_or("no answer yet", PermissionAnswer::name);
            let by = match by.as_deref() {
                None | Some("") => String::new(),
                Some(by) => format!(", {by}"),
            };
            format!("Permission for {tool} `{subject}`: {answer}{by}\n")
        }
        TurnItem::Plan { plan, files, .. } => format!("Plan `{plan}`: {files} files changed\n"),
        TurnItem::Trouble { code, text } => format!("Trouble (`{code}`): {text}\n"),
    }
}

/// A code block. Its fence is longer than any run of backticks inside.
fn fenced(inside: &str) -> String {
    let fence = "`".repeat(longest_row_of_backticks(inside).max(2) + 1);
    format!("{fence}\n{inside}{fence}\n")
}

fn longest_row_of_backticks(text: &str) -> usize {
    let rows = text.split(|character| character != '`');
    rows.map(str::len).max().unwrap_or_default()
}

/// The start of a text, ending with a line break; empty if the text is empty.
fn shortened(text: &str, limit_bytes: usize) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        return String::new();
    }
    if text.len() <= limit_bytes {
        return format!("{text}\n");
    }
    let kept = &text[..text.floor_char_boundary(limit_bytes)];
    let mut shortened = format!("{kept}\n");
    // Writing to a string doesn't fail.
    let _ = writeln!(shortened, "... {} more bytes", text.len() - kept.len());
    shortened
}
