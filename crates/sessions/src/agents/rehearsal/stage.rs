//! Runs the steps of a script in one turn.

use std::time::Duration;

use kernel::Deadline;
use protocol::PermissionAnswer;

use super::calls::call_of;
use super::filling::{FILLED_LIMIT_BYTES, Fillings, TooLong, fill};
use super::player::{Next, Player};
use super::script::{Action, SAID_LIMIT_BYTES, STEP_LIMIT, Script, Speech};
use super::words::words;
use crate::agent::{AgentEnd, AgentTurn};
use crate::asking::Question;
use crate::sink::SinkError;
use crate::tools::ToolCall;

/// The tool name of a question to the user.
const ASKING: &str = "ask";

/// How many steps to run before yielding. Steps that don't wait would otherwise block the thread for the whole script.
const STEPS_BETWEEN_YIELDS: u64 = 64;

#[derive(Debug)]
pub(super) struct Stage<'a> {
    turn: &'a AgentTurn,
    /// The last answer of a tool or the user.
    answer: String,
    said_bytes: usize,
}

/// Why the steps end before the last one.
#[derive(Debug)]
enum Stopped {
    /// The turn should stop, or accepts nothing more.
    Cancelled,
    /// The script says so.
    Failed(String),
    Limit(String),
}

impl From<SinkError> for Stopped {
    /// A sink that accepts nothing more means that the turn is no longer ours; its scope is cancelled.
    fn from(_: SinkError) -> Self {
        Self::Cancelled
    }
}

impl From<TooLong> for Stopped {
    fn from(_: TooLong) -> Self {
        Self::Limit(format!(
            "a text has more than {FILLED_LIMIT_BYTES} bytes once the prompt or an answer is put into it"
        ))
    }
}

impl<'a> Stage<'a> {
    pub(super) fn new(turn: &'a AgentTurn) -> Self {
        Self {
            turn,
            answer: String::new(),
            said_bytes: 0,
        }
    }

    pub(super) async fn play(&mut self, script: &Script) -> AgentEnd {
        match self.play_on(&mut Player::new(script)).await {
            Ok(()) => AgentEnd::Done,
            Err(Stopped::Cancelled) => AgentEnd::Cancelled,
            Err(Stopped::Failed(text)) => AgentEnd::failed("rehearsal_failed", text),
            Err(Stopped::Limit(text)) => AgentEnd::failed("script_limit", text),
        }
    }

    async fn play_on(&mut self, player: &mut Player) -> Result<(), Stopped> {
        let mut steps: u64 = 0;
        loop {
            if self.turn.scope.is_cancelled() {
                return Err(Stopped::Cancelled);
            }
            steps += 1;
            if steps.is_multiple_of(STEPS_BETWEEN_YIELDS) {
                tokio::task::yield_now().await;
            }
            match player.next() {
                Next::Act(action) => self.act(&action).await?,
                Next::End => return Ok(()),
                Next::TooMany => {
                    return Err(Stopped::Limit(format!(
                        "the script takes more than {STEP_LIMIT} steps"
                    )));
                }
            }
        }
    }

    async fn act(&mut self, action: &Action) -> Result<(), Stopped> {
        let call = call_of(action, |text| self.fill(text))?;
        if let Some(call) = call {
            self.count(&call.arguments.to_string())?;
            return self.call(call).await;
        }
        match action {
            Action::Say(speech) => self.speak(speech, Voice::Aloud).await,
            Action::Think(speech) => self.speak(speech, Voice::Within).await,
            Action::Sleep(pause) => {
                let end = Deadline::after(&self.turn.clock, *pause);
                self.pause(end).await
            }
            Action::Ask(subject) => self.ask(subject).await,
            Action::Fail(text) => Err(Stopped::Failed(self.fill(text)?)),
            Action::Read { .. }
            | Action::Write { .. }
            | Action::Edit { .. }
            | Action::Shell { .. }
            | Action::Lsp { .. } => Ok(()),
        }
    }

    /// Says a text word by word, each at its time. All times are relative to the first word, so that one delay doesn't
    /// make everything after it late.
    async fn speak(&mut self, speech: &Speech, voice: Voice) -> Result<(), Stopped> {
        let text = self.fill(&speech.text)?;
        self.count(&text)?;
        let began = self.turn.clock.now();
        let mut due = Duration::ZERO;
        for word in words(&text) {
            if let Some(every) = speech.every {
                // Don't wait for a time that has already passed.
                if let Ok(end) = Deadline::at(&self.turn.clock, began + due) {
                    self.pause(end).await?;
                }
                due = due.saturating_add(every).min(super::script::PAUSE_LIMIT);
            }
            if self.turn.scope.is_cancelled() {
                return Err(Stopped::Cancelled);
            }
            match voice {
                Voice::Aloud => self.turn.sink.text(word).await?,
                Voice::Within => self.turn.sink.reasoning(word).await?,
            }
        }
        Ok(())
    }

    /// Calls a tool. If it fails or is denied, the stream shows that; the script goes on.
    async fn call(&mut self, call: ToolCall) -> Result<(), Stopped> {
        let sink = self.turn.sink.tool(&call.tool, "").await?;
        sink.arguments(&call.arguments.to_string()).await?;
        self.answer = self.turn.tools.call(call, sink).await.text;
        Ok(())
    }

    /// Asks the user and reports the answer. The script goes on either way.
    async fn ask(&mut self, subject: &str) -> Result<(), Stopped> {
        let subject = self.fill(subject)?;
        self.count(&subject)?;
        let question = Question {
            item: None,
            tool: ASKING.to_owned(),
            subject,
            options: Vec::new(),
        };
        let (answer, by) = self.turn.asker.ask(question).await?;
        if self.turn.scope.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        let said = match answer {
            PermissionAnswer::Allow => "allow",
            PermissionAnswer::AllowAlways => "allow always",
            PermissionAnswer::Deny => "deny",
        };
        self.answer = said.to_owned();
        let text = match &*by {
            "" => "Nobody has answered in time, which means: deny.\n".to_owned(),
            by => format!("{by} has answered: {said}.\n"),
        };
        Ok(self.turn.sink.text(&text).await?)
    }

    /// Waits until a time, or until the turn should stop.
    async fn pause(&self, end: Deadline) -> Result<(), Stopped> {
        tokio::select! {
            biased;
            _ = self.turn.scope.wait() => Err(Stopped::Cancelled),
            () = end.passed() => Ok(()),
        }
    }

    fn fill(&self, text: &str) -> Result<String, TooLong> {
        fill(
            text,
            Fillings {
                prompt: &self.turn.prompt.text,
                answer: &self.answer,
            },
        )
    }

    fn count(&mut self, text: &str) -> Result<(), Stopped> {
        self.said_bytes = self.said_bytes.saturating_add(text.len());
        if self.said_bytes > SAID_LIMIT_BYTES {
            return Err(Stopped::Limit(format!(
                "the script says and writes more than {SAID_LIMIT_BYTES} bytes"
            )));
        }
        Ok(())
    }
}

/// Whether a text is said or thought.
#[derive(Clone, Copy, Debug)]
enum Voice {
    Aloud,
    Within,
}
