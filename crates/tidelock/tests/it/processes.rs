//! `ps` and `why`, and the program as its own keeper.

use std::collections::BTreeMap;

use eventlog::{Log, SqliteOptions};
use kernel::SystemClock;
use process::{
    Confinement, Exit, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError, Tasks,
};
use protocol::{BootId, HomeId};
use serde_json::json;

use crate::harness::{World, program};

#[test]
fn a_daemon_that_has_started_nothing_says_so() {
    let world = World::new();
    let outcome = world.run(&["ps"]).expect(0);
    assert_eq!(outcome.stdout, "The daemon has started no processes.\n");
    assert_eq!(
        world.run(&["ps", "--json"]).expect(0).json(),
        json!({ "processes": [] })
    );
    let status = world.run(&["status", "--json"]).expect(0).json();
    let none = json!({ "owned": 0, "reclaimed": 0, "unreclaimed": 0 });
    assert_eq!(status["processes"], none);
}

#[test]
fn a_process_of_somebody_else_is_refused_with_a_code() {
    let world = World::new();
    for (pid, message) in [
        (u32::MAX, "There is no process 4294967295.".to_owned()),
        (std::process::id(), "was not started by this daemon.".to_owned()),
    ] {
        let outcome = world.run(&["why", &pid.to_string()]).expect(4);
        assert!(outcome.stderr.contains(&message), "{outcome:?}");
        assert!(
            outcome
                .stderr
                .contains("hint: `tidelock ps` lists the processes that the daemon owns\n"),
            "{outcome:?}"
        );
        let error = world.run(&["why", &pid.to_string(), "--json"]).expect(4).json();
        assert_eq!(error["error"]["code"], "process_not_found");
    }
    world.run(&["why", "init"]).expect(2);
}

#[tokio::test]
async fn the_program_keeps_processes_when_it_is_asked_to() {
    let world = World::new();
    let (clock, path) = (SystemClock::shared(), world.path().join("log.sqlite3"));
    let processes = Processes::open(ProcessesOptions {
        log: Log::open_sqlite(&SqliteOptions { path }, clock.clone()).unwrap(),
        home_id: HomeId::generate(),
        boot_id: BootId::generate(),
        keeper: KeeperProgram::At(program()),
        tasks: Tasks::default(),
        clock,
    })
    .await
    .unwrap();
    let spec = Spec {
        program: "sh".into(),
        arguments: vec!["-c".into(), "echo kept >&2; exit 3".into()],
        directory: world.path().to_owned(),
        environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        owner: "test".to_owned(),
        reason: "to see who keeps it".to_owned(),
        generation: 1,
        limits: Limits::default(),
        confinement: Confinement::None,
        stderr: StandardError::KeptAsTail,
        terminal: None,
        view: None,
    };
    let child = processes.spawn(spec).await.unwrap();
    assert_eq!(child.ended().await.exit, Exit::Code(3));
    assert_eq!(child.stderr_tail(), "kept\n");
}
