//! The end of a turn: how it ended, what it changed, and what to type next.

use protocol::{ErrorCode, Plan, PlanState, Session, Turn, TurnState, Usage};
use serde_json::{Value, json};

use super::labels::{self, usage as usage_text};
use super::{path, turn_path};
use crate::client::{Client, Interrupted, Interrupts};
use crate::commands::exec::ending::{End, diff_summary, finished, show_finish};
use crate::commands::exec::messages as plan_messages;
use crate::commands::job::INTERRUPTED;
use crate::commands::plan::{path as plan_path, short};
use crate::error::{Exit, Failure};
use crate::printable::printable;

const UNCHANGED: &str = "It changed nothing.\n";

#[derive(Debug)]
pub(super) struct TurnReport {
    pub(super) value: Value,
    pub(super) text: String,
    pub(super) exit: Exit,
}

/// The exit code after waiting for a turn.
pub(super) fn exit_of(state: TurnState) -> Exit {
    match state {
        TurnState::Done => Exit::Success,
        TurnState::Cancelled => Exit::Command(INTERRUPTED),
        TurnState::Queued | TurnState::Running | TurnState::Failed | TurnState::Interrupted => Exit::Failed,
    }
}

/// Shows how a turn ended and what became of its plan. If the daemon is still finishing the plan, follows that first;
/// returns `None` if the user detached.
pub(super) fn ended(
    session: &str,
    turn: &str,
    used: &Usage,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<Option<TurnReport>, Failure> {
    let mut turn_value: Value = client.fetch(&turn_path(session, turn, ""))?;
    let mut interrupted = Interrupted::No;
    if let Some(job) = turn_value["finish_job"].as_str() {
        let Some((_, by_user)) = finished(job, interrupts, client)? else {
            return Ok(None);
        };
        interrupted = by_user;
        turn_value = client.fetch(&turn_path(session, turn, ""))?;
    }
    let session_value = client.fetch(&path(session, ""))?;
    let turn: Turn = printable(&turn_value)?;
    let conversation: Session = printable(&session_value)?;
    let mut text = how(&turn);
    let used = if turn.usage.requests > 0 {
        &turn.usage
    } else {
        used
    };
    if let Some(used) = usage_text(used) {
        text.push_str(&format!("Used: {used}.\n"));
    }
    let mut end = End {
        plan: Value::Null,
        job: Value::Null,
        outcome: json!({ "outcome": "unchanged" }),
        text,
        exit: exit_of(turn.state),
    };
    if turn.finished.is_some() {
        end.outcome = turn_value["finished"].clone();
    }
    let plan = turn.plan.as_ref().or(conversation.plan.as_ref());
    match plan.map(|plan| (plan, client.fetch(&plan_path(plan, "")))) {
        Some((_, Ok(value))) => {
            end.plan = value;
            show_plan(&mut end, &turn, client)?;
        }
        // A plan that no longer exists needs no review.
        Some((_, Err(failure))) if failure.code == ErrorCode::PlanNotFound.as_str() => {
            end.text.push_str(UNCHANGED);
        }
        Some((plan, Err(failure))) => end = unknown(end, plan, failure),
        None => end.text.push_str(UNCHANGED),
    }
    if interrupted == Interrupted::Yes && end.exit == Exit::Failed {
        end.exit = Exit::Command(INTERRUPTED);
    }
    end.text.push_str(&go_on(&conversation));
    Ok(Some(TurnReport {
        value: json!({
            "session": session_value,
            "turn": turn_value,
            "plan": end.plan,
            "outcome": end.outcome,
        }),
        text: end.text,
        exit: end.exit,
    }))
}

/// Shows the plan's changes, and what the daemon did with them if the prompt asked for that.
fn show_plan(end: &mut End, turn: &Turn, client: &Client) -> Result<(), Failure> {
    let plan: Plan = printable(&end.plan)?;
    match &turn.finished {
        Some(finish) if turn.state == TurnState::Done || has_work(&plan) => {
            show_finish(end, &plan, finish, client);
        }
        None if has_work(&plan) => {
            end.outcome = json!({ "outcome": plan.state.as_str() });
            end.text.push_str(&diff_summary(&plan, client));
            end.text.push_str(&plan_messages::not_carried(&plan));
            end.text.push_str(&plan_messages::next(&plan));
        }
        Some(_) | None => end.text.push_str(UNCHANGED),
    }
    Ok(())
}

/// The plan can't be read, so its changes are unknown, and nothing was applied.
fn unknown(mut end: End, plan: &str, failure: Failure) -> End {
    let id = short(plan);
    end.text.push_str(&format!(
        "error: the plan {id} cannot be read: {}\nNothing was applied. The changes are kept in the plan; try again with: tidelock plan show {id}\n",
        failure.message
    ));
    if end.exit == Exit::Success {
        end.exit = failure.exit;
    }
    end.outcome = json!({ "outcome": "unknown", "error": failure });
    end
}

/// Whether there is something to review. A plan that was already applied or discarded has nothing.
fn has_work(plan: &Plan) -> bool {
    let has_any = plan.summary.files > 0 || !plan.not_carried.is_empty() || plan.unrecorded.is_some();
    has_any && matches!(plan.state, PlanState::Open | PlanState::Sealed)
}

/// How a turn ended, if it did not succeed.
fn how(turn: &Turn) -> String {
    let because = match labels::why(turn) {
        why if why.is_empty() => String::new(),
        why => format!(": {why}"),
    };
    match turn.state {
        TurnState::Done => String::new(),
        TurnState::Cancelled => "The turn was cancelled. Its messages and changes are kept.\n".to_owned(),
        TurnState::Interrupted => {
            format!("The turn was interrupted{because}. Its messages and changes are kept.\n")
        }
        TurnState::Failed => format!("The turn failed{because}.\n"),
        TurnState::Queued | TurnState::Running => "The turn keeps running.\n".to_owned(),
    }
}

fn go_on(session: &Session) -> String {
    format!(
        "Continue with: tidelock session send {} PROMPT\n",
        short(&session.id)
    )
}

/// The user detached from the turn.
pub(super) fn left(session: &str, beginning: &str) -> String {
    let id = short(session);
    format!(
        "{beginning} Next:\n  tidelock session attach {id}\n  tidelock session show {id}\n  tidelock session cancel {id}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::samples::{session, turn};
    use super::*;

    #[test]
    fn a_plan_that_cannot_be_read_is_not_a_plan_without_changes() {
        let end = |exit| End {
            plan: Value::Null,
            job: Value::Null,
            outcome: json!({ "outcome": "unchanged" }),
            text: String::new(),
            exit,
        };
        let failure = || Failure::new(Exit::Failed, "log_refusing", "The log cannot be read.");
        let told = unknown(end(Exit::Success), "plan_01JCZ8T6V8Y3N5K2M4Q7R9T1TX", failure());
        assert_eq!(told.exit, Exit::Failed);
        assert_eq!(told.outcome["outcome"], "unknown");
        assert_eq!(told.outcome["error"]["code"], "log_refusing");
        assert!(
            told.text.contains("cannot be read: The log cannot be read.")
                && !told.text.contains("changed nothing"),
            "{}",
            told.text
        );
        // How the turn ended matters more than what came after it.
        let cancelled = unknown(
            end(Exit::Command(INTERRUPTED)),
            "plan_01JCZ8T6V8Y3N5K2M4Q7R9T1TX",
            failure(),
        );
        assert_eq!(cancelled.exit, Exit::Command(INTERRUPTED));
    }

    #[test]
    fn what_is_said_after_a_turn() {
        use TurnState::{Cancelled, Done, Failed, Interrupted};
        let mut parts: Vec<String> = [Done, Failed, Cancelled, Interrupted]
            .into_iter()
            .map(|state| format!("{:?}\n{}", exit_of(state), how(&turn(state))))
            .collect();
        parts.push(go_on(&session()));
        parts.push(left(&session().id, "Detached."));
        insta::assert_snapshot!(parts.join("----\n"));
    }
}
