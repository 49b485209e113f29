//! A plan reaches the user's files, or is taken back from them. The user is asked first, unless they have allowed it.

use protocol::{ApplyPlans, ChangePlan, CommitPlans, OutcomeKind, Plan, PlanOutcome, PlanState, UndoPlan};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::entry::{Answer, Entry, Interruption, Nature, object, plan_member, reads, text};
use super::plan::title_or_none;
use crate::mcp::ask::{Verdict, verdict};
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::current::{Ground, forget_if_over, newest_of, plan_of};
use crate::mcp::error::ToolError;
use crate::page::counted_files;

/// How many paths an answer names. `plan_diff` has the rest.
const PATHS: usize = 50;
/// How many conflicts an answer shows.
const CONFLICTS: usize = 10;

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "plan_apply",
        title: "Apply a plan",
        description: "Brings the plan's changes into the user's files: all of them or, if something is in the way, none. The \
            user is asked first, unless they have allowed it. Call it when the work is done and checked. Example: {}",
        schema: apply_schema,
        nature: Nature::Changes,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(apply(call, given)),
        read: reads::<ApplyArguments>,
    },
    Entry {
        name: "plan_undo",
        title: "Take an applied plan back",
        description: "Takes the changes of an applied plan out of the user's files, and leaves alone what others have changed \
            since. The user is asked first, unless they have allowed it. Left out, `plan` is the one that you applied last. \
            Example: {}",
        schema: || object(&[], &[plan_member()]),
        nature: Nature::Changes,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(undo(call, given)),
        read: reads::<UndoArguments>,
    },
];

fn apply_schema() -> Value {
    object(
        &[],
        &[
            (
                "commit_message",
                text("Also make a git commit of just these changes, with this message."),
            ),
            plan_member(),
        ],
    )
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyArguments {
    commit_message: Option<String>,
    plan: Option<String>,
}

async fn apply(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let ApplyArguments { commit_message, plan } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let plan: Plan = call.get(&format!("/v1/plans/{}", ground.id)).await?;
    if plan.summary.files == 0 && matches!(plan.state, PlanState::Open | PlanState::Sealed) {
        return Ok(Reply::text(format!(
            "{} has no changes, so there is nothing to apply.\n",
            plan.id
        ))
        .into());
    }
    let mut order = ApplyPlans {
        plans: vec![plan.id.clone()],
        // What the user is shown, and nothing else.
        seen: vec![plan.fingerprint.clone()],
        dry_run: true,
        commit: commit_message.map(|message| CommitPlans {
            message: Some(message),
        }),
    };
    // Nobody is asked about something that cannot be done.
    let tried = attempt(call, &ground, &order).await?;
    if tried.outcome == OutcomeKind::Conflicted {
        return Ok(told(&plan.id, "applied", &tried));
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
    match verdict(call, &question, &seen).await? {
        Verdict::Yes => {}
        Verdict::No => return Ok(declined("apply", &plan.id)),
        Verdict::NobodyToAsk => return sealed(call, &plan).await,
        Verdict::ComeBack(question) => return Ok(Answer::ComeBack(question)),
    }
    order.dry_run = false;
    let outcome = attempt(call, &ground, &order).await?;
    if outcome.outcome == OutcomeKind::Done {
        call.client.forget_plan(&ground.id);
    }
    Ok(told(&plan.id, "applied", &outcome))
}

async fn attempt(call: &Call<'_>, ground: &Ground, order: &ApplyPlans) -> Result<PlanOutcome, ToolError> {
    let outcome: Result<PlanOutcome, ToolError> = call.post("/v1/plans/apply", order).await;
    if let Err(error) = &outcome {
        forget_if_over(call, ground, error);
    }
    outcome
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UndoArguments {
    plan: Option<String>,
}

async fn undo(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let UndoArguments { plan } = arguments(given)?;
    let ground: Ground = match &plan {
        Some(named) => plan_of(call, Some(named)).await?,
        None => newest_of(call.app, &call.client.actor, &[PlanState::Applied])
            .await?
            .ok_or(ToolError::NoPlan)?,
    };
    let plan: Plan = call.get(&format!("/v1/plans/{}", ground.id)).await?;
    let question = format!(
        "Undo the changes of plan {} in {}? {} ({})",
        plan.id,
        plan.root,
        title_or_none(&plan.title),
        counted_files(plan.summary.files)
    );
    let seen = format!("{}:{}", plan.id, plan.version);
    match verdict(call, &question, &seen).await? {
        Verdict::Yes => {}
        Verdict::No => return Ok(declined("undo", &plan.id)),
        Verdict::NobodyToAsk => {
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
        Verdict::ComeBack(question) => return Ok(Answer::ComeBack(question)),
    }
    let order = UndoPlan {
        version: Some(plan.version),
        ..UndoPlan::default()
    };
    let outcome: PlanOutcome = call.post(&format!("/v1/plans/{}/undo", plan.id), &order).await?;
    Ok(told(&plan.id, "undone", &outcome))
}

/// Where people look at a plan.
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

/// Leaves a plan for a person to apply.
async fn sealed(call: &Call<'_>, plan: &Plan) -> Result<Answer, ToolError> {
    if plan.state == PlanState::Open {
        // What was looked at is what is sealed.
        let order = ChangePlan {
            version: Some(plan.version),
            ..ChangePlan::default()
        };
        let _sealed: Plan = call.post(&format!("/v1/plans/{}/seal", plan.id), &order).await?;
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

/// What became of it.
fn told(id: &str, done: &str, outcome: &PlanOutcome) -> Answer {
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
