//! Where a child may write, and what it may use.

use process::{Confinement, Enforcement, Exit, StandardError, landlock_support};
use protocol::JobTerminal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::io::AsyncReadExt;

use crate::support::Service;

/// What the child says about each attempt.
const ATTEMPTS: &str = "try() { if (eval \"$2\") 2>/dev/null; then echo $1; fi; }
try inside 'echo x > in/file'
try rename 'mkdir in/a in/b; mv in/file in/b/file'
try null 'echo x > /dev/null'
try read 'cat out/secret >/dev/null'
try outside 'echo x > out/file'
try truncate ': > out/secret'
try remove 'rm out/secret'
try link 'ln out/secret in/link'
exit 0";

#[tokio::test]
async fn a_confined_child_writes_only_where_it_may() {
    let support = landlock_support();
    let everything = "inside rename null read outside truncate remove";
    let allowed = "inside rename null read";
    for (is_confined, expected) in [(false, everything), (true, allowed)] {
        let service = Service::new().await;
        for directory in ["in", "out"] {
            std::fs::create_dir(service.path(directory)).unwrap();
        }
        std::fs::write(service.path("out/secret"), "s").unwrap();
        let mut spec = service.sh(ATTEMPTS);
        if is_confined {
            spec.confinement = Confinement::WriteBelow(vec![service.path("in")]);
        }
        let child = service.processes.spawn(spec).await.unwrap();
        let in_force = if is_confined { support } else { Enforcement::None };
        assert_eq!(child.confinement(), in_force);
        assert_eq!(
            service
                .processes
                .list()
                .first()
                .map_or(in_force, |one| one.confinement),
            in_force
        );
        let mut said = String::new();
        child.stdout().unwrap().read_to_string(&mut said).await.unwrap();
        assert_eq!(child.ended().await.exit, Exit::Code(0));
        let said: Vec<&str> = said.lines().collect();
        match in_force {
            Enforcement::Full => assert_eq!(said.join(" "), expected),
            // An old kernel refuses less, but never more.
            Enforcement::Partial => {
                assert!(!said.contains(&"outside") && said.contains(&"inside"), "{said:?}")
            }
            Enforcement::None => assert_eq!(said.join(" "), everything),
        }
    }
}

#[tokio::test]
async fn a_confined_child_writes_to_its_own_terminal_and_to_no_other() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let script = format!(
        "test -t 1 && echo own > /proc/self/fd/1; if (echo other > {name}) 2>/dev/null; then echo written; fi; exit 0"
    );
    let is_confined = landlock_support() != Enforcement::None;
    for (confinement, expected) in [
        (Confinement::None, "own\nwritten\n"),
        (
            Confinement::WriteBelow(Vec::new()),
            if is_confined { "own\n" } else { "own\nwritten\n" },
        ),
    ] {
        let service = Service::new().await;
        let mut spec = service.sh(&script);
        spec.terminal = Some(JobTerminal {
            columns: 80,
            rows: 24,
        });
        spec.stderr = StandardError::WithOutput;
        spec.confinement = confinement;
        let child = service.processes.spawn(spec).await.unwrap();
        let mut said = String::new();
        child.stdout().unwrap().read_to_string(&mut said).await.unwrap();
        assert_eq!((child.ended().await.exit, &*said), (Exit::Code(0), expected));
    }
}

#[tokio::test]
async fn a_child_is_ended_before_its_daemon_when_memory_runs_out() {
    let service = Service::new().await;
    let child = service
        .processes
        .spawn(service.sh("cat /proc/self/oom_score_adj"))
        .await
        .unwrap();
    let mut said = String::new();
    child.stdout().unwrap().read_to_string(&mut said).await.unwrap();
    assert_eq!((child.ended().await.exit, &*said), (Exit::Code(0), "500\n"));
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert!(own.trim().parse::<i32>().unwrap() < 500, "{own}");
}

#[tokio::test]
async fn what_is_said_of_this_kernel_is_what_it_does() {
    // The same question, asked of the kernel directly: each file right that it knows is one bit, and the third version
    // added the last one that a complete confinement needs.
    let is_listed = std::fs::read_to_string("/sys/kernel/security/lsm").map(|list| list.contains("landlock"));
    match landlock_support() {
        Enforcement::Full | Enforcement::Partial => assert_ne!(is_listed.ok(), Some(false)),
        Enforcement::None => assert_ne!(is_listed.ok(), Some(true)),
    }
}

#[tokio::test]
async fn limits_are_lowered_for_good() {
    let service = Service::new().await;
    let mut spec = service
        .sh("ulimit -n; ulimit -H -n; ulimit -c; ulimit -t; ulimit -f; ulimit -v; ulimit -n 9999; exit 0");
    spec.limits.open_files = Some(77);
    spec.limits.core_bytes = Some(0);
    spec.limits.cpu_seconds = Some(1000);
    spec.limits.file_bytes = Some(512 * 1024);
    spec.limits.address_space_bytes = Some(1 << 30);
    let child = service.processes.spawn(spec).await.unwrap();
    let mut said = String::new();
    child.stdout().unwrap().read_to_string(&mut said).await.unwrap();
    child.ended().await;
    assert_eq!(said, "77\n77\n0\n1000\n1024\n1048576\n");
    assert!(!child.stderr_tail().is_empty(), "the limit could be raised again");

    // More than there is cannot be given, and is not an error.
    let mut spec = service.sh("exit 0");
    spec.limits.open_files = Some(u64::MAX - 1);
    assert_eq!(
        service.processes.spawn(spec).await.unwrap().ended().await.exit,
        Exit::Code(0)
    );
}
