//! Converts plans for the wire, for the HTTP API and the page.

mod changesets;
mod files;
mod outcomes;
mod requests;
mod words;
mod workspaces;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use machines::{MachineLabel, Machines};
use plans::{LeftOut, Moment, Plan, PlanError, PlanQuery, Plans, RecoveryOf, Run, Unapplied};
use protocol::{CheckState, PlanId, PlanOverlap, WorkspaceId, WorkspaceState};

use super::diff::diff;
use crate::durable::machine_to_wire;
use crate::times::{rfc3339_ms, written};

pub(crate) use changesets::{changeset_to_wire, recorded_to_wire};
pub(crate) use files::file_to_wire;
pub(crate) use outcomes::{outcome_to_wire, path_to_wire};
pub(crate) use requests::{checked_checks, to_new_plan};
pub(super) use requests::{checked_message, operations_of, plans_of, reason_of, seen_in, tool_of};
pub(crate) use words::kind_name;
pub(crate) use workspaces::{
    repaired_to_wire, rescued_list_to_wire, rescued_to_wire, workspace_of, workspace_to_wire,
};

/// The most changed files for which a plan's lines are counted when it is shown. Each file has to be read twice. A
/// larger plan shows only the number of files, and its diff has the rest.
const COUNTED_FILES: u64 = 500;
/// How many children of a plan to name. Each is a plan of its own, with a sandbox.
const NAMED_CHILDREN: u32 = 500;

/// What is known about a plan besides its record.
#[derive(Debug, Default)]
struct PlanContext {
    sandbox_root: String,
    children: Vec<String>,
    overlaps: Vec<PlanOverlap>,
    /// Lines added and removed, if they were counted.
    lines: Option<(u64, u64)>,
    rescued: Vec<protocol::Rescued>,
    notice: Option<String>,
    machine: Option<protocol::Machine>,
}

/// A plan with everything that is currently known about it.
pub(crate) async fn show(
    plans: &Plans,
    machines: &Machines,
    plan: &Plan,
) -> Result<protocol::Plan, PlanError> {
    let children = plans.list(PlanQuery {
        parent: Some(plan.id),
        limit: NAMED_CHILDREN,
        ..PlanQuery::default()
    });
    let children = children.await?.iter().map(|child| child.id.to_string()).collect();
    let workspaces = presences(plans, &[plan]).await?;
    let lines = match plan.record.files {
        0 => Some((0, 0)),
        1..=COUNTED_FILES => {
            let summary = diff(plans, plan.id, None).await?.summary;
            summary.added_lines.zip(summary.removed_lines)
        }
        _ => None,
    };
    let rescued = plans.rescued().await?.rescued;
    let of_plan = |rescued: &&plans::Rescued| rescued.record.plans.contains(&plan.id);
    let context = PlanContext {
        children,
        lines,
        rescued: rescued.iter().filter(of_plan).map(rescued_to_wire).collect(),
        ..context(plans, machines, plan, &workspaces)
    };
    Ok(to_wire(plan, context))
}

/// A page of plans, newest first.
pub(crate) async fn list(
    plans: &Plans,
    machines: &Machines,
    query: PlanQuery,
) -> Result<protocol::PlanList, PlanError> {
    // Fetch one more than requested to see whether there are more.
    let page = query.limit as usize;
    let limit = query.limit.saturating_add(1);
    let mut found = plans.list(PlanQuery { limit, ..query }).await?;
    let has_more = found.len() > page;
    found.truncate(page);
    let shown = several(plans, machines, &found).await?;
    Ok(protocol::PlanList {
        next_before: shown.last().filter(|_| has_more).map(|oldest| oldest.id.clone()),
        plans: shown,
    })
}

/// Plans as they appear in a list.
pub(crate) async fn several(
    plans: &Plans,
    machines: &Machines,
    found: &[Plan],
) -> Result<Vec<protocol::Plan>, PlanError> {
    let workspaces = presences(plans, &found.iter().collect::<Vec<_>>()).await?;
    let shown = found
        .iter()
        .map(|plan| to_wire(plan, context(plans, machines, plan, &workspaces)));
    Ok(shown.collect())
}

/// What can be read without I/O.
fn context(
    plans: &Plans,
    machines: &Machines,
    plan: &Plan,
    workspaces: &HashMap<WorkspaceId, WorkspaceState>,
) -> PlanContext {
    let machine = machines.of(plan.record.facts.home);
    let elsewhere = (!machine.is_here && !is_over(plan)).then(|| elsewhere(&machine));
    PlanContext {
        machine: Some(machine_to_wire(machine)),
        notice: recovering(plans, plan)
            .or_else(|| stuck_notice(plans, plan))
            .or(elsewhere)
            .or_else(|| notice(plan, workspaces.get(&plan.record.facts.workspace).copied()))
            .or_else(|| {
                plans
                    .workspace_notice(plan.record.facts.workspace)
                    .filter(|_| !is_over(plan))
            }),
        ..at_hand(plans, plan)
    }
}

fn at_hand(plans: &Plans, plan: &Plan) -> PlanContext {
    PlanContext {
        sandbox_root: plans.sandbox_root(plan).display().to_string(),
        overlaps: plans.overlaps(plan.id),
        ..PlanContext::default()
    }
}

/// Whether the workspaces of unfinished plans exist. Those of other plans don't matter any more.
async fn presences(
    plans: &Plans,
    found: &[&Plan],
) -> Result<HashMap<WorkspaceId, WorkspaceState>, PlanError> {
    let mut presences = HashMap::new();
    for plan in found.iter().filter(|plan| !is_over(plan)) {
        let id = plan.record.facts.workspace;
        if let Entry::Vacant(vacant) = presences.entry(id)
            && let Some(presence) = plans.presence(id).await?
        {
            vacant.insert(presence);
        }
    }
    Ok(presences)
}

fn is_over(plan: &Plan) -> bool {
    plan.record.state.is_over()
}

/// The notice that an earlier daemon left it unfinished and it is being recovered.
fn recovering(plans: &Plans, plan: &Plan) -> Option<String> {
    let is_about_it = |recovery: &plans::Recovery| match recovery.of {
        RecoveryOf::Plan(id) => id == plan.id,
        RecoveryOf::Workspace(id) => id == plan.record.facts.workspace && plan.record.landing.is_some(),
    };
    let recovery = plans.recovering().into_iter().find(is_about_it)?;
    Some(format!("it is being recovered: {}", recovery.what))
}

/// The notice that an apply or undo of it is unfinished and can't be completed.
fn stuck_notice(plans: &Plans, plan: &Plan) -> Option<String> {
    let stuck = plans.stuck_landing(plan.record.facts.workspace)?;
    let is_its_own = plan.record.landing.as_ref() == Some(&stuck.landing);
    is_its_own.then(|| {
        format!(
            "its apply or undo is stuck halfway: {}; run `tidelock workspace repair`",
            stuck.why
        )
    })
}

/// The notice that its sandbox and workspace are on another machine.
fn elsewhere(machine: &MachineLabel) -> String {
    format!("it is on {}: apply or discard it there", machine.name)
}

/// The most important notice for a person.
fn notice(plan: &Plan, workspace: Option<WorkspaceState>) -> Option<String> {
    let text = match workspace {
        _ if is_over(plan) => return None,
        None => "its workspace was forgotten",
        Some(WorkspaceState::Missing) => "its workspace is gone: there is nothing at its path",
        Some(WorkspaceState::Replaced) => "its workspace is gone: another directory is at its path",
        Some(WorkspaceState::Unreachable) => "its workspace's file system doesn't respond",
        Some(WorkspaceState::Present) if plan.record.landing.is_some() => "it is being applied or undone",
        Some(WorkspaceState::Present) => {
            let failed = plan.record.unrecorded.as_ref()?;
            return Some(format!(
                "what `{}` changed could not be recorded ({}); it is still in the sandbox. To try again: tidelock plan seal {}",
                failed.reason, failed.why, plan.id
            ));
        }
    };
    Some(text.to_owned())
}

/// A plan. Its record has what the plan needs to continue; the wire has what a reader needs, with times, paths and
/// hashes as text, and with what is known besides the log.
fn to_wire(plan: &Plan, context: PlanContext) -> protocol::Plan {
    let record = &plan.record;
    let facts = &record.facts;
    protocol::Plan {
        id: plan.id.to_string(),
        state: record.state,
        machine: context.machine,
        version: plan.version.get(),
        title: facts.title.clone(),
        workspace: facts.workspace.to_string(),
        root: facts.root.display().to_string(),
        parent: facts.parent.map(|parent| parent.to_string()),
        children: context.children,
        opened_by: facts.opened_by.to_string(),
        opened_at: written(facts.opened_at),
        changed_at: written(record.changed_at),
        strategy: facts.strategy,
        sandbox_root: context.sandbox_root,
        base: record.base.to_string(),
        fingerprint: record.fingerprint.to_string(),
        entries: record.entries,
        changesets: record.changesets,
        summary: protocol::DiffSummary {
            files: record.files,
            added_lines: context.lines.map(|(added, _)| added),
            removed_lines: context.lines.map(|(_, removed)| removed),
        },
        running: record.running.iter().map(running_to_wire).collect(),
        checks: checks_to_wire(plan),
        refused: record.refused.as_ref().map(|refused| protocol::PlanRefused {
            what: refused.what.as_str().to_owned(),
            by: refused.by.to_string(),
            at: written(refused.at),
            conflicts: refused.conflicts.iter().map(outcomes::conflict_to_wire).collect(),
        }),
        overlaps: context.overlaps,
        left_out: left_out_to_wire(record),
        branches: record.branches.clone(),
        not_carried: plan.record.uncarried_notes(plan.id),
        remarks: record.remarks.clone(),
        unrecorded: record.unrecorded.as_ref().map(|failed| protocol::PlanUnrecorded {
            command: failed.reason.clone(),
            job: failed.job.clone(),
            why: failed.why.clone(),
        }),
        rescued: context.rescued,
        notice: context.notice,
    }
}

/// What was left out when the sandbox was created, and what was created in it since but isn't carried.
fn left_out_to_wire(record: &plans::PlanRecord) -> Vec<protocol::PlanLeftOut> {
    let to_wire = |left: &LeftOut, work: bool| protocol::PlanLeftOut {
        path: left.path.clone(),
        why: words::why_left_out(left.why).to_owned(),
        work,
    };
    let at_first = record.left_out.iter().map(|left| to_wire(left, false));
    let since = record.uncarried.iter().map(|left| to_wire(left, left.is_work()));
    at_first.chain(since).collect()
}

fn running_to_wire(running: &plans::Running) -> protocol::PlanCommand {
    protocol::PlanCommand {
        job: running.job.clone().unwrap_or_default(),
        actor: running.actor.to_string(),
        since: written(running.since),
    }
}

fn checks_to_wire(plan: &Plan) -> Vec<protocol::PlanCheck> {
    let checks = plan.record.checks.iter().map(|check| {
        let run = check.run.as_ref();
        let ended = run.and_then(|run| run.ended.as_ref());
        protocol::PlanCheck {
            command: check.command.clone(),
            state: check.state(plan.record.fingerprint),
            job: run.map(|run| run.job.clone()),
            text: ended.map(|end| end.text.clone()).filter(|text| !text.is_empty()),
            at: ended.map(|end| written(end.at)),
        }
    });
    checks.collect()
}

/// The checks that prevent an apply, in one line.
pub(crate) fn checks_text(checks: &[(String, CheckState)]) -> String {
    let each = checks
        .iter()
        .map(|(command, state)| format!("`{command}` {}", words::check_state_text(*state)));
    each.collect::<Vec<_>>().join(", ")
}

pub(crate) fn moment_to_wire(moment: &Moment) -> protocol::PlanMoment {
    protocol::PlanMoment {
        sequence: moment.sequence.get(),
        at: rfc3339_ms(moment.at_ms),
        event: moment.event.clone(),
        actor: moment.actor.clone(),
        text: moment.text.clone(),
    }
}

pub(crate) fn strategies_to_wire(plans: &Plans) -> protocol::StrategyList {
    let strategies = plans.strategies().into_iter().map(|(name, found)| {
        let works = found.is_ok();
        let (Ok(text) | Err(text)) = found;
        protocol::StrategyState {
            strategy: name,
            works,
            text,
        }
    });
    protocol::StrategyList {
        strategies: strategies.collect(),
    }
}

/// The recoveries in progress, as text.
pub(crate) fn recovering_to_wire(plans: &Plans) -> Vec<String> {
    let words = |recovery: plans::Recovery| match recovery.of {
        RecoveryOf::Plan(id) => format!("{id}: {}", recovery.what),
        RecoveryOf::Workspace(_) => recovery.what,
    };
    plans.recovering().into_iter().map(words).collect()
}

pub(crate) fn run_of(dry_run: bool) -> Run {
    match dry_run {
        true => Run::Dry,
        false => Run::Real,
    }
}

pub(crate) fn unapplied_of(even_with_work: bool) -> Unapplied {
    match even_with_work {
        true => Unapplied::GiveUp,
        false => Unapplied::Keep,
    }
}

/// The plan with this id, for the wire, if it can be read.
pub(crate) async fn current(plans: &Plans, id: PlanId) -> Option<protocol::Plan> {
    let plan = plans.get(id).await.ok()?;
    Some(to_wire(&plan, at_hand(plans, &plan)))
}

#[cfg(test)]
mod tests;
