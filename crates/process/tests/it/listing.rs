//! What is shown of children, and of any pid.

use process::{Enforcement, Why};
use protocol::{ProcessRole, ProcessState};

use crate::support::{SHORT, Service, pid_in, until};

#[tokio::test]
async fn children_are_listed_with_what_is_known_of_them() {
    let service = Service::new().await;
    assert_eq!(service.processes.list(), []);
    drop(service.run("exit 0").await);
    let child = service.run("echo $$ > a; sleep 1000 & sleep 1000 & wait").await;
    pid_in(&service.path("a")).await;
    until("all three run", || {
        service.processes.list().iter().any(|one| one.processes == 3)
    })
    .await;
    let mut list = service.processes.list();
    list.retain(|one| one.pid == Some(child.pid()));
    let [mut info] = <[_; 1]>::try_from(list).unwrap();
    assert!(info.rss_bytes > 100_000, "{info:?}");
    assert!(child.tree_rss_bytes() > 100_000);
    assert!(info.started_at <= std::time::SystemTime::now());
    assert!(
        info.keeper_pid.is_some_and(|keeper| keeper != child.pid()),
        "{info:?}"
    );
    info.argv.pop();
    assert_eq!(
        (
            info.owner,
            info.reason,
            info.generation,
            info.restarts,
            info.state,
            info.argv,
            info.confinement
        ),
        (
            "test".to_owned(),
            "to be looked at".to_owned(),
            1,
            1,
            ProcessState::Running,
            vec!["sh".to_owned(), "-c".to_owned()],
            Enforcement::None
        )
    );
    child.stop(SHORT).await;
    assert_eq!(child.tree_rss_bytes(), 0);
    service.nothing_left().await;
}

#[tokio::test]
async fn every_pid_of_a_tree_is_explained() {
    let service = Service::new().await;
    let script = "sh -c 'echo $$ > grandchild; sleep 1000; :' & setsid sh -c 'setsid sh -c \"echo \\$\\$ > orphan; sleep 1000; :\" & :' & sleep 1000; :";
    let child = service.run(script).await;
    let grandchild = pid_in(&service.path("grandchild")).await;
    let orphan = pid_in(&service.path("orphan")).await;
    let keeper = service.processes.list()[0].keeper_pid.unwrap();
    until(
        "the orphan has lost its parent",
        || matches!(service.processes.why(orphan), Why::Owned { line, .. } if line.len() == 2),
    )
    .await;
    match service.processes.why(keeper) {
        Why::Owned { line, .. } => assert_eq!(line[0].name, "tidelock-keeper"),
        other => panic!("{other:?}"),
    }
    for (pid, expected_role, expected_line) in [
        (child.pid(), ProcessRole::Command, vec![child.pid()]),
        (keeper, ProcessRole::Keeper, vec![keeper]),
        (grandchild, ProcessRole::Descendant, vec![grandchild, child.pid()]),
        (orphan, ProcessRole::Descendant, vec![orphan, keeper]),
    ] {
        let Why::Owned { process, role, line } = service.processes.why(pid) else {
            panic!("{pid} is said not to be ours");
        };
        let line: Vec<u32> = line.iter().map(|ancestor| ancestor.pid).collect();
        assert_eq!(
            (process.pid, role, line),
            (Some(child.pid()), expected_role, expected_line)
        );
    }
    let own = service.processes.why(std::process::id());
    assert!(matches!(own, Why::NotOurs { .. }), "{own:?}");
    assert_eq!(service.processes.why(u32::MAX), Why::NoSuchProcess);
    child.stop(SHORT).await;
    assert_eq!(service.processes.why(child.pid()), Why::NoSuchProcess);
}
