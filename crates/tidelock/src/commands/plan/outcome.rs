//! The results of applying, undoing and rebasing plans.

use protocol::{ApplyPlans, ChangePlan, OutcomeKind, OutcomePath, PlanOutcome, UndoPlan};
use serde_json::Value;

use super::labels::short;
use super::{PLANS, conflicts, path, post};
use crate::cli::{ApplyArguments, UndoArguments};
use crate::client::Client;
use crate::commands::ids::{CHANGESET, PLAN};
use crate::error::{Exit, Failure};
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::printable::printable;
use crate::start::Repeat;
use crate::units::format_count;

const PATHS: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Attempt {
    Apply,
    Undo,
    Refresh,
}

pub(super) fn run_apply(arguments: &ApplyArguments, client: &Client) -> Result<Report, Failure> {
    let mut plans: Vec<String> = Vec::new();
    for plan in &arguments.plans {
        let id = PLAN.find(plan, client)?;
        // Ignore duplicates.
        if !plans.contains(&id) {
            plans.push(id);
        }
    }
    let request = ApplyPlans {
        plans,
        seen: Vec::new(),
        dry_run: arguments.dry_run,
        commit: arguments.commit.wanted(),
    };
    let answer = send(&request, client)?;
    report(answer, Attempt::Apply, client.palette())
}

/// Applying a plan twice applies it once, but the second attempt gets an error that it came too late.
fn send(request: &ApplyPlans, client: &Client) -> Result<Value, Failure> {
    let path = format!("{PLANS}/apply");
    post(&path, request, Repeat::Harmful, client)
}

pub(super) fn run_undo(arguments: &UndoArguments, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(&arguments.plan.plan, client)?;
    let changeset = arguments
        .changeset
        .as_ref()
        .map(|wanted| CHANGESET.find_of(wanted, &id, client))
        .transpose()?;
    let request = UndoPlan {
        changeset,
        version: None,
        dry_run: arguments.dry_run,
    };
    let answer = post(&path(&id, "/undo"), &request, Repeat::Harmful, client)?;
    report(answer, Attempt::Undo, client.palette())
}

pub(super) fn run_refresh(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(wanted, client)?;
    let request = ChangePlan::default();
    let answer = post(&path(&id, "/refresh"), &request, Repeat::Harmless, client)?;
    report(answer, Attempt::Refresh, client.palette())
}

fn report(answer: Value, attempt: Attempt, palette: Palette) -> Result<Report, Failure> {
    let outcome: PlanOutcome = printable(&answer)?;
    let text = outcome_text(palette, &outcome, attempt);
    let exit = match outcome.outcome {
        _ if outcome.commit_failed.is_some() => Exit::Failed,
        OutcomeKind::Done | OutcomeKind::WouldBeDone => Exit::Success,
        OutcomeKind::Conflicted => Exit::Failed,
    };
    Ok(Report::success(answer, text)
        .with_notes(outcome.notes)
        .with_exit(exit))
}

/// An outcome for people. The texts must be printable.
pub(in crate::commands) fn outcome_text(palette: Palette, outcome: &PlanOutcome, attempt: Attempt) -> String {
    outcome_text_of(palette, outcome, attempt, outcome.paths.len() as u64)
}

/// Like `outcome_text`, for an outcome with only the first paths and their total number.
pub(in crate::commands) fn outcome_text_of(
    palette: Palette,
    outcome: &PlanOutcome,
    attempt: Attempt,
    files: u64,
) -> String {
    let ids: Vec<&str> = outcome.plans.iter().map(|plan| short(&plan.id)).collect();
    let ids = ids.join(", ");
    let one = ids.as_str();
    let mut text = String::new();
    match outcome.outcome {
        OutcomeKind::Conflicted => {
            let files = format_count(outcome.conflicts.len() as u64, "file");
            let line = format!(
                "{one} {}: {files} in conflict. Nothing was changed.",
                not_done(attempt)
            );
            text.push_str(&palette.paint(&line, Tone::Bad));
            text.push_str("\n\n");
            text.push_str(&conflicts::describe(palette, &outcome.conflicts));
            text.push_str(&format!("\n{}\n", way_out(attempt, one)));
        }
        kind => {
            let count = format_count(files, "file");
            let (verb, tone) = match kind {
                OutcomeKind::Done => (done(attempt), Tone::Good),
                _ => (would_be_done(attempt), Tone::Plain),
            };
            text.push_str(&palette.paint(&format!("{one} {verb}: {count}."), tone));
            text.push('\n');
            text.push_str(&paths(palette, &outcome.paths, files));
            if let Some(commit) = &outcome.commit {
                text.push_str(&format!("Committed as {commit}.\n"));
            }
            if let Some(why) = &outcome.commit_failed {
                let line = format!("The changes are in the workspace, but no git commit was made: {why}");
                text.push_str(&palette.paint(&line, Tone::Bad));
                text.push_str("\nCommit them yourself, or undo them.\n");
            }
            if kind == OutcomeKind::Done && attempt == Attempt::Apply {
                for plan in &outcome.plans {
                    text.push_str(&format!("Undo it with: tidelock plan undo {}\n", short(&plan.id)));
                }
            }
        }
    }
    text
}

fn done(attempt: Attempt) -> &'static str {
    match attempt {
        Attempt::Apply => "applied",
        Attempt::Undo => "undone",
        Attempt::Refresh => "brought up to date with the workspace",
    }
}

fn would_be_done(attempt: Attempt) -> &'static str {
    match attempt {
        Attempt::Apply => "would be applied",
        Attempt::Undo => "would be undone",
        Attempt::Refresh => "would be brought up to date with the workspace",
    }
}

fn not_done(attempt: Attempt) -> &'static str {
    match attempt {
        Attempt::Apply => "cannot be applied",
        Attempt::Undo => "cannot be undone",
        Attempt::Refresh => "cannot be brought up to date with the workspace",
    }
}

fn way_out(attempt: Attempt, plan: &str) -> String {
    match attempt {
        Attempt::Apply | Attempt::Refresh => format!(
            "Resolve the conflicts in the workspace, or in the sandbox (`tidelock plan exec {plan} -- COMMAND`), then try again."
        ),
        Attempt::Undo => {
            "Later work depends on these lines. Resolve the conflicts in the workspace, then try again."
                .to_owned()
        }
    }
}

fn paths(palette: Palette, paths: &[OutcomePath], files: u64) -> String {
    let rows: Vec<Vec<Cell>> = paths
        .iter()
        .take(PATHS)
        .map(|path| {
            let tone = match path.kind.as_str() {
                "create" => Tone::Good,
                "delete" => Tone::Bad,
                _ => Tone::Warning,
            };
            let merged = if path.merged { "merged" } else { "" };
            vec![
                Cell::new(""),
                Cell::toned(&path.kind, tone),
                Cell::new(&path.path),
                Cell::toned(merged, Tone::Quiet),
            ]
        })
        .collect();
    let mut text = table(palette, &rows);
    let shown = rows.len() as u64;
    if !paths.is_empty() && files > shown {
        text.push_str(&format!("  … and {} more\n", files - shown));
    }
    text
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::super::samples::{conflict, content_conflict, plan};
    use super::*;

    fn outcome(kind: OutcomeKind) -> PlanOutcome {
        let path = |kind: &str, path: &str, merged| OutcomePath {
            path: path.to_owned(),
            kind: kind.to_owned(),
            merged,
        };
        PlanOutcome {
            outcome: kind,
            plans: vec![plan(PlanState::Applied)],
            paths: vec![
                path("create", "src/new.rs", false),
                path("modify", "src/lib.rs", true),
                path("delete", "old.rs", false),
            ],
            conflicts: Vec::new(),
            commit: None,
            commit_failed: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn outcomes_tell_what_was_done_and_what_to_do() {
        let committed = PlanOutcome {
            commit: Some("0123abc".to_owned()),
            ..outcome(OutcomeKind::Done)
        };
        let conflicted = PlanOutcome {
            paths: Vec::new(),
            conflicts: vec![content_conflict(), conflict("binary")],
            ..outcome(OutcomeKind::Conflicted)
        };
        let mut said = String::new();
        for (outcome, attempt) in [
            (&committed, Attempt::Apply),
            (&outcome(OutcomeKind::WouldBeDone), Attempt::Apply),
            (&outcome(OutcomeKind::Done), Attempt::Undo),
            (&outcome(OutcomeKind::WouldBeDone), Attempt::Undo),
            (&outcome(OutcomeKind::Done), Attempt::Refresh),
            (&conflicted, Attempt::Apply),
            (&conflicted, Attempt::Undo),
        ] {
            said.push_str(&format!(
                "# {attempt:?}\n{}\n",
                outcome_text(Palette::Plain, outcome, attempt)
            ));
        }
        insta::assert_snapshot!(said);
    }

    #[test]
    fn a_conflict_is_a_failure_and_a_dry_run_is_none() {
        for (kind, expected) in [
            (OutcomeKind::Done, Exit::Success),
            (OutcomeKind::WouldBeDone, Exit::Success),
            (OutcomeKind::Conflicted, Exit::Failed),
        ] {
            let answer = serde_json::to_value(outcome(kind)).unwrap();
            let found = report(answer.clone(), Attempt::Apply, Palette::Plain).unwrap();
            assert_eq!((found.exit, found.value), (expected, answer), "{kind:?}");
        }
    }
}
