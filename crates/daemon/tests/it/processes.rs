//! Owned processes, as the interface and the page show them, and as the daemon ends them.

use std::collections::BTreeMap;
use std::path::Path;

use daemon::KeeperProgram;
use process::{Child, Confinement, Limits, Processes, Spec, StandardError};
use protocol::{
    ErrorCode, Process, ProcessExplanation, ProcessList, ProcessRole, ProcessState, ProcessSummary,
};

use crate::page::Browser;
use crate::running::{Running, until};

async fn start() -> (Running, Processes) {
    let keeper = env!("CARGO_BIN_EXE_daemon-test-keeper");
    Running::start_with_processes(KeeperProgram::At(keeper.into())).await
}

async fn spawn(processes: &Processes, directory: &Path, script: &str) -> Child {
    let spec = Spec {
        program: "sh".into(),
        arguments: vec!["-c".into(), script.into()],
        directory: directory.to_owned(),
        environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        owner: "lsp/<example>".to_owned(),
        reason: "the workspace app".to_owned(),
        generation: 3,
        limits: Limits::default(),
        confinement: Confinement::None,
        stderr: StandardError::KeptAsTail,
        terminal: None,
        view: None,
    };
    processes.spawn(spec).await.unwrap()
}

async fn list(running: &Running) -> Vec<Process> {
    let answer = running.unix().get("/v1/processes").send().await;
    answer.json::<ProcessList>().processes
}

fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn what_is_not_ours_is_not_found() {
    let running = Running::start().await;
    assert_eq!(list(&running).await, []);
    for (pid, detail) in [
        (
            "4294967295".to_owned(),
            "There is no process 4294967295.".to_owned(),
        ),
        ("x%0a".to_owned(), "`x\\n` is not a process id.".to_owned()),
        ("-1".to_owned(), "`-1` is not a process id.".to_owned()),
    ] {
        let problem = running
            .tcp()
            .get(&format!("/v1/processes/{pid}"))
            .send()
            .await
            .problem();
        assert_eq!(
            (problem.code, problem.detail),
            (ErrorCode::ProcessNotFound, detail)
        );
    }
    let own = format!("/v1/processes/{}", std::process::id());
    let problem = running.tcp().get(&own).send().await.problem();
    assert_eq!(problem.code, ErrorCode::ProcessNotFound);
    assert!(
        problem.detail.ends_with("was not started by this daemon."),
        "{}",
        problem.detail
    );
}

#[tokio::test]
async fn a_process_is_shown_everywhere_and_ends_with_the_daemon() {
    let (running, processes) = start().await;
    let child = spawn(
        &processes,
        &running.home.state,
        "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000",
    )
    .await;
    until("its own children run", || processes.list()[0].processes == 3).await;

    let [found] = <[_; 1]>::try_from(list(&running).await).unwrap();
    let expected = Process {
        id: found.id.clone(),
        state: ProcessState::Running,
        pid: Some(child.pid()),
        keeper_pid: found.keeper_pid,
        owner: "lsp/<example>".to_owned(),
        reason: "the workspace app".to_owned(),
        generation: 3,
        restarts: 0,
        started_at: found.started_at.clone(),
        age_ms: found.age_ms,
        processes: 3,
        rss_bytes: found.rss_bytes,
        argv: vec![
            "sh".to_owned(),
            "-c".to_owned(),
            "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000".to_owned(),
        ],
        confinement: protocol::Confinement::None,
    };
    assert_eq!(found, expected);
    assert!(
        found.rss_bytes > 100_000 && found.started_at.len() == 20,
        "{found:?}"
    );

    let keeper = found.keeper_pid.unwrap();
    for (pid, role) in [(child.pid(), ProcessRole::Command), (keeper, ProcessRole::Keeper)] {
        let answer = running.tcp().get(&format!("/v1/processes/{pid}")).send().await;
        let explained: ProcessExplanation = answer.json();
        assert_eq!(
            (explained.pid, explained.role, explained.line[0].pid),
            (pid, role, pid)
        );
        assert_eq!(explained.process.id, found.id);
    }
    let status: protocol::Status = running.unix().get("/v1/status").send().await.json();
    let summary = ProcessSummary {
        owned: 1,
        reclaimed: 0,
        unreclaimed: 0,
    };
    assert_eq!(status.processes, Some(summary));
    let metrics = running.unix().get("/metrics").send().await.body;
    assert!(metrics.contains("\ntidelock_processes_owned 1\n"), "{metrics}");

    running.stop().await;
    assert_eq!(processes.count(), 0);
    for pid in [child.pid(), keeper] {
        assert!(!is_there(pid), "{pid} is still there");
    }
}

#[tokio::test]
async fn the_page_shows_processes_and_what_they_are_called() {
    let (running, processes) = start().await;
    let browser = Browser::sign_in(&running).await;
    let page = browser.get("/processes").await;
    assert!(page.body.contains("Nothing is running"), "{}", page.body);
    let child = spawn(&processes, &running.home.state, "exec sleep 1000 # <b>").await;
    for path in ["/processes", "/live/processes"] {
        let page = browser.get(path).await.body;
        for text in [
            "lsp/&lt;example&gt;",
            "the workspace app",
            "sleep 1000 # &lt;b&gt;",
            &child.pid().to_string(),
            "Running",
        ] {
            assert!(page.contains(text), "{text} is not in {page}");
        }
    }
    running.stop().await;
}

#[tokio::test]
async fn a_row_is_closed_when_the_daemon_stops() {
    let (running, processes) = start().await;
    let child = spawn(&processes, &running.home.state, "exec sleep 1000").await;
    let pid = child.pid();
    drop((child, processes));
    let running = running.restart().await;
    assert!(!is_there(pid));
    let metrics = running.unix().get("/metrics").send().await.body;
    for outcome in ["killed", "gone_already", "left"] {
        let line = format!("\ntidelock_processes_reclaimed{{outcome=\"{outcome}\"}} 0\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
}
