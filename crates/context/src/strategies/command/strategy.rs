//! Runs a command, and converts its answer.

use std::ffi::OsString;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Deadline, Scope};
use process::Exit;

use super::super::child::{self, Errand, Run, Stopped};
use super::super::not_as_on_disk;
use super::wire::{self, Question};
use crate::executor::on_thread;
use crate::path::TreePath;
use crate::ports::ForCommands;
use crate::settings::CommandSettings;
use crate::strategy::{Ask, Hit, Strategy, StrategyError, StrategyName};

/// The most bytes of an answer: thousands of locations.
const OUTPUT_LIMIT_BYTES: usize = 1024 * 1024;
/// How much of a command's standard error is included in its failure.
const SAID_LIMIT_CHARS: usize = 500;
/// The time limit that a command is given if there is no deadline.
const ENDLESS_MS: u64 = 60_000;

#[derive(Debug)]
pub(in super::super) struct CommandStrategy {
    settings: CommandSettings,
    commands: ForCommands,
}

impl CommandStrategy {
    pub(in super::super) fn new(settings: CommandSettings, commands: ForCommands) -> Self {
        Self { settings, commands }
    }

    async fn ask(
        &self,
        ask: &Ask,
        changed: &[TreePath],
        scope: &Scope,
        deadline: &Deadline,
    ) -> Result<Run, StrategyError> {
        let Some((program, arguments)) = self.settings.command.split_first() else {
            return Err(StrategyError::Failed("no command is set for it".to_owned()));
        };
        let Some(root) = ask.searched.root.to_str() else {
            return Err(StrategyError::NotApplicable(
                "the path of the tree cannot be written as JSON".to_owned(),
            ));
        };
        let left = deadline.remaining().map(|left| left.as_millis());
        let left_ms = left.map_or(ENDLESS_MS, |left| u64::try_from(left).unwrap_or(ENDLESS_MS));
        let question = Question::of(ask, root, changed, left_ms);
        let mut input =
            serde_json::to_vec(&question).map_err(|error| StrategyError::Failed(error.to_string()))?;
        input.push(b'\n');
        let errand = Errand {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: &ask.searched.root,
            environment: self.commands.environment.clone(),
            owner: self.name().circuit(),
            reason: "asked for context".to_owned(),
            input,
            output_limit: OUTPUT_LIMIT_BYTES,
        };
        child::run(&self.commands.processes, errand, scope, deadline)
            .await
            .map_err(|error| StrategyError::Failed(child::in_full(&error)))
    }
}

#[async_trait]
impl Strategy for CommandStrategy {
    fn name(&self) -> StrategyName {
        StrategyName::new(&self.settings.name)
    }

    async fn find(&self, ask: Arc<Ask>, scope: Scope, deadline: Deadline) -> Result<Vec<Hit>, StrategyError> {
        let changed = not_as_on_disk(&ask.searched, &scope).await?;
        let run = self.ask(&ask, &changed, &scope, &deadline).await?;
        let hits = answer(&run)?;
        on_thread(scope, move |scope| there(hits, &ask, &changed, scope)).await
    }
}

fn answer(run: &Run) -> Result<Vec<Hit>, StrategyError> {
    let failed = |what: String| {
        let said: Vec<char> = run.said.trim().chars().collect();
        let said: String = said[said.len().saturating_sub(SAID_LIMIT_CHARS)..]
            .iter()
            .collect();
        let said = if said.is_empty() {
            said
        } else {
            format!("; it said: {said}")
        };
        StrategyError::Failed(format!("{what}{said}"))
    };
    match &run.stopped {
        Stopped::Cancelled | Stopped::OutOfTime => Err(StrategyError::Cancelled),
        Stopped::TooMuch => Err(failed(format!("it wrote more than {OUTPUT_LIMIT_BYTES} bytes"))),
        Stopped::Ended(ended) if ended.exit != Exit::Code(0) => {
            Err(failed(format!("it ended with {}", ended.exit)))
        }
        Stopped::Ended(_) => wire::read(&run.output).map_err(failed),
    }
}

/// Drops hits that don't exist in the view. If a file differs on disk, where the command looked, its lines are
/// dropped.
fn there(hits: Vec<Hit>, ask: &Ask, changed: &[TreePath], scope: &Scope) -> Result<Vec<Hit>, StrategyError> {
    let mut found = Vec::new();
    for mut hit in hits {
        if scope.is_cancelled() {
            return Err(StrategyError::Cancelled);
        }
        if found.len() == ask.most_hits {
            break;
        }
        if ask.searched.view.read(&hit.path).is_err() {
            continue;
        }
        if changed.binary_search(&hit.path).is_ok() {
            hit.lines = None;
        }
        if !found.contains(&hit) {
            found.push(hit);
        }
    }
    Ok(found)
}
