//! The ledger: written before a command runs, and believed only as far as it matches.

use std::process::{Command, Stdio};

use eventlog::{Commit, Fault, Head, StreamId, Version, Write};
use kernel::{CancellationToken, Cause};
use process::{Exit, Reclaimed, SpawnError};
use serde_json::json;

use crate::support::{SHORT, Service, is_alive, until};

#[tokio::test]
async fn a_row_says_what_runs_and_how_it_ended() {
    let service = Service::new().await;
    let child = service.run("exec sleep 1000").await;
    until("it is in the list", || service.processes.count() == 1).await;
    let keeper = service.processes.list()[0].keeper_pid.unwrap();
    let row = loop {
        let mut rows = service.rows().await;
        let row = rows.remove(0);
        if row.0 == "running" {
            break row.1;
        }
    };
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let expected = json!({
        "tag": row["tag"],
        "machine_boot_id": boot_id.trim(),
        "daemon_boot_id": service.boot_id.to_string(),
        "keeper": { "pid": keeper, "start_ticks": eventlog::start_time_ticks(keeper).unwrap() },
        "command": { "pid": child.pid(), "start_ticks": eventlog::start_time_ticks(child.pid()).unwrap() },
        "owner": "test",
        "reason": "to be looked at",
        "generation": 1,
        "argv": ["sh", "-c", "exec sleep 1000"],
        "started_at_ms": row["started_at_ms"],
        "ended_at_ms": null,
        "exit": null,
    });
    assert_eq!(row, expected);
    assert_eq!(child.stop(SHORT).await.exit, Exit::Signal(15));
    assert_eq!(service.closed_rows().await, 1);
    let (_, row) = service.rows().await.remove(0);
    assert_eq!(row["exit"], json!({ "signal": 15 }));
    assert!(row["ended_at_ms"].as_u64() >= row["started_at_ms"].as_u64());
}

#[tokio::test]
async fn rows_are_used_again() {
    let service = Service::new().await;
    for _ in 0..3 {
        let children = [service.run("exit 0").await, service.run("exit 0").await];
        for child in &children {
            child.ended().await;
        }
        drop(children);
        service.nothing_left().await;
    }
    assert_eq!(service.closed_rows().await, 2);
}

/// Somebody else has written the row that is next: the command must not run.
#[tokio::test]
async fn a_command_whose_row_is_refused_never_runs() {
    let service = Service::new().await;
    forge(&service, 0, "ended", &json!({ "not": "ours" })).await;
    let error = service.refuse(service.sh("echo ran > ran")).await;
    assert!(matches!(error, SpawnError::Ledger(_)), "{error:?}");
    until("every process is gone", || service.survivors().is_empty()).await;
    until("every task has ended", || service.tasks.running() == 0).await;
    assert!(!service.path("ran").exists());
    assert_eq!(service.processes.list(), []);
}

/// The database is away for a while when a command is about to run: it runs when its row is there, and once.
#[tokio::test]
async fn a_command_waits_for_a_log_that_is_away() {
    let service = Service::new().await;
    service.faults.plan(Fault::Away, "process/", 0..2);
    service.faults.plan(Fault::AnswerLost, "process/", 2..3);
    let child = service.run("echo ran >> ran").await;
    assert_eq!(child.ended().await.exit, Exit::Code(0));
    assert_eq!(std::fs::read_to_string(service.path("ran")).unwrap(), "ran\n");
    let happened = [Fault::Away, Fault::AnswerLost].map(|fault| service.faults.happened(fault));
    assert_eq!(happened, [2, 1]);
    assert_eq!(service.closed_rows().await, 1);
}

/// It is stopped meanwhile: it does not run when the log is back.
#[tokio::test]
async fn a_command_that_waits_for_the_log_can_be_stopped() {
    let service = Service::new().await;
    service.faults.plan(Fault::Away, "process/", 0..usize::MAX);
    let token = CancellationToken::new();
    let scope = token.scope();
    let waiting = service
        .processes
        .spawn_while(&scope, service.sh("echo ran > ran"));
    let stopping = async {
        let is_waiting = || service.faults.happened(Fault::Away) > 1;
        until("it waits", is_waiting).await;
        token.cancel(Cause::new("test", "it is not wanted any more"));
        service.faults.heal();
    };
    let (waited, ()) = tokio::join!(waiting, stopping);
    assert!(matches!(waited, Err(SpawnError::Stopped)), "{waited:?}");
    until("every process is gone", || service.survivors().is_empty()).await;
    until("every task has ended", || service.tasks.running() == 0).await;
    assert!(!service.path("ran").exists());
}

#[tokio::test]
async fn a_row_that_does_not_match_touches_nobody() {
    let service = Service::new().await;
    let mut bystander = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let (pid, start_ticks) = (
        bystander.id(),
        eventlog::start_time_ticks(bystander.id()).unwrap(),
    );
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let row = |machine: &str, start_ticks: u64| {
        let identity = json!({ "pid": pid, "start_ticks": start_ticks });
        json!({
            "tag": "boot_x.1", "machine_boot_id": machine, "daemon_boot_id": "boot_x", "keeper": identity,
            "command": identity, "owner": "o", "reason": "r", "generation": 1, "argv": [], "started_at_ms": 1,
            "ended_at_ms": null, "exit": null,
        })
    };
    // The pid is in use again; it is the same, but the machine was started anew; it is nothing that can be read.
    forge(&service, 0, "running", &row(boot_id.trim(), start_ticks + 1)).await;
    forge(&service, 1, "starting", &row("another boot", start_ticks)).await;
    forge(&service, 2, "running", &json!("broken")).await;
    // It has ended, and it is another home's.
    forge(&service, 3, "ended", &row(boot_id.trim(), start_ticks)).await;
    let stranger = StreamId::new(&format!("process/{}/0", protocol::HomeId::generate())).unwrap();
    write(&service, stranger, "running", &row(boot_id.trim(), start_ticks)).await;

    let successor = service.successor().await;
    let expected = Reclaimed {
        killed: 0,
        gone_already: 2,
        left: 0,
    };
    assert_eq!(successor.reclaimed(), expected);
    assert!(is_alive(pid));
    let statuses: Vec<_> = service
        .rows()
        .await
        .into_iter()
        .map(|(status, _)| status)
        .collect();
    assert_eq!(statuses.iter().filter(|status| *status == "ended").count(), 3);

    // Now it matches.
    forge(&service, 9, "running", &row(boot_id.trim(), start_ticks)).await;
    assert_eq!(service.successor().await.reclaimed().killed, 1);
    assert!(!is_alive(pid));
    bystander.wait().unwrap();
}

async fn forge(service: &Service, number: u32, status: &str, body: &serde_json::Value) {
    let stream = StreamId::new(&format!("process/{}/{number}", service.home_id)).unwrap();
    write(service, stream, status, body).await;
}

async fn write(service: &Service, stream: StreamId, status: &str, body: &serde_json::Value) {
    let head = Head {
        kind: "process".into(),
        status: status.into(),
        body: body.to_string().into_bytes().into(),
        blobs: Vec::new(),
    };
    let write = Write {
        stream,
        expected: Version::NONE,
        head: Some(head),
        events: Vec::new(),
    };
    service.log.commit(Commit::one(write)).await.unwrap();
}
