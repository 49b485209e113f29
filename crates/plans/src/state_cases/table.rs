//! Every step in every state: the next state, or why it is refused.

use protocol::{ChangesetId, CheckState, PlanId, PlanState};

use super::{BEFORE, NOW, OTHER, STATES, With, actor, prepared, running};
use crate::state::{self, Extent, Step};
use crate::{Attempt, PlanError, PlanRecord, Unapplied};

/// The steps that can be refused, with the result for each state: the next state, or why it is refused. `=` means that
/// nothing happens.
const TABLE: &[(With, &str)] = &[
    (
        With::Nothing,
        "step             open   sealed applied undone  discarded
         may_work         open   sealed wrong   wrong   wrong
         start_changeset  open   open   wrong   wrong   wrong
         record           open   open   wrong   wrong   wrong
         enter            open   open   wrong   wrong   wrong
         enter_check      open   sealed wrong   wrong   wrong
         seal             sealed =      wrong   wrong   wrong
         discard          gone   gone   wrong   gone    =
         give_up          gone   gone   wrong   gone    =
         apply            sealed sealed wrong   undone  wrong
         undo             wrong  wrong  applied wrong   wrong
         refresh          sealed sealed wrong   wrong   wrong
         check_started    open   sealed wrong   undone  wrong",
    ),
    (
        With::ACommand,
        "step             open   sealed applied undone  discarded
         may_work         open   sealed wrong   wrong   wrong
         start_changeset  open   open   wrong   wrong   wrong
         record           open   open   wrong   wrong   wrong
         enter            open   open   wrong   wrong   wrong
         enter_check      open   sealed wrong   wrong   wrong
         seal             busy   busy   busy    busy    busy
         discard          busy   busy   busy    busy    busy
         give_up          busy   busy   busy    busy    busy
         apply            busy   busy   busy    busy    busy
         undo             busy   busy   busy    busy    busy
         refresh          busy   busy   busy    busy    busy
         check_started    open   sealed wrong   undone  wrong",
    ),
    (
        With::ALanding,
        "step             open   sealed applied undone  discarded
         may_work         busy   busy   busy    busy    busy
         start_changeset  busy   busy   busy    busy    busy
         record           busy   busy   busy    busy    busy
         enter            busy   busy   busy    busy    busy
         enter_check      busy   busy   busy    busy    busy
         seal             busy   busy   busy    busy    busy
         discard          busy   busy   busy    busy    busy
         give_up          busy   busy   busy    busy    busy
         apply            busy   busy   busy    busy    busy
         undo             busy   busy   busy    busy    busy
         refresh          busy   busy   busy    busy    busy
         check_started    busy   busy   busy    busy    busy",
    ),
    (
        With::Work,
        "step             open   sealed applied undone  discarded
         discard          work   work   wrong   gone    =
         give_up          gone   gone   wrong   gone    =",
    ),
    (
        With::AFailedCheck,
        "step             open   sealed applied undone  discarded
         seal             sealed =      wrong   wrong   wrong
         apply            checks checks wrong   checks  wrong
         undo             wrong  wrong  applied wrong   wrong
         refresh          sealed sealed wrong   wrong   wrong",
    ),
];

fn do_step(step: &str, plan: PlanId, record: &PlanRecord) -> Step {
    let by = actor("ann");
    let silently = |next: PlanRecord| (next, Vec::new());
    match step {
        "may_work" => state::may_work(plan, record).map(|()| silently(record.clone())),
        "start_changeset" => state::start_changeset(plan, record, ChangesetId::generate(), &by, "why", NOW),
        "record" => {
            let extent = Extent {
                files: 1,
                fingerprint: OTHER,
            };
            state::record(plan, record, &by, 2, extent, NOW)
        }
        "enter" => state::command_started(plan, record, running("new", "shell"), NOW),
        "enter_check" => state::command_started(plan, record, running("new", state::CHECK_TOOL), NOW),
        "seal" => state::seal(plan, record, &by, NOW),
        "discard" => state::discard(plan, record, &by, Unapplied::Keep, NOW),
        "give_up" => state::discard(plan, record, &by, Unapplied::GiveUp, NOW),
        "apply" => state::begin_landing(plan, record, Attempt::Apply, "new", NOW).map(silently),
        "undo" => state::begin_landing(plan, record, Attempt::Undo, "new", NOW).map(silently),
        "refresh" => state::begin_landing(plan, record, Attempt::Refresh, "new", NOW).map(silently),
        "check_started" => state::check_started(plan, record, "make", "new", &by, NOW),
        other => panic!("there is no step {other}"),
    }
}

fn verdict(step: &str, before: &PlanRecord, outcome: &Step) -> String {
    match outcome {
        Ok((next, said)) => {
            if step != "may_work" && *next == *before && said.is_empty() {
                return "=".to_owned();
            }
            match next.state {
                PlanState::Discarded => "gone".to_owned(),
                state => state.as_str().to_owned(),
            }
        }
        Err(PlanError::WrongState { state, .. }) if *state == before.state => "wrong".to_owned(),
        Err(PlanError::AlreadyApplied { .. }) if before.state == PlanState::Applied => "wrong".to_owned(),
        Err(PlanError::Busy { .. }) => "busy".to_owned(),
        Err(PlanError::HasWork { files: 2, .. }) => "work".to_owned(),
        Err(PlanError::ChecksNotPassed { checks, .. }) => {
            assert_eq!(checks, &[("make".to_owned(), CheckState::Failed)]);
            "checks".to_owned()
        }
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn every_step_in_every_state() {
    let plan = PlanId::generate();
    for (with, table) in TABLE {
        let mut lines = table.lines().map(str::split_whitespace);
        let names: Vec<&str> = lines.next().unwrap().skip(1).collect();
        assert_eq!(names, STATES.map(PlanState::as_str));
        for mut cells in lines {
            let step = cells.next().unwrap();
            let expected: Vec<&str> = cells.collect();
            let found = STATES.map(|state| {
                let before = prepared(state, *with);
                let outcome = do_step(step, plan, &before);
                if let Ok((next, said)) = &outcome {
                    // Every change sets the time, and without a change there are no events.
                    let time = if *next == before { BEFORE } else { NOW };
                    assert_eq!(next.changed_at, time, "{step} in {state:?}");
                    assert!(*next != before || said.is_empty(), "{step} in {state:?}");
                }
                verdict(step, &before, &outcome)
            });
            assert_eq!(found.as_slice(), expected, "{step} with {with:?}");
        }
    }
}
