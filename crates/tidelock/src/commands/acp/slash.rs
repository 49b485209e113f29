//! Commands that an editor offers and that need no agent: they act on the session's plan.

use std::sync::Arc;

use protocol::{
    ApplyPlans, ChangePlan, OutcomeKind, Plan, PlanOutcome, PlanState, Session, TurnList, UndoPlan,
};
use serde_json::{Value, json};

use super::changes::{self, has_work};
use super::converse::message;
use super::open::{Open, Shown};
use super::refusal::Refused;
use super::schema::ContentBlock;
use super::serve::Site;
use super::updates::Voice;
use crate::client::Client;
use crate::commands::job::local;
use crate::commands::plan::{Attempt, PLANS, outcome_text, path as plan_path, post, short, summary};
use crate::commands::session::path;
use crate::error::Failure;
use crate::output::Palette;
use crate::start::Repeat;
use crate::units::format_count;

/// How many of the newest turns are searched for the plan to undo.
const TURNS_LOOKED_AT: usize = 100;
const PATHS_SHOWN: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Diff,
    Apply,
    Undo,
    Status,
}

const COMMANDS: [(Command, &str, &str); 4] = [
    (
        Command::Diff,
        "diff",
        "Show what this session has changed in its sandbox",
    ),
    (
        Command::Apply,
        "apply",
        "Apply the changes that were shown to your files, all or nothing",
    ),
    (Command::Undo, "undo", "Undo what this session applied last"),
    (
        Command::Status,
        "status",
        "Show what this session is doing and the state of its plan",
    ),
];

pub(super) fn available() -> Value {
    let commands: Vec<Value> = COMMANDS
        .iter()
        .map(|(_, name, description)| json!({ "name": name, "description": description }))
        .collect();
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands })
}

/// The command, if the prompt consists of nothing else. With more words, the prompt is for the agent.
pub(super) fn asked_for(blocks: &[ContentBlock]) -> Option<Command> {
    let [ContentBlock::Text { text }] = blocks else {
        return None;
    };
    let wanted = text.trim().strip_prefix('/')?;
    COMMANDS
        .iter()
        .find(|(_, name, _)| *name == wanted)
        .map(|(command, ..)| *command)
}

/// Runs it. A failure is reported as text: it is an answer, and the next prompt is independent of it.
pub(super) fn run(command: Command, site: &Site, open: &Arc<Open>, client: &Client) -> Value {
    let work = Work { site, open, client };
    let done = match command {
        Command::Diff => work.diff(),
        Command::Apply => work.apply(),
        Command::Undo => work.undo(),
        Command::Status => work.status(),
    };
    let text = done.unwrap_or_else(|failure| format!("That failed. {}\n", Refused::from(failure).in_words()));
    site.say(&open.id, Voice::Agent, &text);
    json!({ "stopReason": "end_turn" })
}

struct Work<'a> {
    site: &'a Site,
    open: &'a Open,
    client: &'a Client,
}

impl Work<'_> {
    fn session(&self) -> Result<Session, Failure> {
        self.client.fetch(&path(&self.open.id, ""))
    }

    fn plan(&self, id: &str) -> Result<Plan, Failure> {
        self.client.fetch(&plan_path(id, ""))
    }

    /// The plan that the session works in, if it has changes.
    fn unapplied(&self, session: &Session) -> Result<Option<Plan>, Failure> {
        let Some(id) = &session.plan else { return Ok(None) };
        let plan = self.plan(id)?;
        Ok(Some(plan).filter(has_work))
    }

    fn show(&self, plan: &Plan) -> Result<String, Failure> {
        let found = changes::read(plan, &message(), self.client)?;
        drop(self.site.outbox.update(&self.open.id, &found.update));
        self.open.show(&found.shown);
        Ok(found.numbers)
    }

    fn diff(&self) -> Result<String, Failure> {
        let session = self.session()?;
        Ok(match self.unapplied(&session)? {
            Some(plan) => next_steps(&self.show(&plan)?, &plan),
            None => "No unapplied changes.\n".to_owned(),
        })
    }

    fn apply(&self) -> Result<String, Failure> {
        let session = self.session()?;
        if session.active.is_some() {
            return Ok("A turn is running. Apply when it has ended, or cancel it first.\n".to_owned());
        }
        let Some(plan) = self.unapplied(&session)? else {
            return Ok("Nothing to apply.\n".to_owned());
        };
        let seen = Shown {
            plan: plan.id.clone(),
            fingerprint: plan.fingerprint.clone(),
        };
        if self.open.shown().as_ref() != Some(&seen) {
            // Apply only what the user has seen.
            let numbers = self.show(&plan)?;
            return Ok(format!(
                "The changes are different from what you last saw, so nothing was applied. Now: {numbers}. Run `/apply` again to \
                 apply them.\n"
            ));
        }
        if plan.state == PlanState::Open {
            let wish = ChangePlan {
                version: Some(plan.version),
                ..ChangePlan::default()
            };
            let path = plan_path(&plan.id, "/seal");
            post::<Value>(&path, &wish, Repeat::Harmless, self.client)?;
        }
        let wish = ApplyPlans {
            plans: vec![plan.id.clone()],
            seen: vec![seen.fingerprint],
            dry_run: false,
            commit: None,
        };
        let path = format!("{PLANS}/apply");
        let outcome: PlanOutcome = post(&path, &wish, Repeat::Harmful, self.client)?;
        Ok(told(&outcome, Attempt::Apply))
    }

    fn undo(&self) -> Result<String, Failure> {
        let Some(plan) = self.applied_last()? else {
            return Ok("This session hasn't applied anything that can be undone.\n".to_owned());
        };
        let wish = UndoPlan {
            version: Some(plan.version),
            ..UndoPlan::default()
        };
        let path = plan_path(&plan.id, "/undo");
        let outcome: PlanOutcome = post(&path, &wish, Repeat::Harmful, self.client)?;
        Ok(told(&outcome, Attempt::Undo))
    }

    /// The newest plan of this session that has been applied to the workspace.
    fn applied_last(&self) -> Result<Option<Plan>, Failure> {
        let turns = path(&self.open.id, &format!("/turns?limit={TURNS_LOOKED_AT}"));
        let turns: TurnList = self.client.fetch(&turns)?;
        let mut looked_at: Vec<String> = Vec::new();
        for id in turns.turns.into_iter().filter_map(|turn| turn.plan) {
            if looked_at.contains(&id) {
                continue;
            }
            let plan = self.plan(&id)?;
            if plan.state == PlanState::Applied {
                return Ok(Some(plan));
            }
            looked_at.push(id);
        }
        Ok(None)
    }

    fn status(&self) -> Result<String, Failure> {
        let session = self.session()?;
        let mut text = format!(
            "`{}` in `{}`, answered by `{}`.\n\n",
            session.id, session.directory, session.agent.name
        );
        match &session.active {
            Some(active) => text.push_str(&format!(
                "- A turn has been running since {}.\n",
                local(&active.started_at)
            )),
            None => text.push_str("- No turn is running.\n"),
        }
        if !session.queue.is_empty() {
            text.push_str(&format!(
                "- {} waiting.\n",
                format_count(session.queue.len() as u64, "prompt")
            ));
        }
        match &session.plan {
            Some(id) => {
                let plan = self.plan(id)?;
                text.push_str(&format!(
                    "- The plan `{}` is {}: {}.\n",
                    short(&plan.id),
                    plan.state.as_str(),
                    summary(&plan.summary)
                ));
            }
            None => text.push_str("- There is no plan.\n"),
        }
        Ok(text)
    }
}

pub(super) fn next_steps(numbers: &str, plan: &Plan) -> String {
    format!(
        "Changed in the sandbox: {numbers}. Your files haven't changed. `/apply` applies the changes, `/diff` shows them \
         again. In a terminal: `tidelock plan diff {}`.\n",
        short(&plan.id)
    )
}

fn told(outcome: &PlanOutcome, attempt: Attempt) -> String {
    let mut text = match (outcome.outcome, attempt) {
        (OutcomeKind::Conflicted, _) => {
            format!("```\n{}```\n", outcome_text(Palette::Plain, outcome, attempt))
        }
        (_, Attempt::Undo) => format!("Undone: {}.\n", paths(outcome)),
        (_, Attempt::Apply | Attempt::Refresh) => {
            format!("Applied: {}. `/undo` undoes it.\n", paths(outcome))
        }
    };
    for note in &outcome.notes {
        text.push_str(&format!("Note: {note}\n"));
    }
    text
}

fn paths(outcome: &PlanOutcome) -> String {
    let mut text = format_count(outcome.paths.len() as u64, "file");
    let shown = outcome.paths.iter().take(PATHS_SHOWN);
    let named: Vec<String> = shown.map(|path| format!("`{}`", path.path)).collect();
    if !named.is_empty() {
        let more = if outcome.paths.len() > PATHS_SHOWN {
            ", …"
        } else {
            ""
        };
        text.push_str(&format!(" ({}{more})", named.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_whole_prompt() {
        let text = |text: &str| ContentBlock::Text {
            text: text.to_owned(),
        };
        for (blocks, expected) in [
            (vec![text("/diff")], Some(Command::Diff)),
            (vec![text(" /apply\n")], Some(Command::Apply)),
            (vec![text("/undo")], Some(Command::Undo)),
            (vec![text("/status")], Some(Command::Status)),
            (vec![text("/undo the last rename")], None),
            (vec![text("/commit")], None),
            (vec![text("diff")], None),
            (vec![text("/diff"), text("x")], None),
            (vec![], None),
        ] {
            assert_eq!(asked_for(&blocks), expected, "{blocks:?}");
        }
    }
}
