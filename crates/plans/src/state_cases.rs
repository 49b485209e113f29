//! Every rule of `state.rs`, case by case, comparing the whole step. `table.rs`: every step in every state.

mod table;

use std::sync::Arc;

use eventlog::UnixMs;
use protocol::{
    ChangesetId, CheckState, HomeId, IfChildFails, PlanId, PlanState, SandboxStrategy, WorkspaceId,
};

use crate::PlanEvent;
use crate::state::{self, Extent};
use crate::{
    Actor, Attempt, Check, CheckEnd, CheckRun, Conflict, ConflictKind, Facts, Landed, ManifestId,
    OpenChangeset, PlanError, PlanRecord, Refused, Running, Unapplied, Unrecorded,
};

const BEFORE: UnixMs = UnixMs(1_000);
const NOW: UnixMs = UnixMs(9_000);
const EMPTY: ManifestId = ManifestId([0; 32]);
const OTHER: ManifestId = ManifestId([1; 32]);
const STATES: [PlanState; 5] = [
    PlanState::Open,
    PlanState::Sealed,
    PlanState::Applied,
    PlanState::Undone,
    PlanState::Discarded,
];

pub(crate) fn actor(name: &str) -> Actor {
    Arc::from(name)
}

pub(crate) fn running(run_id: &str, tool: &str) -> Running {
    Running {
        id: run_id.to_owned(),
        job: None,
        actor: actor("bob"),
        tool: tool.to_owned(),
        reason: "make".to_owned(),
        since: BEFORE,
    }
}

pub(crate) fn in_state(state: PlanState) -> PlanRecord {
    PlanRecord {
        facts: Facts {
            workspace: WorkspaceId::generate(),
            root: "/workspace".into(),
            title: "a plan".to_owned(),
            opened_by: actor("ann"),
            opened_at: BEFORE,
            parent: None,
            depth: 0,
            strategy: SandboxStrategy::Copy,
            home: HomeId::generate(),
            max_parallel: None,
            if_child_fails: IfChildFails::CarryOn,
            idempotency_key: None,
            command: None,
        },
        state,
        changed_at: BEFORE,
        base: EMPTY,
        base_taken_at: None,
        sandbox: 1,
        ignored: Default::default(),
        entries: 0,
        outdated_entries: 0,
        changesets: 0,
        open_changesets: Vec::new(),
        files: 0,
        fingerprint: EMPTY,
        running: Vec::new(),
        checks: Vec::new(),
        landing: None,
        landed: None,
        refused: None,
        left_out: Vec::new(),
        remarks: Vec::new(),
        uncarried: Vec::new(),
        branches: Vec::new(),
        unrecorded: None,
        has_sandbox: true,
    }
}

/// Other properties of a plan besides its state.
#[derive(Clone, Copy, Debug)]
enum With {
    Nothing,
    ACommand,
    ALanding,
    Work,
    AFailedCheck,
}

fn prepared(state: PlanState, with: With) -> PlanRecord {
    let mut record = in_state(state);
    match with {
        With::Nothing => {}
        With::ACommand => record.running.push(running("run_id", "shell")),
        With::ALanding => record.landing = Some("landing".to_owned()),
        With::Work => record.files = 2,
        With::AFailedCheck => record.checks.push(check("make", EMPTY, Some("failed"))),
    }
    record
}

fn check(command: &str, fingerprint: ManifestId, ended: Option<&str>) -> Check {
    Check {
        command: command.to_owned(),
        run: Some(CheckRun {
            job: "job".to_owned(),
            fingerprint,
            ended: ended.map(|text| CheckEnd {
                passed: text == "passed",
                text: text.to_owned(),
                at: BEFORE,
            }),
        }),
    }
}

fn moved(record: &PlanRecord, change: impl FnOnce(&mut PlanRecord)) -> PlanRecord {
    let mut next = record.clone();
    next.changed_at = NOW;
    change(&mut next);
    next
}

fn said(event: &'static str, by: &str, text: &str) -> PlanEvent {
    PlanEvent::new(event, &actor(by), text)
}

#[test]
fn a_changeset_is_published_and_current_in_one_step() {
    let (plan, id) = (PlanId::generate(), ChangesetId::generate());
    for (state, first) in [
        (PlanState::Open, None),
        (
            PlanState::Sealed,
            Some(said("reopened", "ann", "it is being worked on again")),
        ),
    ] {
        let before = in_state(state);
        let (next, told) = state::start_changeset(plan, &before, id, &actor("ann"), "to see", NOW).unwrap();
        let expected = moved(&before, |next| {
            next.state = PlanState::Open;
            next.changesets = 1;
            next.open_changesets = vec![open(id, "ann")];
        });
        assert_eq!(next, expected);
        let started = said("changeset_started", "ann", "to see");
        assert_eq!(told, first.into_iter().chain([started]).collect::<Vec<_>>());
        assert_eq!(state::current_changeset(&next, &actor("ann")), Some(id));
        assert_eq!(state::current_changeset(&next, &actor("bob")), None);
    }
}

fn open(id: ChangesetId, name: &str) -> OpenChangeset {
    OpenChangeset {
        id,
        actor: actor(name),
    }
}

#[test]
fn the_current_changeset_is_the_last_that_its_actor_has_open() {
    let ids: Vec<ChangesetId> = (0..4).map(|_| ChangesetId::generate()).collect();
    let mut record = in_state(PlanState::Open);
    record.open_changesets = vec![
        open(ids[0], "ann"),
        open(ids[1], "ann"),
        open(ids[2], "bob"),
        open(ids[3], "cy"),
    ];
    let current = |record: &PlanRecord, name: &str| state::current_changeset(record, &actor(name));
    assert_eq!(current(&record, "ann"), Some(ids[1]));
    assert_eq!(current(&record, "bob"), Some(ids[2]));
    let (record, told) = state::close_changeset(&record, ids[1], NOW);
    assert_eq!(told, [said("changeset_closed", "ann", "")]);
    assert_eq!(record.changed_at, NOW);
    assert_eq!(current(&record, "ann"), Some(ids[0]));
    assert_eq!(
        state::close_changeset(&record, ids[1], UnixMs(10_000)),
        (record.clone(), Vec::new()),
        "one that is closed stays so"
    );
    let (sealed, _) = state::seal(PlanId::generate(), &record, &actor("ann"), NOW).unwrap();
    assert_eq!(sealed.open_changesets, []);
}

#[test]
fn there_is_a_limit_to_open_changesets_and_to_checks() {
    let plan = PlanId::generate();
    let mut record = in_state(PlanState::Open);
    for number in 0..256 {
        let begun = state::start_changeset(
            plan,
            &record,
            ChangesetId::generate(),
            &actor(&number.to_string()),
            "",
            NOW,
        );
        record = begun.unwrap().0;
    }
    let full = state::start_changeset(plan, &record, ChangesetId::generate(), &actor("one"), "", NOW);
    let Err(PlanError::Busy { by, .. }) = full else {
        panic!("{full:?}");
    };
    assert_eq!(by, "256 changesets are open; close some");

    let commands = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
    let record = in_state(PlanState::Open);
    let (record, told) = state::add_checks(plan, &record, commands(64), NOW).unwrap();
    assert_eq!((record.checks.len(), told), (64, Vec::new()));
    let (same, _) = state::add_checks(plan, &record, commands(64), NOW).unwrap();
    assert_eq!(same, record, "those that are there are not added again");
    let full = state::add_checks(plan, &record, commands(65), NOW);
    assert!(matches!(full, Err(PlanError::Busy { .. })), "{full:?}");
}

#[test]
fn what_is_recorded_is_counted_and_makes_checks_outdated() {
    let plan = PlanId::generate();
    let mut before = in_state(PlanState::Sealed);
    before.checks.push(check("make", EMPTY, Some("passed")));
    before.entries = 3;
    assert!(state::may_land(plan, &before, Attempt::Apply).is_ok());
    for (count, text) in [(1, "1 change"), (2, "2 changes")] {
        let extent = Extent {
            files: 5,
            fingerprint: OTHER,
        };
        let (next, told) = state::record(plan, &before, &actor("ann"), count, extent, NOW).unwrap();
        let expected = moved(&before, |next| {
            next.state = PlanState::Open;
            next.entries = 3 + count;
            next.files = 5;
            next.fingerprint = OTHER;
        });
        assert_eq!(next, expected);
        assert_eq!(
            told,
            [
                said("reopened", "ann", "it is being worked on again"),
                said("changed", "ann", text)
            ]
        );
        let refused = state::may_land(plan, &next, Attempt::Apply);
        let Err(PlanError::ChecksNotPassed { checks, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(checks, [("make".to_owned(), CheckState::Outdated)]);
    }
}

#[test]
fn a_command_is_in_the_plan_from_its_entering_to_its_leaving() {
    let plan = PlanId::generate();
    for (state, tool, told_before, after) in [
        (PlanState::Open, "shell", None, PlanState::Open),
        (
            PlanState::Sealed,
            "shell",
            Some(said("reopened", "bob", "it is being worked on again")),
            PlanState::Open,
        ),
        (PlanState::Sealed, state::CHECK_TOOL, None, PlanState::Sealed),
    ] {
        let before = in_state(state);
        let (entered, told) = state::command_started(plan, &before, running("run_id", tool), NOW).unwrap();
        let expected = moved(&before, |next| {
            next.state = after;
            next.running = vec![running("run_id", tool)];
        });
        assert_eq!(entered, expected);
        let started = said("command_started", "bob", "make");
        assert_eq!(told, told_before.into_iter().chain([started]).collect::<Vec<_>>());
        assert_eq!(
            state::command_ended(&entered, "another", Ok(()), NOW),
            (entered.clone(), Vec::new())
        );
        let (left, told) = state::command_ended(&entered, "run_id", Ok(()), NOW);
        assert_eq!(left, moved(&entered, |next| next.running.clear()));
        assert_eq!(told, [said("command_ended", "bob", "make")]);
    }
}

#[test]
fn a_command_whose_changes_are_not_recorded_is_over_and_keeps_the_plan_from_being_discarded() {
    let plan = PlanId::generate();
    let mut entered = in_state(PlanState::Open);
    entered.running = vec![running("run_id", "shell")];
    let (left, told) = state::command_ended(&entered, "run_id", Err("the disk is full".to_owned()), NOW);
    let failed = Unrecorded::new(
        (&running("run_id", "shell")).into(),
        "the disk is full".to_owned(),
    );
    let expected = moved(&entered, |next| {
        next.running.clear();
        next.unrecorded = Some(failed.clone());
    });
    assert_eq!(left, expected);
    assert_eq!(
        told,
        [
            said("command_ended", "bob", "make"),
            said("not_recorded", "bob", "the disk is full")
        ]
    );
    let discard = |record: &PlanRecord, work| state::discard(plan, record, &actor("ann"), work, NOW);
    let refused = discard(&left, Unapplied::Keep);
    let Err(PlanError::HasUncarriedWork { what, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(what, "what `make` changed is not recorded: the disk is full");
    discard(&left, Unapplied::GiveUp).unwrap();
    // The next completed capture has recorded everything.
    let (looked, told) = state::looked_at(&left, Ok(()), NOW);
    assert_eq!((looked.unrecorded.clone(), told), (None, Vec::new()));
    discard(&looked, Unapplied::Keep).unwrap();
    let (again, told) = state::looked_at(&looked, Err(failed), NOW);
    assert_eq!(again.unrecorded, left.unrecorded);
    assert_eq!(told, [said("not_recorded", "bob", "the disk is full")]);
}

#[test]
fn who_is_in_the_way_is_named() {
    let plan = PlanId::generate();
    let by = |record: &PlanRecord| match state::seal(plan, record, &actor("ann"), NOW) {
        Err(PlanError::Busy { by, .. }) => by,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        by(&prepared(PlanState::Open, With::ACommand)),
        "`make` of bob runs in it"
    );
    assert_eq!(
        by(&prepared(PlanState::Open, With::ALanding)),
        "it is being applied or taken back"
    );
}

#[test]
fn a_landing_closes_the_changesets_and_ends_done_or_refused() {
    let plan = PlanId::generate();
    let mut before = in_state(PlanState::Open);
    before.open_changesets = vec![open(ChangesetId::generate(), "ann")];
    before.refused = Some(refused(1));
    let begun = state::begin_landing(plan, &before, Attempt::Apply, "landing", NOW).unwrap();
    let expected = moved(&before, |next| {
        next.state = PlanState::Sealed;
        next.open_changesets.clear();
        next.landing = Some("landing".to_owned());
    });
    assert_eq!(begun, expected);
    for (what, event, state) in [
        (Attempt::Apply, "applied", PlanState::Applied),
        (Attempt::Undo, "undone", PlanState::Undone),
        (Attempt::Refresh, "refreshed", PlanState::Sealed),
    ] {
        let landed = Landed {
            landing: "landing".to_owned(),
            number: 0,
            commit: None,
            commit_wanted: None,
        };
        let (next, told) = state::landed(
            &begun,
            what,
            &actor("ann"),
            state,
            landed.clone(),
            "1 file".to_owned(),
            NOW,
        );
        let expected = moved(&begun, |next| {
            next.state = state;
            next.landing = None;
            next.landed = Some(landed);
            next.refused = None;
        });
        assert_eq!((next, told), (expected, vec![said(event, "ann", "1 file")]));
    }
    for (count, kept, text) in [
        (0, 0, "0 conflicts"),
        (1, 1, "1 conflict"),
        (60, 50, "60 conflicts"),
    ] {
        let (next, told) = state::refused(&begun, refused(count), NOW);
        let expected = moved(&begun, |next| {
            next.landing = None;
            next.refused = Some(refused(kept));
        });
        assert_eq!((next, told), (expected, vec![said("refused", "ann", text)]));
    }
}

fn refused(conflicts: usize) -> Refused {
    let conflict = |number: usize| Conflict {
        path: number.to_string().parse().unwrap(),
        kind: ConflictKind::Content,
        base: None,
        ours: None,
        theirs: None,
        other: None,
        hunks: Vec::new(),
    };
    Refused {
        what: Attempt::Apply,
        by: actor("ann"),
        at: NOW,
        conflicts: (0..conflicts).map(conflict).collect(),
    }
}

#[test]
fn a_check_counts_for_what_was_in_the_plan_and_only_its_last_run() {
    let plan = PlanId::generate();
    let end = |passed: bool| CheckEnd {
        passed,
        text: "exit".to_owned(),
        at: NOW,
    };
    let (record, _) =
        state::add_checks(plan, &in_state(PlanState::Sealed), vec!["make".to_owned()], NOW).unwrap();
    let start = |record: &PlanRecord, job: &str| {
        state::check_started(plan, record, "make", job, &actor("ann"), NOW).unwrap()
    };
    let ended = |record: &PlanRecord, job: &str, passed: bool| {
        state::check_ended(record, "make", job, end(passed), &actor("ann"), NOW)
    };
    let state_of = |record: &PlanRecord| record.checks[0].state(record.fingerprint);
    assert_eq!(state_of(&record), CheckState::Missing);
    let (first, told) = start(&record, "first");
    assert_eq!(told, [said("check_started", "ann", "make")]);
    assert_eq!(state_of(&first), CheckState::Running);
    assert_eq!(start(&first, "first"), (first.clone(), Vec::new()));
    let (second, _) = start(&first, "second");
    assert_eq!(
        ended(&second, "first", true),
        (second.clone(), Vec::new()),
        "a late end of an earlier run"
    );
    for (passed, text, state) in [
        (true, "make: passed", CheckState::Passed),
        (false, "make: failed", CheckState::Failed),
    ] {
        let (over, told) = ended(&second, "second", passed);
        assert_eq!(told, [said("check_ended", "ann", text)]);
        assert_eq!(state_of(&over), state);
        assert_eq!(state::may_land(plan, &over, Attempt::Apply).is_ok(), passed);
        assert_eq!(
            ended(&over, "second", !passed),
            (over.clone(), Vec::new()),
            "an end is final"
        );
        let (again, _) = start(&over, "third");
        assert_eq!(state_of(&again), CheckState::Running, "and must run again");
    }
}
