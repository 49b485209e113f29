//! Trees that a command makes on purpose or by mistake, and what a stop leaves of them: nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use process::{Child, Exit, KeeperEnd, Outlet, Spec};
use tokio::io::AsyncReadExt;

use crate::support::{PATIENT, SHORT, Service, is_alive, parent_of, pid_in, signal, within};

/// A tree that is to be stopped, and what is to be seen of its end. It writes the pid of one of its processes to a file
/// when it is ready.
struct Case {
    name: &'static str,
    script: &'static str,
    exit: Exit,
    obeys: Obeys,
}

/// Whether the process in the file ends when it is told to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Obeys {
    Yes,
    No,
}

const CASES: &[Case] = &[
    Case {
        name: "a shell that traps the signal and goes on",
        script: "trap ':' TERM; echo $$ > ready; while :; do sleep 1000; done",
        exit: Exit::Signal(9),
        obeys: Obeys::No,
    },
    Case {
        name: "a double fork that leaves the session",
        script: "setsid sh -c 'trap \"\" TERM; setsid sh -c \"echo \\$\\$ > ready; exec sleep 1000\" & exit' & sleep 1000",
        exit: Exit::Signal(15),
        obeys: Obeys::No,
    },
    Case {
        name: "one that halts itself",
        script: "trap '' TERM; echo $$ > ready; kill -STOP $$; exec sleep 1000",
        exit: Exit::Signal(9),
        obeys: Obeys::No,
    },
    Case {
        name: "one that obeys, with children that do",
        script: "sleep 1000 & sleep 1000 | sleep 1000 & echo $$ > ready; wait",
        exit: Exit::Signal(15),
        obeys: Obeys::Yes,
    },
];

#[tokio::test]
async fn a_stop_leaves_nothing_and_says_what_it_had_to_kill() {
    let service = Service::new().await;
    for case in CASES {
        let child = service.run(case.script).await;
        let pid = pid_in(&service.path("ready")).await;
        let plan = match case.obeys {
            Obeys::Yes => PATIENT,
            Obeys::No => SHORT,
        };
        let ended = within(child.stop(plan)).await;
        let killed: Vec<u32> = ended.killed.some.iter().map(|one| one.pid).collect();
        match case.obeys {
            Obeys::Yes => assert_eq!(ended.killed.count, 0, "{}: {killed:?}", case.name),
            Obeys::No => assert!(killed.contains(&pid), "{}: {pid} is not in {killed:?}", case.name),
        }
        assert_eq!(
            (ended.exit, ended.left, ended.keeper),
            (case.exit, vec![], KeeperEnd::Reported),
            "{}",
            case.name
        );
        assert!(!is_alive(pid), "{}", case.name);
        assert_eq!(service.survivors(), [] as [u32; 0], "{}", case.name);
        fs::remove_file(service.path("ready")).unwrap();
    }
    service.nothing_left().await;
}

#[tokio::test]
async fn one_that_keeps_the_output_open_does_not_outlive_the_command() {
    let service = Service::new().await;
    let script = "echo first; (trap '' TERM; echo $$ > ready; exec sleep 1000) & until test -s ready; do :; done; exit 0";
    let child = service.run(script).await;
    let mut stdout = child.stdout().unwrap();
    let mut said = String::new();
    let (read, ended) = within(async { tokio::join!(stdout.read_to_string(&mut said), child.ended()) }).await;
    read.unwrap();
    assert_eq!(
        (said.as_str(), ended.exit, ended.killed.count),
        ("first\n", Exit::Code(0), 1)
    );
    drop(child);
    service.nothing_left().await;
}

/// How many processes the bomb may have beside those that its user has already.
const BOMB_PROCESSES: u64 = 200;
/// The user who has nothing; the superuser is not bound by the limit.
const NOBODY: u32 = 65_534;

/// Each process of it starts others as fast as it can, for twenty seconds at most, and does not listen to the signal.
/// Without a limit it starts nothing.
const BOMB: &str = "import os, resource, signal, sys, time
end = time.monotonic() + 20
limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
if os.getuid() == 0 or not 0 < limit <= int(sys.argv[1]):
    sys.exit('this would have no end')
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
is_told = False
while time.monotonic() < end:
    try:
        os.fork()
        continue
    except OSError:
        pass
    if not is_told:
        is_told = True
        os.write(1, b'.')
    time.sleep(0.002)
";

/// How many threads a user has.
fn threads_of(user: u32) -> u64 {
    let status_of = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("status")).ok();
    let field = |status: &str, name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let threads = |status: String| {
        let is_theirs = field(&status, "Uid:")? == u64::from(user);
        is_theirs.then(|| field(&status, "Threads:")).flatten()
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(status_of).filter_map(threads).sum()
}

fn bomb(service: &Service) -> Spec {
    let own = rustix::process::getuid();
    let user = if own.is_root() { NOBODY } else { own.as_raw() };
    let limit = threads_of(user) + BOMB_PROCESSES;
    let limit_text = limit.to_string();
    let python = ["python3", "-c", BOMB, &limit_text];
    let (reuid, regid) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let as_nobody = ["setpriv", &reuid, &regid, "--clear-groups"];
    let line: Vec<&str> = match own.is_root() {
        true => as_nobody.into_iter().chain(python).collect(),
        false => python.to_vec(),
    };
    let mut spec = service.spec(line[0], &line[1..]);
    spec.limits.processes = Some(limit);
    spec
}

/// Waits until several of the bomb's processes have been told that there may be no more. Its output must be kept open.
async fn until_full(child: &Child) -> Outlet {
    let mut stdout = child.stdout().unwrap();
    let read = within(stdout.read_exact(&mut [0; 20])).await;
    assert!(read.is_ok(), "{}", child.stderr_tail());
    stdout
}

#[tokio::test]
async fn a_fork_bomb_is_gone_after_a_stop_and_when_its_keeper_is_killed() {
    let service = Service::new().await;
    fs::set_permissions(service.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for expected in [
        (Exit::Signal(9), KeeperEnd::Reported),
        (Exit::Unknown, KeeperEnd::Died),
    ] {
        let child = service.processes.spawn(bomb(&service)).await.unwrap();
        let stdout = until_full(&child).await;
        assert!(service.survivors().len() > 50, "it is no bomb");
        let ended = match expected.1 {
            KeeperEnd::Reported => within(child.stop(SHORT)).await,
            KeeperEnd::Died => {
                signal(parent_of(child.pid()), rustix::process::Signal::KILL);
                within(child.ended()).await
            }
        };
        drop((stdout, child));
        assert_eq!(((ended.exit, ended.keeper), ended.left), (expected, vec![]));
        assert!(ended.killed.count > 50, "{:?}", ended.killed);
        assert_eq!(service.survivors(), [] as [u32; 0], "{expected:?}");
        service.nothing_left().await;
    }
}
