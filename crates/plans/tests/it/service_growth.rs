//! What a service does not keep: places for sandboxes, and what it would have to wait for.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use eventlog::{Commit, Fault, Faults, Head, StreamId, Version, Write as LogWrite};
use kernel::ManualClock;
use plans::{Forgotten, NewPlan, PlanError, Unapplied};
use protocol::{OutcomeKind, PlanId, PlanState, WorkspaceState};

use crate::service_kit::{COMMIT, Kit, actor, shell};

const SCRIPT: &str = "echo one > a.txt";

fn places(kit: &Kit) -> usize {
    fs::read_dir(kit.root.join("data/sandboxes")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_plan_gives_its_place_back_at_once() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("nothing").await;
    kit.run(plan, "ann", "true").await;
    assert_eq!(places(&kit), 1);
    let discarded = kit.plans.discard(plan, actor("ann"), None, Unapplied::Keep).await;
    let discarded = discarded.unwrap();
    assert_eq!(
        discarded,
        kit.plans.get(plan).await.unwrap(),
        "the newest version is answered"
    );
    assert_eq!((places(&kit), discarded.record.has_sandbox), (0, false));

    let plan = kit.plan("something").await;
    kit.write(plan, "ann", "b.txt", "b").await;
    let given_up = kit.plans.discard(plan, actor("ann"), None, Unapplied::GiveUp);
    given_up.await.unwrap();
    assert_eq!(
        places(&kit),
        1,
        "work that was given up can be looked at for a while"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_the_oldest_sandboxes_of_plans_that_are_over_go_by_themselves() {
    let mut kit = Kit::repository(SCRIPT).await;
    kit.settings.max_sandboxes = 3;
    kit.again().await;
    let mut plans = Vec::new();
    for name in ["applied", "given up", "open"] {
        let plan = kit.plan(name).await;
        kit.write(plan, "ann", name, "work").await;
        plans.push(plan);
    }
    let refused = kit.plans.open_plan(kit.new_plan()).await;
    let Err(PlanError::NoRoom { why }) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        why.starts_with("3 plans are open; list them with `tidelock plan list`"),
        "{why}"
    );

    assert_eq!(kit.apply(&plans[..1]).await.kind, OutcomeKind::Done);
    let given_up = kit.plans.discard(plans[1], actor("ann"), None, Unapplied::GiveUp);
    given_up.await.unwrap();
    let newest = kit.plan("one more").await;
    let mut has_sandbox = Vec::new();
    for plan in plans.iter().chain([&newest]) {
        has_sandbox.push(kit.plans.get(*plan).await.unwrap().record.has_sandbox);
    }
    assert_eq!(has_sandbox, [false, true, true, true], "the oldest one went");
    kit.plan("and one more").await;
    assert_eq!(places(&kit), 3);
    assert!(matches!(
        kit.plans.open_plan(kit.new_plan()).await,
        Err(PlanError::NoRoom { .. })
    ));
    assert_eq!(
        kit.plans.get(plans[2]).await.unwrap().record.state,
        PlanState::Open
    );
}

/// There may be years of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_reads_no_plan_that_is_over() {
    let mut kit = Kit::repository(SCRIPT).await;
    let write = LogWrite {
        stream: StreamId::new("plan/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap(),
        expected: Version::NONE,
        head: Some(Head {
            kind: Arc::from("plan"),
            status: Arc::from("discarded"),
            body: Arc::from(&b"whoever reads this fails"[..]),
            blobs: Vec::new(),
        }),
        events: Vec::new(),
    };
    kit.log.commit(Commit::one(write)).await.unwrap();
    kit.again().await;
}

/// A directory whose file system does not answer, until this is dropped.
struct DeadMount {
    directory: std::path::PathBuf,
    server: Child,
}

impl DeadMount {
    /// `None` where there is no `bindfs`, or it may not mount.
    fn over(directory: &std::path::Path) -> Option<Self> {
        let server = Command::new("bindfs")
            .arg("-f")
            .args([directory, directory])
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut mount = Self {
            directory: directory.to_owned(),
            server,
        };
        while !fs::read_to_string("/proc/self/mountinfo")
            .unwrap()
            .contains(directory.to_str().unwrap())
        {
            if mount.server.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(&mount.server, "STOP");
        let state = format!("/proc/{}/stat", mount.server.id());
        while !fs::read_to_string(&state).unwrap().contains(") T ") {
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(mount)
    }
}

impl Drop for DeadMount {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        let unmounted = Command::new("umount").arg("-l").arg(&self.directory).status();
        assert!(unmounted.unwrap().success());
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_on_a_dead_mount_keeps_nobody_else_waiting() {
    let mut kit = Kit::repository(SCRIPT).await;
    let other = kit.root.join("other");
    fs::create_dir(&other).unwrap();
    shell(&other, &format!("echo other > a.txt\n{COMMIT}"));
    let on_other = NewPlan {
        on: plans::PlanOrigin::Directory(other.clone()),
        ..kit.new_plan()
    };
    kit.open_plan(on_other).await;
    let plan = kit.plan("work").await;
    kit.write(plan, "ann", "a.txt", "two\n").await;
    let Some(mount) = DeadMount::over(&other) else {
        let report = std::env::var_os("TIDELOCK_SKIP_REPORT");
        if let Some(path) = report {
            let mut file = fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .unwrap();
            writeln!(file, "SKIPPED: a dead mount, because bindfs cannot mount here").unwrap();
        }
        return;
    };
    let bound = Duration::from_secs(20);
    let applied = tokio::time::timeout(bound, kit.apply(&[plan])).await.unwrap();
    assert_eq!(applied.kind, OutcomeKind::Done);
    let opened = tokio::time::timeout(bound, kit.plan("another")).await;
    opened.unwrap();
    let listed = tokio::time::timeout(bound, kit.plans.workspaces()).await.unwrap();
    let presences: Vec<WorkspaceState> = listed.unwrap().iter().map(|found| found.presence).collect();
    assert_eq!(presences, [WorkspaceState::Unreachable, WorkspaceState::Present]);
    let started = tokio::time::timeout(bound, kit.again()).await;
    started.unwrap();
    drop(mount);
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many streams and blobs the log has.
async fn kept(kit: &Kit) -> (u64, u64) {
    let sizes = kit.log.sizes().await.unwrap();
    (sizes.streams, sizes.blobs)
}

async fn state(kit: &Kit, plan: PlanId) -> Option<PlanState> {
    match kit.plans.get(plan).await {
        Ok(plan) => Some(plan.record.state),
        Err(PlanError::NotFound(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_over_is_forgotten_whole() {
    let kit = Kit::repository(SCRIPT).await;
    let other = kit.plan("other").await;
    kit.write(other, "ann", "a.txt", "shared\n").await;
    let before = kept(&kit).await;
    let new = || NewPlan {
        idempotency_key: Some("key".to_owned()),
        title: "work".to_owned(),
        ..kit.new_plan()
    };
    let plan = kit.open_plan(new()).await.id;
    kit.write(plan, "ann", "a.txt", "shared\n").await;
    kit.write(plan, "ann", "own.txt", "of this plan alone\n").await;
    let child = NewPlan {
        on: plans::PlanOrigin::Plan(plan),
        ..kit.new_plan()
    };
    let child = kit.open_plan(child).await.id;
    let refused = kit.plans.forget(plan, actor("ann"), None).await;
    assert!(
        matches!(refused, Err(PlanError::Busy { .. })),
        "a child merges into it: {refused:?}"
    );
    let discarded = kit.plans.discard(child, actor("ann"), None, Unapplied::Keep);
    discarded.await.unwrap();
    kit.plans.forget(child, actor("ann"), None).await.unwrap();
    let refused = kit.plans.forget(plan, actor("ann"), None).await;
    assert!(matches!(refused, Err(PlanError::NotOver { .. })), "{refused:?}");

    assert_eq!(kit.apply(&[plan]).await.kind, OutcomeKind::Done);
    let seen = kit.plans.get(plan).await.unwrap().version.get();
    let stale = kit.plans.forget(plan, actor("ann"), Some(seen - 1)).await;
    assert!(matches!(stale, Err(PlanError::Stale { .. })), "{stale:?}");
    let forgotten = kit.plans.forget(plan, actor("ann"), Some(seen)).await.unwrap();
    assert!(forgotten.plans == 1 && forgotten.bytes > 0, "{forgotten:?}");
    assert_eq!(
        kept(&kit).await,
        before,
        "its changesets, its key, its landing and its contents went with it"
    );
    assert_eq!(state(&kit, plan).await, None);
    assert_eq!(
        kit.tree()["own.txt"],
        "644 of this plan alone\n",
        "the workspace stays as it is"
    );
    // What another plan has too is still there.
    assert_eq!(kit.plans.changes(other, None).await.unwrap().len(), 1);
    let again = kit.open_plan(new()).await.id;
    assert_ne!(again, plan, "the key is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_old_is_forgotten_and_what_has_work_in_it_stays() {
    let mut kit = Kit::repository(SCRIPT).await;
    let clock = ManualClock::new();
    kit.clock = clock.clone();
    kit.settings.keep_for = 30 * DAY;
    kit.again().await;
    let mut plans = Vec::new();
    for name in ["applied", "undone", "discarded", "open", "young"] {
        let plan = kit.plan(name).await;
        kit.write(plan, "ann", name, &format!("{name}\n")).await;
        plans.push(plan);
    }
    let [applied, undone, discarded, open, young] = plans[..] else {
        panic!("{plans:?}");
    };
    kit.apply(&[applied]).await;
    kit.apply(&[undone]).await;
    kit.undo(undone).await;
    let given_up = kit
        .plans
        .discard(discarded, actor("ann"), None, Unapplied::GiveUp);
    given_up.await.unwrap();
    let before = kept(&kit).await;
    assert_eq!(kit.plans.forget_old().await.unwrap(), Forgotten::default());
    clock.advance(29 * DAY);
    kit.apply(&[young]).await;
    clock.advance(2 * DAY);
    assert_eq!(kit.plans.forget_old().await.unwrap().plans, 2);
    let mut states = Vec::new();
    for plan in [applied, undone, discarded, open, young] {
        states.push(state(&kit, plan).await);
    }
    let expected = [
        None,
        Some(PlanState::Undone),
        None,
        Some(PlanState::Open),
        Some(PlanState::Applied),
    ];
    assert_eq!(states, expected);
    // Two plans with a changeset each, the landing of one, and the first of the two landings of the one that was undone;
    // the youngest has got one.
    let after = kept(&kit).await;
    assert_eq!(after.0, before.0 - 6 + 1);
    assert_eq!(
        kit.apply(&[undone]).await.kind,
        OutcomeKind::Done,
        "it can be applied again"
    );
    assert_eq!(
        kit.undo(young).await.kind,
        OutcomeKind::Done,
        "and this one undone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_that_take_too_much_room_go_the_oldest_first() {
    let mut kit = Kit::repository(SCRIPT).await;
    let clock = ManualClock::new();
    kit.clock = clock.clone();
    kit.settings.keep_bytes = 0;
    kit.again().await;
    let plan = kit.plan("work").await;
    kit.write(plan, "ann", "a.txt", "two\n").await;
    kit.apply(&[plan]).await;
    kit.plans.forget_old().await.unwrap();
    assert_eq!(
        state(&kit, plan).await,
        Some(PlanState::Applied),
        "for a day it can be undone"
    );
    clock.advance(2 * DAY);
    assert_eq!(kit.plans.forget_old().await.unwrap().plans, 1);
    assert_eq!(state(&kit, plan).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_plan_is_listed_first_though_the_clock_was_set_back() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("before").await;
    // One that was opened while the clock was years ahead.
    let ahead: PlanId = "plan_2ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse().unwrap();
    let stored = kit
        .log
        .head(&StreamId::new(&format!("plan/{plan}")).unwrap())
        .await;
    let write = LogWrite {
        stream: StreamId::new(&format!("plan/{ahead}")).unwrap(),
        expected: Version::NONE,
        head: Some(stored.unwrap().unwrap().head),
        events: Vec::new(),
    };
    kit.log.commit(Commit::one(write)).await.unwrap();
    let newest = kit.plan("after").await;
    let query = plans::PlanQuery {
        limit: 10,
        ..plans::PlanQuery::default()
    };
    let listed = kit.plans.list(query).await.unwrap();
    let ids: Vec<PlanId> = listed.iter().map(|plan| plan.id).collect();
    assert_eq!(ids, [newest, ahead, plan]);
}

/// Those who open plans at once share a look at the workspace; each must see what was written before it came.
#[tokio::test(flavor = "multi_thread")]
async fn plans_that_are_opened_at_once_all_see_what_was_written_before() {
    let kit = Arc::new(Kit::repository(SCRIPT).await);
    let workers = (0..6).map(|worker| {
        let kit = Arc::clone(&kit);
        tokio::spawn(async move {
            for round in 0..4 {
                let (name, content) = (format!("of-{worker}"), format!("{round}"));
                fs::write(kit.workspace.join(&name), &content).unwrap();
                let plan = kit.plan("work").await;
                let found = kit.plans.read_file(plan, Some(name.parse().unwrap())).await;
                let Ok(plans::FileFound::File { content: seen, .. }) = found else {
                    panic!("{found:?}");
                };
                assert_eq!(String::from_utf8(seen).unwrap(), content);
                let done = kit.plans.discard(plan, actor("ann"), None, Unapplied::Keep);
                done.await.unwrap();
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
}

/// Between the moment a content is in the log and the commit that records it, another plan with the same content is forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn a_content_that_is_forgotten_here_is_kept_for_who_records_it_there() {
    let mut kit = Kit::repository(SCRIPT).await;
    let faults = Faults::default();
    kit.log = kit.log.with_faults(&faults);
    kit.again().await;
    let plan = kit.plan("work").await;
    faults.plan(Fault::Collected, "changeset/", 0..2);
    kit.run(plan, "ann", "echo the same > same.txt").await;
    assert_eq!(faults.happened(Fault::Collected), 2);
    let changes = kit.plans.changes(plan, None).await.unwrap();
    let contents = kit.plans.contents();
    let id = changes[0].contents().last().unwrap();
    let read = tokio::task::spawn_blocking(move || contents.get(id)).await;
    assert_eq!(&read.unwrap().unwrap()[..], b"the same\n");
}

/// The database is away for a moment, at any of the commits that record what a command changed: whoever tries again when it is
/// back records it, once, and nothing says that it is not recorded.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_changed_is_recorded_once_whenever_the_log_is_away() {
    let mut kit = Kit::repository(SCRIPT).await;
    let faults = Faults::default();
    kit.log = kit.log.with_faults(&faults);
    kit.again().await;
    for fault in [Fault::Away, Fault::AnswerLost] {
        let mut commits = 0;
        loop {
            let plan = kit.plan("work").await;
            let run = kit.begin_command(plan, "ann", "echo new > new.txt").await;
            kit.command(&run, "echo new > new.txt").await;
            let before = faults.happened(fault);
            faults.plan(fault, "", commits..commits + 1);
            let mut left = kit.plans.end_command(&run).await;
            if left.as_ref().is_err_and(PlanError::is_outage) {
                left = kit.plans.end_command(&run).await;
            }
            left.unwrap();
            let is_through = faults.happened(fault) == before;
            faults.heal();
            let about = format!("{fault:?} at {commits}");
            let changes = kit.plans.changes(plan, None).await.unwrap();
            assert_eq!(changes.len(), 1, "{about}");
            let record = kit.plans.get(plan).await.unwrap().record;
            assert_eq!((record.files, record.unrecorded), (1, None), "{about}");
            assert!(record.running.is_empty(), "{about}");
            if is_through {
                break;
            }
            commits += 1;
        }
        assert!(commits > 2, "{fault:?} met {commits} commits");
    }
}

/// A plan is opened, and the answer of the log is lost. Whoever asks again with the same key gets the plan, and its sandbox
/// is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_opening_was_not_answered_keeps_its_sandbox() {
    let mut kit = Kit::repository(SCRIPT).await;
    let faults = Faults::default();
    kit.log = kit.log.with_faults(&faults);
    kit.again().await;
    let new = NewPlan {
        idempotency_key: Some("once".to_owned()),
        ..kit.new_plan()
    };
    faults.plan(Fault::AnswerLost, "plan/", 0..1);
    let error = kit.plans.open_plan(new.clone()).await.unwrap_err();
    assert!(error.may_be_done(), "{error:?}");
    let opened = kit.plans.open_plan(new).await.unwrap();
    assert!(opened.known);
    kit.run(opened.plan.id, "ann", "echo new > new.txt").await;
    assert_eq!(kit.plans.changes(opened.plan.id, None).await.unwrap().len(), 1);
}

/// The same of a plan that is brought up to date: it has the old sandbox or the new one, and either way it can be used.
#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_that_was_not_answered_leaves_a_sandbox_that_can_be_used() {
    let mut kit = Kit::repository(SCRIPT).await;
    let faults = Faults::default();
    kit.log = kit.log.with_faults(&faults);
    kit.again().await;
    for fault in [Fault::AnswerLost, Fault::Away] {
        let mut commits = 0;
        loop {
            let plan = kit.plan("work").await;
            kit.write(plan, "ann", "mine.txt", "mine\n").await;
            let theirs = format!("{fault:?} {commits}");
            fs::write(kit.workspace.join("theirs.txt"), &theirs).unwrap();
            let before = faults.happened(fault);
            faults.plan(fault, "plan/", commits..commits + 1);
            if let Err(error) = kit.plans.refresh(plan, actor("ann"), None).await {
                assert!(error.is_outage(), "{theirs}: {error:?}");
            }
            let is_through = faults.happened(fault) == before;
            faults.heal();
            kit.run(plan, "ann", "cat mine.txt > copy.txt").await;
            kit.plans.refresh(plan, actor("ann"), None).await.unwrap();
            kit.run(
                plan,
                "ann",
                &format!("grep '{theirs}' theirs.txt > theirs-too.txt"),
            )
            .await;
            let changes = kit.plans.changes(plan, None).await.unwrap();
            assert_eq!(changes.len(), 3, "{theirs}: {changes:?}");
            let discarded = kit.plans.discard(plan, actor("ann"), None, Unapplied::GiveUp);
            discarded.await.unwrap();
            if is_through {
                break;
            }
            commits += 1;
        }
        assert!(commits > 2, "{fault:?} met {commits} commits");
    }
}

/// The log is away, or an answer of it is lost, at any of the commits of a landing. Whoever tries again when it is back finds
/// the plan applied, or applies it, and then takes it back in the same way: the workspace has all of it, and then none.
#[tokio::test(flavor = "multi_thread")]
async fn a_landing_is_made_once_whenever_the_log_is_away() {
    let mut kit = Kit::repository(SCRIPT).await;
    let faults = Faults::default();
    kit.log = kit.log.with_faults(&faults);
    kit.again().await;
    for fault in [Fault::AnswerLost, Fault::Away] {
        let mut commits = 0;
        loop {
            let about = format!("{fault:?} at {commits}");
            let plan = kit.plan("work").await;
            kit.run(plan, "ann", "echo two > a.txt; echo new > new.txt").await;
            let before = faults.happened(fault);
            let state = async || kit.plans.get(plan).await.unwrap().record.state;
            faults.plan(fault, "", commits..commits + 1);
            if let Err(error) = kit.plans.apply(kit.apply_order(&[plan])).await {
                assert!(error.is_outage(), "{about}: {error:?}");
                faults.heal();
                match kit.plans.apply(kit.apply_order(&[plan])).await {
                    Ok(outcome) => assert_eq!(outcome.kind, OutcomeKind::Done, "{about}"),
                    Err(PlanError::WrongState { state, .. }) => {
                        assert_eq!(state, PlanState::Applied, "{about}")
                    }
                    Err(error) => panic!("{about}: {error:?}"),
                }
            }
            faults.heal();
            assert_eq!(state().await, PlanState::Applied, "{about}");
            assert_eq!(
                fs::read_to_string(kit.workspace.join("a.txt")).unwrap(),
                "two\n",
                "{about}"
            );
            assert!(kit.workspace.join("new.txt").exists(), "{about}");

            faults.plan(fault, "", commits..commits + 1);
            if let Err(error) = kit.plans.undo(kit.undo_order(plan)).await {
                assert!(error.is_outage(), "{about}: {error:?}");
                faults.heal();
                match kit.plans.undo(kit.undo_order(plan)).await {
                    Ok(outcome) => assert_eq!(outcome.kind, OutcomeKind::Done, "{about}"),
                    Err(PlanError::WrongState { state, .. }) => {
                        assert_eq!(state, PlanState::Undone, "{about}")
                    }
                    Err(error) => panic!("{about}: {error:?}"),
                }
            }
            faults.heal();
            assert_eq!(state().await, PlanState::Undone, "{about}");
            assert_eq!(
                fs::read_to_string(kit.workspace.join("a.txt")).unwrap(),
                "one\n",
                "{about}"
            );
            assert!(!kit.workspace.join("new.txt").exists(), "{about}");
            if faults.happened(fault) == before {
                break;
            }
            commits += 1;
        }
        assert!(commits > 2, "{fault:?} met {commits} commits");
    }
}
