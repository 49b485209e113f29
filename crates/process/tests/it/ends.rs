//! How children end by themselves, and what they leave behind.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use process::{Ended, Exit, KeeperEnd, Killed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{PATIENCE, SHORT, Service, is_alive, parent_of, pid_in, within};

fn by_itself(exit: Exit) -> Ended {
    Ended {
        exit,
        killed: Killed::default(),
        left: Vec::new(),
        keeper: KeeperEnd::Reported,
    }
}

#[tokio::test]
async fn an_end_is_reported_as_it_was_with_the_last_words() {
    let service = Service::new().await;
    for (script, expected, words) in [
        ("exit 0", Exit::Code(0), ""),
        ("echo no >&2; exit 3", Exit::Code(3), "no\n"),
        ("printf broken >&2; exit 255", Exit::Code(255), "broken"),
        ("kill -KILL $$", Exit::Signal(9), ""),
        ("echo a >&2; kill -TERM $$", Exit::Signal(15), "a\n"),
    ] {
        let child = service.run(script).await;
        let (one, two) = tokio::join!(child.ended(), child.ended());
        assert_eq!(one, by_itself(expected), "{script}");
        assert_eq!((one, child.stderr_tail().as_str()), (two, words), "{script}");
    }
    service.nothing_left().await;
    // The rows were used again. The end is told before the row is free, so there may be two.
    assert!(service.closed_rows().await <= 2);
}

#[tokio::test]
async fn an_end_is_reported_as_it_was_to_a_stop_that_comes_in_that_instant() {
    let service = Service::new().await;
    // Now and then the task of the child has heard of the end all the same.
    for round in 0..10 {
        let go = service.path(&format!("go-{round}"));
        let wait_for_go = format!("until test -e {}; do sleep 0.01; done; exit 3", go.display());
        let child = service.run(&wait_for_go).await;
        let keeper = parent_of(child.pid());
        // Others run until there is nothing to do for them.
        tokio::time::sleep(Duration::from_millis(20)).await;
        // This thread is the only one, so the task of the child does not run before the stop is asked for.
        fs::write(&go, "").unwrap();
        let start = Instant::now();
        while is_alive(keeper) {
            assert!(start.elapsed() < PATIENCE, "the keeper does not end");
            thread::sleep(Duration::from_millis(1));
        }
        let ended = within(child.stop(SHORT)).await;
        assert_eq!(ended, by_itself(Exit::Code(3)), "round {round}");
    }
    service.nothing_left().await;
}

#[tokio::test]
async fn the_last_words_are_whole_however_quick_the_end_was() {
    let service = Service::new().await;
    for round in 0..20 {
        let child = service
            .run("head -c 60000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1")
            .await;
        assert_eq!(within(child.ended()).await, by_itself(Exit::Code(1)));
        let expected = "x".repeat(60_000) + "end\n";
        assert!(
            child.stderr_tail() == expected,
            "round {round}: {} bytes",
            child.stderr_tail().len()
        );
    }
}

#[tokio::test]
async fn pipes_carry_what_is_written() {
    let service = Service::new().await;
    let child = service.run("cat; echo end").await;
    let (mut stdin, mut stdout) = (child.stdin().unwrap(), child.stdout().unwrap());
    assert!(child.stdin().is_none() && child.stdout().is_none(), "taken twice");
    stdin.write_all(b"hello ").await.unwrap();
    drop(stdin);
    let mut said = String::new();
    stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "hello end\n");
    assert_eq!(child.ended().await, by_itself(Exit::Code(0)));
    drop(child);
    service.nothing_left().await;
}

#[tokio::test]
async fn output_can_be_taken_after_the_end() {
    let service = Service::new().await;
    let child = service.run("echo late").await;
    assert_eq!(child.ended().await, by_itself(Exit::Code(0)));
    let mut said = String::new();
    child.stdout().unwrap().read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "late\n");
}

#[tokio::test]
async fn only_what_is_named_is_in_the_environment() {
    let service = Service::new().await;
    // What the daemon itself was given, and nobody closed.
    let inherited = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let child = service
        .run("env; pwd; ulimit -c; ls -l /proc/self/fd | wc -l")
        .await;
    let mut said = String::new();
    child.stdout().unwrap().read_to_string(&mut said).await.unwrap();
    let mut names: Vec<&str> = said
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .filter(|name| *name != "_" && *name != "PWD" && *name != "SHLVL" && *name != "OLDPWD")
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["MARK", "PATH", "TIDELOCK_PROCESS"]);
    let directory = service.directory.path().canonicalize().unwrap();
    assert!(
        said.lines().any(|line| std::path::Path::new(line) == directory),
        "{said}"
    );
    // A head line, three streams, and the directory that `ls` itself has open.
    assert_eq!(said.lines().last(), Some("5"), "{said}");
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_stopped_with_it() {
    let service = Service::new().await;
    // A shell that ignores TERM, and one in a session of its own whose parent has ended.
    let child = service
        .run("(trap '' TERM; echo $$ > a; while :; do sleep 1; done) & setsid sh -c 'echo $$ > b; exec sleep 1000' & sleep 0.3; exit 7")
        .await;
    let deserter = pid_in(&service.path("b")).await;
    let ended = within(child.ended()).await;
    assert_eq!((ended.exit, ended.keeper), (Exit::Code(7), KeeperEnd::Reported));
    assert_eq!(ended.left, [] as [u32; 0]);
    // The one that obeyed TERM did not have to be killed.
    assert!(ended.killed.count >= 1, "{ended:?}");
    assert!(
        !ended.killed.some.iter().any(|killed| killed.pid == deserter),
        "{ended:?}"
    );
    assert!(!is_alive(deserter));
    assert_eq!(service.survivors(), [] as [u32; 0]);
    service.nothing_left().await;
}
