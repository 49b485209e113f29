//! The lives of daemons, as the next one tells them.

use eventlog::{Log, Sequence, SqliteOptions, StreamId};
use kernel::SystemClock;
use protocol::{Boot, BootId, BootList, BootState, HomeId, Status};

use crate::running::Running;

async fn boots(running: &Running) -> Vec<Boot> {
    let answer = running.unix().get("/v1/boots").send().await;
    answer.json::<BootList>().boots
}

#[tokio::test]
async fn every_life_is_told_with_how_it_ended() {
    let mut running = Running::start().await;
    let first = boots(&running).await;
    assert_eq!(first.len(), 1);
    let status: Status = running.unix().get("/v1/status").send().await.json();
    let expected = Boot {
        id: status.boot_id,
        state: BootState::Running,
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: status.started_at,
        ended_at: None,
        cause: None,
    };
    assert_eq!(first[0], expected);
    assert_eq!(status.last_crash, None);

    running = running.restart().await;
    let second = boots(&running).await;
    assert_eq!(second.len(), 2);
    let ended_at = second[1].ended_at.clone();
    assert!(ended_at.is_some());
    let stopped = Boot {
        state: BootState::Stopped,
        ended_at,
        cause: Some("the test: it is over".to_owned()),
        ..expected
    };
    assert_eq!(second[1], stopped);

    running = running.crash().await;
    let third = boots(&running).await;
    let crashed = Boot {
        state: BootState::Crashed,
        ..second[0].clone()
    };
    assert_eq!(third[1..], [crashed.clone(), stopped.clone()]);
    let status: Status = running.unix().get("/v1/status").send().await.json();
    assert_eq!(status.last_crash, Some(crashed.clone()));
    let metrics = running.unix().get("/metrics").send().await.body;
    assert!(
        metrics.contains("\ntidelock_boots_found_crashed 1\n"),
        "{metrics}"
    );

    // A crash is found once.
    running = running.restart().await;
    assert_eq!(boots(&running).await[2..], [crashed, stopped]);
    let metrics = running.unix().get("/metrics").send().await.body;
    assert!(
        metrics.contains("\ntidelock_boots_found_crashed 0\n"),
        "{metrics}"
    );
    let newest = running.unix().get("/v1/boots?limit=1").send().await;
    assert_eq!(newest.json::<BootList>().boots, boots(&running).await[..1]);
}

#[tokio::test]
async fn a_life_is_a_stream_of_its_own() {
    let running = Running::start().await;
    let home = running.home.clone();
    let id = boots(&running).await[0].id.clone();
    // The directory goes with the running daemon, so it is stopped by way of the next one.
    let running = running.restart().await.crash().await;
    let copy = home.state.join("copy.sqlite3");
    let body = format!(r#"{{"path":"{}"}}"#, copy.display());
    let answer = running.unix().post("/v1/log/backup").json(&body).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let log = Log::open_sqlite(&SqliteOptions { path: copy }, SystemClock::shared()).unwrap();
    let crashed = boots(&running).await[1].id.clone();
    for (id, expected) in [
        (id, vec!["started", "ready", "draining", "stopped"]),
        (crashed, vec!["started", "ready", "crashed"]),
    ] {
        let stream = StreamId::new(&format!("boot/{id}")).unwrap();
        let page = log.read(&stream, Sequence::START, 10).await.unwrap();
        let kinds: Vec<_> = page.events.iter().map(|event| &*event.kind).collect();
        assert_eq!(kinds, expected, "{id}");
    }
}

#[tokio::test]
async fn the_lives_of_another_home_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let options = crate::running::options(&directory);
    options.home.prepare().unwrap();
    let path = options.home.log_database();
    let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared()).unwrap();
    let (own, other) = (HomeId::generate(), HomeId::generate());
    std::fs::write(options.home.home_id_file(), format!("{own}\n")).unwrap();
    let (past, theirs) = (BootId::generate(), BootId::generate());
    let lives =
        [(own, past, "stopped"), (other, theirs, "running")].map(|(home, boot, status)| eventlog::Write {
            stream: StreamId::new(&format!("boot/{boot}")).unwrap(),
            expected: eventlog::Version::NONE,
            head: Some(eventlog::Head {
                kind: "boot".into(),
                status: status.into(),
                body: format!(r#"{{"home_id":"{home}","pid":1,"version":"1","started_at_ms":1}}"#)
                    .into_bytes()
                    .into(),
                blobs: Vec::new(),
            }),
            events: Vec::new(),
        });
    log.commit(eventlog::Commit::all(lives.into())).await.unwrap();
    drop(log);

    let running = Running::start_in(directory, SystemClock::shared(), |_| {}).await;
    let ids: Vec<_> = boots(&running).await.into_iter().map(|boot| boot.id).collect();
    assert_eq!(ids[1..], [past.to_string()]);
    assert_ne!(ids[0], theirs.to_string());
    let metrics = running.unix().get("/metrics").send().await.body;
    assert!(
        metrics.contains("\ntidelock_boots_found_crashed 0\n"),
        "{metrics}"
    );
}
