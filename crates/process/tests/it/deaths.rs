//! Deaths that nobody planned: of the daemon, of a keeper, of the log.

use std::process::{Command, Stdio};

use kernel::SystemClock;
use process::{Exit, KeeperEnd, KeeperProgram, Processes, ProcessesOptions, Reclaimed, Tasks};
use protocol::{BootId, HomeId};
use rustix::process::Signal;

use crate::support::{
    SHORT, Service, halt, is_alive, kill_all, marked, open_log, parent_of, pid_in, signal, test_keeper,
    until, within,
};

/// A command that ignores TERM, with a child in a session of its own that has forgotten its environment.
const TREE: &str = "trap '' TERM; setsid sh -c 'setsid sh -c \"echo \\$\\$ > far; while :; do sleep 1; done\" &' & echo $$ > near; while :; do sleep 1; done";

/// Another process that runs the tree, to be killed.
struct OtherDaemon {
    daemon: std::process::Child,
    directory: tempfile::TempDir,
    home_id: HomeId,
    near: u32,
    far: u32,
    /// Stands in the environment of the whole tree.
    tag: String,
}

impl OtherDaemon {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home_id = HomeId::generate();
        let daemon = Command::new(test_keeper())
            .arg("spawn-and-hang")
            .arg(directory.path())
            .arg(home_id.to_string())
            .arg(TREE)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let near = pid_in(&directory.path().join("near")).await;
        let far = pid_in(&directory.path().join("far")).await;
        let environment = std::fs::read_to_string(format!("/proc/{near}/environ")).unwrap();
        let tag = environment
            .split('\0')
            .find(|one| one.starts_with("TIDELOCK_PROCESS="))
            .unwrap()
            .to_owned();
        let other = Self {
            daemon,
            directory,
            home_id,
            near,
            far,
            tag,
        };
        assert!(
            other.tree().contains(&near) && other.tree().contains(&far),
            "{:?}",
            other.tree()
        );
        other
    }

    fn tree(&self) -> Vec<u32> {
        marked(&self.tag)
    }

    fn keeper(&self) -> u32 {
        parent_of(self.near)
    }

    fn kill(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }

    /// The next daemon of the same home.
    async fn successor(&self) -> Processes {
        Processes::open(ProcessesOptions {
            log: open_log(self.directory.path()),
            home_id: self.home_id,
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(test_keeper()),
            tasks: Tasks::default(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap()
    }
}

impl Drop for OtherDaemon {
    fn drop(&mut self) {
        drop(self.daemon.kill());
        drop(self.daemon.wait());
        kill_all(|| self.tree());
    }
}

/// A keeper that does nothing. It goes on when the test is over, however that ends.
struct Halted {
    pid: u32,
}

impl Halted {
    async fn new(pid: u32) -> Self {
        halt(pid).await;
        Self { pid }
    }
}

impl Drop for Halted {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid).unwrap()).unwrap();
        // It is gone unless the test has failed.
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

#[tokio::test]
async fn a_daemon_that_is_killed_takes_its_trees_along() {
    let mut other = OtherDaemon::start().await;
    let keeper = other.keeper();
    other.kill();
    until("the tree is gone, with nobody's help", || other.tree().is_empty()).await;
    until("so is the keeper", || !is_alive(keeper)).await;
    assert!(!is_alive(other.near) && !is_alive(other.far));
    let expected = Reclaimed {
        gone_already: 1,
        ..Reclaimed::default()
    };
    assert_eq!(other.successor().await.reclaimed(), expected);
    assert_eq!(other.successor().await.reclaimed(), Reclaimed::default());
}

#[tokio::test]
async fn the_next_daemon_kills_what_a_keeper_could_not() {
    let killed = Reclaimed {
        killed: 1,
        ..Reclaimed::default()
    };
    // A keeper that is stopped does not notice that its daemon has died.
    let mut other = OtherDaemon::start().await;
    let keeper = other.keeper();
    let _halted = Halted::new(keeper).await;
    other.kill();
    assert!(is_alive(other.near) && is_alive(other.far));
    assert_eq!(other.successor().await.reclaimed(), killed);
    assert_eq!((other.tree(), is_alive(keeper)), (vec![], false));

    // Both die at once: what is far away has lost its parents and its session, and is known by its tag.
    let mut other = OtherDaemon::start().await;
    halt(other.daemon.id()).await;
    signal(other.keeper(), Signal::KILL);
    other.kill();
    until("the command dies with its keeper", || !is_alive(other.near)).await;
    assert!(is_alive(other.far));
    assert_eq!(other.successor().await.reclaimed(), killed);
    assert_eq!(other.tree(), [] as [u32; 0]);
}

#[tokio::test]
async fn a_keeper_that_is_killed_costs_the_tree_and_the_end_is_told() {
    let service = Service::new().await;
    let child = service.run(TREE).await;
    for name in ["near", "far"] {
        pid_in(&service.path(name)).await;
    }
    let keeper = service.processes.list()[0].keeper_pid.unwrap();
    signal(keeper, Signal::KILL);
    let ended = within(child.ended()).await;
    assert_eq!(
        (ended.exit, ended.keeper, ended.left.as_slice()),
        (Exit::Unknown, KeeperEnd::Died, &[] as &[u32])
    );
    assert!(ended.killed.count >= 1, "{ended:?}");
    assert_eq!(service.survivors(), [] as [u32; 0]);
    drop(child);
    service.nothing_left().await;
}

#[tokio::test]
async fn a_keeper_that_does_not_answer_is_passed_over() {
    let service = Service::new().await;
    let child = service.run(TREE).await;
    for name in ["near", "far"] {
        pid_in(&service.path(name)).await;
    }
    let keeper = service.processes.list()[0].keeper_pid.unwrap();
    let _halted = Halted::new(keeper).await;
    let plan = process::StopPlan {
        kill: std::time::Duration::from_millis(100),
        ..SHORT
    };
    let ended = within(child.stop(plan)).await;
    assert_eq!(
        (ended.exit, ended.keeper, ended.left.as_slice()),
        (Exit::Unknown, KeeperEnd::Died, &[] as &[u32])
    );
    assert!(ended.killed.count >= 2, "{ended:?}");
    assert!(
        !ended.killed.some.iter().any(|one| one.pid == keeper),
        "{ended:?}"
    );
    drop(child);
    service.nothing_left().await;
    assert!(!is_alive(keeper));
}
