//! Commands in the sandbox of a plan, under a real keeper.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use eventlog::LogError;
use jobs::AttemptVerdict;
use plans::{Changeset, Entrance, PlanError};
use process::{Enforcement, landlock_support};
use protocol::{PlanId, PlanState};
use serde_json::{Value, json};

use super::bench::{Bench, Heard, outcome, until};
use super::payload::{CommandPayload, PlanPlace};

const PLAN: &str = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const CHANGESET: &str = "changeset_01ARZ3NDEKTSV4RRFFQ69G5FAW";
const ENTERS: &str = "an agent enters with shell for test: to be looked at";

/// A command in the sandbox, in a directory below its root.
fn inside(bench: &Bench, below: &str, line: &str) -> CommandPayload {
    CommandPayload {
        directory: "/no/such/workspace".to_owned(),
        plan: Some(PlanPlace {
            id: PLAN.to_owned(),
            below: below.to_owned(),
        }),
        ..bench.shell(line)
    }
}

/// Lets the next command enter a directory.
fn let_in(bench: &Bench, root: &Path) {
    let entrance = Entrance {
        view: None,
        root: root.to_owned(),
        write_below: vec![root.to_owned()],
        // So that nothing outside is writable: the tests run where temporary files are.
        kept_apart: vec![root.to_owned()],
        environment: BTreeMap::from([(OsString::from("MARK"), OsString::from("from the entrance"))]),
    };
    *bench.sandboxes.entrance.lock().unwrap() = Some(Ok(entrance));
}

fn happened(bench: &Bench) -> Vec<String> {
    std::mem::take(&mut *bench.sandboxes.happened.lock().unwrap())
}

fn changeset() -> Changeset {
    let record = json!({
        "plan": PLAN, "number": 1, "actor": "an agent", "tool": "shell", "reason": "", "started_at": 0,
        "state": "closed", "entries": 3,
    });
    Changeset {
        id: CHANGESET.parse().unwrap(),
        record: serde_json::from_value(record).unwrap(),
        changes: Vec::new(),
    }
}

/// The expected result of a command that ran in the sandbox.
fn result(members: Value) -> Value {
    let mut result = json!({ "plan": PLAN, "confinement": landlock_support() });
    for (name, value) in members.as_object().unwrap() {
        result[name] = value.clone();
    }
    result
}

#[tokio::test]
async fn a_command_sees_the_sandbox_and_what_it_changed_is_told() {
    let bench = Bench::new().await;
    let root = bench.path("sandbox");
    fs::create_dir_all(root.join("a")).unwrap();
    let_in(&bench, &root);
    *bench.sandboxes.found.lock().unwrap() = Some(Ok(Some(changeset())));
    let heard = Heard::default();
    let payload = inside(&bench, "a", "echo $PWD $MARK $WHOSE; echo x > made");
    let seen = bench.run(&payload, None, &heard).await;
    let expected = result(json!({ "exit": { "code": 0 }, "changeset": CHANGESET, "files": 3 }));
    assert_eq!(seen, outcome(AttemptVerdict::Succeeded, "", expected));
    let own = root.join("a").display().to_string();
    assert_eq!(
        heard.texts()[0],
        format!("{own} from the entrance the daemon's\n")
    );
    assert!(root.join("a/made").exists());
    assert_eq!(happened(&bench), [ENTERS, "stay is over"]);
}

#[tokio::test]
async fn a_command_is_seen_out_however_it_ends() {
    let bench = Bench::new().await;
    let root = bench.path("sandbox");
    fs::create_dir(&root).unwrap();
    let missing = format!(
        "nothing can be started in `{}`: No such file or directory (os error 2)",
        root.join("nowhere").display()
    );
    for (payload, verdict, text, members) in [
        (
            inside(&bench, "", "exit 3"),
            AttemptVerdict::Failed,
            "exit code 3",
            result(json!({ "exit": { "code": 3 } })),
        ),
        (
            inside(&bench, "nowhere", "true"),
            AttemptVerdict::FailedPermanently,
            missing.as_str(),
            json!({ "plan": PLAN }),
        ),
    ] {
        let_in(&bench, &root);
        let seen = bench.run(&payload, None, &Heard::default()).await;
        assert_eq!(seen, outcome(verdict, text, members));
        assert_eq!(happened(&bench), [ENTERS, "stay is over"]);
    }

    let_in(&bench, &root);
    let payload = inside(&bench, "", "echo > ready; exec sleep 1000");
    let heard = Heard::default();
    let (seen, ()) = tokio::join!(bench.run(&payload, None, &heard), async {
        until("it runs", || root.join("ready").exists()).await;
        bench.cancel();
    });
    assert_eq!(seen.verdict, AttemptVerdict::Stopped);
    assert_eq!(seen.result["plan"], PLAN);
    assert_eq!(happened(&bench), [ENTERS, "stay is over"]);

    // A command that is cancelled before it starts doesn't even enter.
    let seen = bench.run(&payload, None, &heard).await;
    assert_eq!(seen.verdict, AttemptVerdict::Stopped);
    assert_eq!(happened(&bench), [""; 0]);
}

#[tokio::test]
async fn who_does_not_get_in_does_not_run() {
    let bench = Bench::new().await;
    let plan: PlanId = PLAN.parse().unwrap();
    let discarded = PlanError::WrongState {
        plan,
        state: PlanState::Discarded,
    };
    let busy = PlanError::Busy {
        plan,
        by: "it is being applied".to_owned(),
    };
    for (error, verdict, why) in [
        (
            discarded,
            AttemptVerdict::FailedPermanently,
            "is discarded; that cannot be done now",
        ),
        (busy, AttemptVerdict::Failed, "is in use: it is being applied"),
    ] {
        *bench.sandboxes.entrance.lock().unwrap() = Some(Err(error));
        let payload = inside(&bench, "", "true");
        let seen = bench.run(&payload, None, &Heard::default()).await;
        let text = format!("it did not get into its sandbox: the plan {PLAN} {why}");
        assert_eq!(seen, outcome(verdict, &text, Value::Null));
        assert_eq!(happened(&bench), [ENTERS]);
    }
}

/// The database is unreachable for a moment when the command ends: the changes are recorded once it is back.
#[tokio::test]
async fn what_a_command_changed_waits_for_a_log_that_is_away() {
    let bench = Bench::new().await;
    let root = bench.path("sandbox");
    fs::create_dir(&root).unwrap();
    let_in(&bench, &root);
    let away = LogError::Unreachable(Arc::new(io::Error::from(io::ErrorKind::ConnectionReset)));
    *bench.sandboxes.found.lock().unwrap() = Some(Err(PlanError::Log(away)));
    let seen = bench
        .run(&inside(&bench, "", "true"), None, &Heard::default())
        .await;
    let expected = result(json!({ "exit": { "code": 0 } }));
    assert_eq!(seen, outcome(AttemptVerdict::Succeeded, "", expected));
    assert_eq!(happened(&bench), [ENTERS, "stay is over", "stay is over"]);
}

#[tokio::test]
async fn what_could_not_be_recorded_is_not_done() {
    let bench = Bench::new().await;
    let root = bench.path("sandbox");
    fs::create_dir(&root).unwrap();
    for (line, before, code) in [("true", "", 0), ("exit 2", "exit code 2; ", 2)] {
        let_in(&bench, &root);
        *bench.sandboxes.found.lock().unwrap() = Some(Err(PlanError::Closing));
        let seen = bench
            .run(&inside(&bench, "", line), None, &Heard::default())
            .await;
        let text = format!(
            "{before}what it changed could not be recorded: the daemon is stopping; the next one records it"
        );
        let members = result(json!({ "exit": { "code": code } }));
        assert_eq!(seen, outcome(AttemptVerdict::Failed, &text, members));
    }
}

#[tokio::test]
async fn a_command_writes_to_its_sandbox_and_to_nothing_else() {
    let bench = Bench::new().await;
    let (root, asked_for) = (bench.path("sandbox"), bench.path("more"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&asked_for).unwrap();
    let_in(&bench, &root);
    let payload = CommandPayload {
        write_below: Some(vec![asked_for.display().to_string()]),
        ..inside(
            &bench,
            "",
            "echo x > in; echo x > ../more/in; (echo x > ../outside) 2>/dev/null; exit 0",
        )
    };
    let seen = bench.run(&payload, None, &Heard::default()).await;
    let expected = result(json!({ "exit": { "code": 0 } }));
    assert_eq!(seen, outcome(AttemptVerdict::Succeeded, "", expected));
    let is_there = |path: &str| bench.path(path).exists();
    let is_confined = landlock_support() != Enforcement::None;
    assert_eq!(
        [is_there("sandbox/in"), is_there("more/in"), is_there("outside")],
        [true, true, !is_confined]
    );
}
