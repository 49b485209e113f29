//! A turn is over: how it ended, what it changed, and what to type next.

use protocol::{ErrorCode, Plan, PlanState, Session, Turn, TurnState, Usage};
use serde_json::{Value, json};

use super::words::{self, usage as usage_text};
use super::{path, turn_path};
use crate::cli::IfDone;
use crate::client::{Client, Interrupts};
use crate::commands::exec::ending::{End, SUMMARY_FILES, applied, seal};
use crate::commands::exec::words as plan_words;
use crate::commands::job::INTERRUPTED;
use crate::commands::plan::{columns, path as plan_path, read_diff, short, stat};
use crate::error::{Exit, Failure};
use crate::output::Palette;
use crate::printable::printable;

/// All that there is to say at the end.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) value: Value,
    pub(super) text: String,
    pub(super) exit: Exit,
}

/// How a turn ends a process that has waited for it.
pub(super) fn exit_of(state: TurnState) -> Exit {
    match state {
        TurnState::Done => Exit::Success,
        TurnState::Cancelled => Exit::Command(INTERRUPTED),
        TurnState::Queued | TurnState::Running | TurnState::Failed | TurnState::Interrupted => Exit::Failed,
    }
}

/// What follows when a turn is over.
pub(super) fn ended(
    (session, turn): (&str, &str),
    (if_done, used): (IfDone, &Usage),
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<Outcome, Failure> {
    let turn_value = client.fetch(&turn_path(session, turn, ""))?;
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
    let plan = turn.plan.as_ref().or(conversation.plan.as_ref());
    match plan.map(|plan| (plan, client.fetch(&plan_path(plan, "")))) {
        Some((_, Ok(value))) if has_work(&printable(&value)?) => {
            end.plan = value;
            end = with_plan((end, &turn), if_done, interrupts, client)?;
        }
        Some((_, Ok(value))) => end = unchanged(end, value),
        // A plan that is gone is nothing to review any more.
        Some((_, Err(failure))) if failure.code == ErrorCode::PlanNotFound.as_str() => {
            end = unchanged(end, Value::Null);
        }
        Some((plan, Err(failure))) => end = unknown(end, plan, failure),
        None => end = unchanged(end, Value::Null),
    }
    end.text.push_str(&go_on(&conversation));
    Ok(Outcome {
        value: json!({
            "session": session_value,
            "turn": turn_value,
            "plan": end.plan,
            "outcome": end.outcome,
        }),
        text: end.text,
        exit: end.exit,
    })
}

/// The turn has changed nothing that is still to be reviewed.
fn unchanged(mut end: End, plan: Value) -> End {
    end.plan = plan;
    end.text.push_str("It changed nothing.\n");
    end
}

/// The plan cannot be read, so nobody knows what was changed, and nothing was applied.
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

/// Shows what the plan comes to, and applies it if that is wanted.
fn with_plan(
    (mut end, turn): (End, &Turn),
    if_done: IfDone,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<End, Failure> {
    let plan: Plan = printable(&end.plan)?;
    end.outcome = json!({ "outcome": plan.state.as_str() });
    // What cannot be shown is still there: the numbers of the plan are enough to go on.
    let summary = match read_diff(&plan.id, "", client) {
        Ok((_, diff)) => stat(Palette::for_stderr(), &diff, SUMMARY_FILES, columns()),
        Err(failure) => format!(
            "{} (the diff cannot be shown: {})\n",
            plan_words::numbers(&plan),
            failure.message
        ),
    };
    end.text.push_str(&summary);
    end.text.push_str(&plan_words::not_carried(&plan));
    match (if_done, turn.state) {
        (IfDone::Apply, TurnState::Done) => {
            if plan.state == PlanState::Open {
                seal(&mut end, &plan.id, client);
            }
            return applied(None, end, interrupts, client);
        }
        (IfDone::Apply, _) => {
            end.outcome = json!({ "outcome": "not_applied", "why": "turn_not_done" });
            end.text
                .push_str("It was not applied, because the turn didn't finish.\n");
        }
        (IfDone::Show, _) => {}
    }
    end.text.push_str(&plan_words::next(&plan));
    Ok(end)
}

/// Whether there is something to review. What was applied or given up before is over.
fn has_work(plan: &Plan) -> bool {
    let has_any = plan.summary.files > 0 || !plan.not_carried.is_empty() || plan.unrecorded.is_some();
    has_any && matches!(plan.state, PlanState::Open | PlanState::Sealed)
}

/// How a turn ended, if not well.
fn how(turn: &Turn) -> String {
    let because = match words::why(turn) {
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

/// How to go on with the session.
fn go_on(session: &Session) -> String {
    format!(
        "Continue with: tidelock session send {} PROMPT\n",
        short(&session.id)
    )
}

/// Nobody stays with the turn.
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
        // How the turn ended is worth more than what came after it.
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
