//! Stopping children that do not want to be stopped.

use std::time::{Duration, Instant};

use process::{Exit, KeeperEnd, StopPlan};

use crate::support::{PATIENCE, PATIENT, SHORT, Service, descriptors, halt, is_alive, pid_in, until, within};

/// Says that it is ready, in a file of its own.
const READY: &str = "echo $$ > ready";

#[tokio::test]
async fn every_stubborn_child_is_gone_after_a_stop() {
    let service = Service::new().await;
    let scripts = [
        // Obeys.
        (format!("{READY}; exec sleep 1000"), Exit::Signal(15), 0),
        // Has a way of its own to end.
        (
            format!("trap 'exit 5' TERM; {READY}; while :; do sleep 0.05; done"),
            Exit::Code(5),
            0,
        ),
        // Ignores the signal.
        (
            format!("trap '' TERM; {READY}; while :; do sleep 1; done"),
            Exit::Signal(9),
            1,
        ),
        // Leaves the session, twice, and ignores the signal there.
        (
            format!(
                "trap '' TERM; setsid sh -c 'setsid sh -c \"{READY}; while :; do sleep 1; done\" & exit' & exec sleep 1000"
            ),
            Exit::Signal(9),
            2,
        ),
        // Does not read its input, and writes more than any pipe holds.
        (
            format!("{READY}; head -c 3000000 /dev/zero >&2; yes"),
            Exit::Signal(15),
            0,
        ),
    ];
    for (script, exit, at_least_killed) in scripts {
        let child = service.run(&script).await;
        pid_in(&service.path("ready")).await;
        let ended = within(child.stop(SHORT)).await;
        assert_eq!(
            (ended.exit, ended.keeper),
            (exit, KeeperEnd::Reported),
            "{script}"
        );
        assert!(ended.killed.count >= at_least_killed, "{script}: {ended:?}");
        if at_least_killed == 0 {
            assert_eq!(ended.killed.count, 0, "{script}: {ended:?}");
        }
        assert_eq!(
            (ended.left.as_slice(), service.survivors()),
            (&[] as &[u32], vec![]),
            "{script}"
        );
        std::fs::remove_file(service.path("ready")).unwrap();
    }
    service.nothing_left().await;
}

/// It is another process every millisecond or so: each starts its successor and ends. There are never more than two,
/// and after a few thousand turns it rests.
const RUNNER: &str = "import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for turn in range(5000):
    if os.fork():
        os._exit(0)
    if turn == 20:
        open('ready', 'w').write(str(os.getpid()) + '\\n')
    os.write(2, b'y' * 1000)
time.sleep(1000)
";

#[tokio::test]
async fn a_tree_that_runs_away_is_caught() {
    let service = Service::new().await;
    let spec = service.spec("python3", &["-c", RUNNER]);
    let child = service.processes.spawn(spec).await.unwrap();
    pid_in(&service.path("ready")).await;
    let ended = within(child.stop(SHORT)).await;
    // The command itself has ended long ago; it was the first one.
    assert_eq!(
        (ended.exit, ended.left.as_slice()),
        (Exit::Code(0), &[] as &[u32])
    );
    assert!(ended.killed.count >= 1, "{ended:?}");
    drop(child);
    service.nothing_left().await;
}

#[tokio::test]
async fn a_stopped_process_hears_that_it_shall_end() {
    let service = Service::new().await;
    let child = service
        .run(&format!(
            "trap 'exit 4' TERM; {READY}; while :; do sleep 0.05; done"
        ))
        .await;
    let pid = pid_in(&service.path("ready")).await;
    halt(pid).await;
    assert_eq!(within(child.stop(PATIENT)).await.exit, Exit::Code(4));
}

#[tokio::test]
async fn nothing_hangs_on_output_that_nobody_takes() {
    let service = Service::new().await;
    // The shell itself has a megabyte to say before it ends.
    let last_words = "i=0; while [ $i -lt 2000 ]; do printf %0512d 0; i=$((i + 1)); done; exit 6";
    let script = format!("trap '{last_words}' TERM; {READY}; while :; do sleep 0.05; done");
    let child = service.run(&script).await;
    pid_in(&service.path("ready")).await;
    assert_eq!(within(child.stop(PATIENT)).await.exit, Exit::Code(6));
}

#[tokio::test]
async fn a_polite_stop_waits_for_the_child_to_end_by_itself() {
    let service = Service::new().await;
    let child = service.run("trap 'exit 1' TERM; cat; exit 8").await;
    let stdin = child.stdin().unwrap();
    let plan = StopPlan {
        polite: PATIENCE,
        ..SHORT
    };
    let stopping = {
        let child = child.clone();
        tokio::spawn(async move { child.stop(plan).await })
    };
    // It was asked to end, and takes its time.
    until("the wish has arrived", || {
        service
            .processes
            .list()
            .iter()
            .all(|one| one.state == protocol::ProcessState::Stopping)
    })
    .await;
    drop(stdin);
    assert_eq!(stopping.await.unwrap().exit, Exit::Code(8));
}

#[tokio::test]
async fn stops_join_and_the_most_urgent_one_counts() {
    let service = Service::new().await;
    let child = service
        .run(&format!("trap '' TERM; {READY}; while :; do sleep 1; done"))
        .await;
    pid_in(&service.path("ready")).await;
    let stop = |plan: StopPlan| {
        let child = child.clone();
        tokio::spawn(async move { child.stop(plan).await })
    };
    let start = Instant::now();
    let patient = [stop(PATIENT), stop(PATIENT)];
    until("both wait", || child.pid() > 0).await;
    let short = stop(SHORT).await.unwrap();
    for one in patient {
        assert_eq!(one.await.unwrap(), short);
    }
    assert_eq!(short.exit, Exit::Signal(9));
    assert!(
        start.elapsed() < PATIENT.term,
        "it was as patient as the most patient one"
    );
    // Once more is no harm.
    assert_eq!(child.stop(SHORT).await, short);
}

#[tokio::test]
async fn a_hundred_stubborn_children_take_one_deadline() {
    let service = Service::new().await;
    let before = descriptors();
    let starting: Vec<_> = (0..100)
        .map(|number| {
            let script = format!("trap '' TERM; echo $$ > {number}; while :; do sleep 5; done");
            let (processes, spec) = (service.processes.clone(), service.sh(&script));
            tokio::spawn(async move { processes.spawn(spec).await.unwrap() })
        })
        .collect();
    let mut children = Vec::new();
    for one in starting {
        children.push(one.await.unwrap());
    }
    for number in 0..100 {
        pid_in(&service.path(&number.to_string())).await;
    }
    assert_eq!(service.processes.count(), 100);
    let plan = StopPlan {
        term: Duration::from_secs(2),
        ..SHORT
    };
    let start = Instant::now();
    service.processes.stop_all(plan).await;
    // One after the other they would take more than three minutes.
    assert!(
        start.elapsed() < Duration::from_secs(100),
        "{:?}",
        start.elapsed()
    );
    for child in &children {
        assert_eq!(child.ended().await.exit, Exit::Signal(9));
    }
    drop(children);
    service.nothing_left().await;
    assert_eq!(service.closed_rows().await, 100);
    assert_eq!(descriptors(), before);
    assert!(matches!(
        service.refuse(service.sh("exit 0")).await,
        process::SpawnError::Stopped
    ));
}

#[tokio::test]
async fn the_last_handle_that_is_dropped_stops_the_child() {
    let service = Service::new().await;
    let before = descriptors();
    let child = service
        .run(&format!("trap '' TERM; {READY}; while :; do sleep 1; done"))
        .await;
    let pid = pid_in(&service.path("ready")).await;
    let another = child.clone();
    drop(child);
    assert_eq!(service.processes.list().len(), 1);
    assert!(is_alive(pid));
    drop(another);
    service.nothing_left().await;
    assert_eq!(descriptors(), before);
}
