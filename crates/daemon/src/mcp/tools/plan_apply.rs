//! Applies a plan to the user's files, or undoes it. Asks the user first, unless they have allowed it.

use protocol::{
    ApplyPlans, ChangePlan, CommitPlans, OutcomeKind, Plan, PlanId, PlanOutcome, PlanState, UndoPlan,
};
use serde::Deserialize;
use serde_json::json;
use sessions::tools::{Takes, optional};

use super::entry::{Answer, Effect, Entry, plan, tool};
use super::plan::title_or_none;
use crate::mcp::call::{Call, Reply};
use crate::mcp::consent::{Consent, consent};
use crate::mcp::error::ToolError;
use crate::mcp::working_plan::{done_in, newest_of, plan_of};
use crate::page::counted_files;
use crate::plans::acts;

/// How many paths an answer names. `plan_diff` shows the rest.
const PATHS: usize = 50;
/// How many conflicts an answer shows.
const CONFLICTS: usize = 10;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "plan_apply",
            "Apply a plan",
            "Applies the plan's changes to the user's files: all of them or, if there is a conflict, none. The user is asked \
             first, unless they have allowed it. Call it when the work is done and checked. Example: {}",
            vec![
                optional(
                    "commit_message",
                    Takes::Text,
                    "Also make a git commit of just these changes, with this message.",
                ),
                plan(),
            ],
            Effect::Changes,
            |call, arguments| Box::pin(apply(call, arguments)),
        ),
        tool(
            "plan_undo",
            "Undo an applied plan",
            "Reverts the changes of an applied plan in the user's files, and keeps what others have changed since. The user is \
             asked first, unless they have allowed it. Without `plan`, it reverts the one that you applied last. Example: {}",
            vec![plan()],
            Effect::Changes,
            |call, arguments| Box::pin(undo(call, arguments)),
        ),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyArguments {
    commit_message: Option<String>,
    plan: Option<String>,
}

async fn apply(call: &Call<'_>, arguments: ApplyArguments) -> Result<Answer, ToolError> {
    let own = plan_of(call, arguments.plan.as_deref()).await?;
    let plan = acts::show(call.app, own.id).await?;
    if plan.summary.files == 0 && matches!(plan.state, PlanState::Open | PlanState::Sealed) {
        let text = format!("{} has no changes, so there is nothing to apply.\n", plan.id);
        return Ok(Reply::text(text).into());
    }
    let request = |dry_run| ApplyPlans {
        plans: vec![plan.id.clone()],
        // Exactly what the user is shown.
        seen: vec![plan.fingerprint.clone()],
        dry_run,
        commit: arguments.commit_message.clone().map(|message| CommitPlans {
            message: Some(message),
        }),
    };
    // Don't ask the user about something that can't be done.
    let tried = acts::apply(call.app, &call.caller(), request(true)).await;
    let tried = done_in(call, &own, tried)?;
    if tried.outcome == OutcomeKind::Conflicted {
        return Ok(outcome_answer(&plan.id, "applied", &tried));
    }
    let question = format!(
        "Apply the changes of {} to {}? {} ({}). Review them first: {}",
        call.client.actor,
        plan.root,
        title_or_none(&plan.title),
        counted_files(plan.summary.files),
        page(call, &plan.id)
    );
    let seen = format!("{}:{}", plan.id, plan.fingerprint);
    match consent(call, &question, &seen).await? {
        Consent::Given => {}
        Consent::Declined => return Ok(declined("apply", &plan.id)),
        Consent::CannotAsk => return sealed(call, own.id, &plan).await,
        Consent::AskFirst(question) => return Ok(Answer::AskFirst(question)),
    }
    let outcome = acts::apply(call.app, &call.caller(), request(false)).await;
    let outcome = done_in(call, &own, outcome)?;
    if outcome.outcome == OutcomeKind::Done {
        call.client.forget_plan(own.id);
    }
    Ok(outcome_answer(&plan.id, "applied", &outcome))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UndoArguments {
    plan: Option<String>,
}

async fn undo(call: &Call<'_>, arguments: UndoArguments) -> Result<Answer, ToolError> {
    let applied = match &arguments.plan {
        Some(named) => plan_of(call, Some(named)).await?,
        None => newest_of(call.app, &call.client.actor, &[PlanState::Applied])
            .await?
            .ok_or(ToolError::NoPlan)?,
    };
    let plan = acts::show(call.app, applied.id).await?;
    let question = format!(
        "Undo the changes of plan {} in {}? {} ({})",
        plan.id,
        plan.root,
        title_or_none(&plan.title),
        counted_files(plan.summary.files)
    );
    let seen = format!("{}:{}", plan.id, plan.version);
    match consent(call, &question, &seen).await? {
        Consent::Given => {}
        Consent::Declined => return Ok(declined("undo", &plan.id)),
        Consent::CannotAsk => {
            let text = format!(
                "The user has to undo {}: on the page {} or with `tidelock plan undo {}`. Tell them.\n",
                plan.id,
                page(call, &plan.id),
                plan.id
            );
            return Ok(Reply::text(text)
                .with(json!({ "outcome": "needs_a_person", "plan": plan.id }))
                .into());
        }
        Consent::AskFirst(question) => return Ok(Answer::AskFirst(question)),
    }
    let request = UndoPlan {
        version: Some(plan.version),
        ..UndoPlan::default()
    };
    let outcome = acts::undo(call.app, &call.caller(), applied.id, request).await?;
    Ok(outcome_answer(&plan.id, "undone", &outcome))
}

/// The page where people review a plan.
fn page(call: &Call<'_>, id: &str) -> String {
    format!("{}/plans/{id}", call.app.hosts.page_origin())
}

fn declined(what: &str, id: &str) -> Answer {
    let text = format!(
        "The user said no: {id} stays as it is. Ask them what to change before you call plan_{what} again.\n"
    );
    Reply::text(text)
        .with(json!({ "outcome": "declined", "plan": id, "next": "ask the user what to change" }))
        .into()
}

/// Seals a plan, so that a person can apply it.
async fn sealed(call: &Call<'_>, id: PlanId, plan: &Plan) -> Result<Answer, ToolError> {
    if plan.state == PlanState::Open {
        // Seal exactly what was reviewed.
        let request = ChangePlan {
            version: Some(plan.version),
            ..ChangePlan::default()
        };
        acts::seal(call.app, &call.caller(), id, request).await?;
    }
    let (page, command) = (page(call, &plan.id), format!("tidelock plan apply {}", plan.id));
    let text = format!(
        "{} is sealed and ready for review. The user has to apply it: on the page {page} or with `{command}`. Tell them. \
         Nothing has changed in their files yet.\n",
        plan.id
    );
    let value = json!({ "outcome": "needs_a_person", "plan": plan.id, "page": page, "command": command });
    Ok(Reply::text(text).with(value).into())
}

fn outcome_answer(id: &str, done: &str, outcome: &PlanOutcome) -> Answer {
    let value = json!({
        "outcome": outcome.outcome,
        "plan": id,
        "paths": outcome.paths.iter().take(PATHS).collect::<Vec<_>>(),
        "conflicts": outcome.conflicts.iter().take(CONFLICTS).collect::<Vec<_>>(),
        "commit": outcome.commit,
        "commit_failed": outcome.commit_failed,
        "notes": outcome.notes,
    });
    let mut text = match outcome.outcome {
        OutcomeKind::Done => format!(
            "{id} was {done}: {}.\n",
            counted_files(outcome.paths.len() as u64)
        ),
        OutcomeKind::WouldBeDone => format!(
            "{id} could be {done}: {}.\n",
            counted_files(outcome.paths.len() as u64)
        ),
        OutcomeKind::Conflicted => format!(
            "{id} cannot be {done}: {} in conflict, and nothing was changed.\n",
            counted_files(outcome.conflicts.len() as u64)
        ),
    };
    for path in outcome.paths.iter().take(PATHS) {
        let merged = match path.merged {
            true => " (merged with the workspace)",
            false => "",
        };
        text.push_str(&format!("{} {}{merged}\n", path.kind, path.path));
    }
    for conflict in outcome.conflicts.iter().take(CONFLICTS) {
        text.push_str(&format!("{}: {}\n", conflict.path, conflict.text));
        for hunk in &conflict.hunks {
            text.push_str(&format!(
                "  line {}\n  workspace:\n{}  plan:\n{}",
                hunk.line,
                indented(&hunk.ours),
                indented(&hunk.theirs)
            ));
        }
    }
    if let Some(commit) = &outcome.commit {
        text.push_str(&format!("Committed as {commit}.\n"));
    }
    for note in &outcome.notes {
        text.push_str(&format!("Note: {note}\n"));
    }
    if let Some(why) = &outcome.commit_failed {
        text.push_str(&format!(
            "The changes are in the workspace, but no git commit was made: {why}\nCommit them yourself, or undo {id}.\n"
        ));
        return Reply::text(text).with(value).failed().into();
    }
    if outcome.outcome == OutcomeKind::Conflicted {
        text.push_str(
            "What to do next: open a new plan with plan_open, which starts from the current files, and make the \
             change again there.\n",
        );
        return Reply::text(text).with(value).failed().into();
    }
    Reply::text(text).with(value).into()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    | {line}\n")).collect()
}
