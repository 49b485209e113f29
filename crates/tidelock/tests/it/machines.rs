//! Several machines on one database, and what happens when it is away or a machine is cut off from it.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::wait_for;
use crate::job_stage::Beside;
use crate::machine_stage::{Machine, Machines};
use crate::requests::send;
use crate::tools::skip;

const NO_SERVER: &str = "Postgres is not installed";

/// Longer than a client waits, and shorter than a lease.
const AN_OUTAGE: Duration = Duration::from_secs(4);

/// It works for longer than the outage.
const SCRIPT: &str = "
steps:
  - say: One.
  - shell: i=1; while [ $i -le 80 ]; do echo step $i; i=$((i+1)); sleep 0.1; done
  - say: Two.
";

/// Counts aloud until it is told to stop. A file says that it has begun, and another one stops it: how fast the machine is
/// makes no difference.
fn counting(name: &str) -> String {
    format!(
        "i=1; while [ ! -e stop ]; do echo {name} $i; touch begun-{name}; i=$((i+1)); sleep 0.1; done; echo {name} end"
    )
}

/// Whether something has counted aloud to the end, and nothing is missing or there twice.
#[track_caller]
fn assert_counted(name: &str, said: &str) {
    let said: Vec<&str> = said.lines().filter(|line| line.contains(name)).collect();
    let numbers = (1..said.len()).map(|number| format!("{name} {number}"));
    let expected: Vec<String> = numbers.chain([format!("{name} end")]).collect();
    assert_eq!(said, expected);
}

#[test]
fn a_restart_of_the_database_harms_nothing() {
    let Some(mut machines) = Machines::start(2) else {
        return skip(NO_SERVER);
    };
    let (mut jobs, mut turns) = (Vec::new(), Vec::new());
    for machine in &machines.machines {
        for name in ["first", "second", "third"] {
            jobs.push((name, machine.submit(&[], &counting(name))));
        }
        let project = machine.world.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("script.yaml"), SCRIPT).unwrap();
        let mut talk = machine.command(&["run", "--script", "script.yaml", "do it"]);
        talk.current_dir(project);
        turns.push(Beside::start(&machine.world, talk));
    }
    for machine in &machines.machines {
        for name in ["first", "second", "third"] {
            let begun = machine.world.path().join(format!("begun-{name}"));
            wait_for(name, || begun.exists());
        }
    }
    for turn in &turns {
        turn.wait_for_stdout("One.");
    }
    machines.server.restart_after(AN_OUTAGE);
    for machine in &machines.machines {
        fs::write(machine.world.path().join("stop"), "").unwrap();
    }
    let one = &machines.machines[0];
    for (name, job) in &jobs {
        wait_for("the end of a job", || one.job(job)["ended_at"].is_string());
        assert_eq!(one.job(job)["state"], "succeeded", "{}", one.job(job));
        assert_counted(name, &one.run(&["job", "logs", job]).expect(0).stdout);
    }
    for mut turn in turns {
        assert_eq!(turn.wait_code(), 0, "{:?}", turn.said());
        let (said, notes) = turn.said();
        assert!(
            said.contains("Two.") && !notes.contains("failed"),
            "{said}{notes}"
        );
    }
}

#[test]
fn a_silent_database_is_noticed_and_nobody_hangs() {
    let Some(machines) = Machines::start(1) else {
        return skip(NO_SERVER);
    };
    let home = machines.machines[0].world.home();
    let status = |path: &str| send(&home, "GET", path, "").unwrap().status;
    assert_eq!(status("/readyz"), 200);
    machines.server.signal("-STOP");
    let begun = Instant::now();
    wait_for("the silence to be noticed", || status("/readyz") == 503);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for path in [
        "/v1/jobs",
        "/v1/sessions",
        "/v1/plans",
        "/v1/workspaces",
        "/v1/activity",
    ] {
        let asked = Instant::now();
        let answer = send(&home, "GET", path, "").unwrap();
        assert_eq!(
            (answer.status, answer.body["code"].as_str()),
            (503, Some("log_refusing")),
            "{path}: {answer:?}"
        );
        assert!(
            asked.elapsed() < Duration::from_secs(5),
            "{path}: {:?}",
            asked.elapsed()
        );
    }
    machines.server.signal("-CONT");
    wait_for("the database to be found well", || status("/readyz") == 200);
    assert_eq!(status("/v1/jobs"), 200);
}

/// Writes its name into a file every few milliseconds, which is all that anybody else sees of it.
fn marking(machine: &str, file: &str) -> String {
    format!(
        "i=0; while [ $i -lt 2000 ]; do echo {machine} $(date +%s%3N) >> {file}; i=$((i+1)); sleep 0.02; done"
    )
}

/// When the marks of each machine begin and end, in milliseconds.
fn spans(marks: &str) -> Vec<(String, u64, u64)> {
    let mut spans: Vec<(String, u64, u64)> = Vec::new();
    for line in marks.lines() {
        let Some((name, at)) = line.split_once(' ') else {
            continue;
        };
        let Ok(at) = at.parse() else { continue };
        match spans.iter_mut().find(|span| span.0 == name) {
            Some(span) => span.2 = at,
            None => spans.push((name.to_owned(), at, at)),
        }
    }
    spans
}

#[test]
fn a_machine_that_is_cut_off_stops_before_another_takes_over() {
    let Some(machines) = Machines::start(2) else {
        return skip(NO_SERVER);
    };
    let [one, other]: &[Machine; 2] = machines.machines[..].try_into().unwrap();
    let marks = one.world.path().join("marks");
    let marks = marks.to_str().unwrap();
    let lane = ["--lane", "one-at-a-time", "--repeat"];
    // Each is run by its own machine; the lane lets only one of them run.
    let first = one.submit(&lane, &marking("one", marks));
    wait_for("the first to run", || {
        fs::read_to_string(marks).is_ok_and(|text| text.contains("one"))
    });
    let second = other.submit(&lane, &marking("other", marks));
    thread::sleep(Duration::from_secs(1)); // tidy: it must not begin in this time
    assert_eq!(other.job(&second)["state"], "queued");
    one.line.cut();
    let begun = || fs::read_to_string(marks).is_ok_and(|text| text.contains("other"));
    crate::harness::wait_for_within("the other to take over", Duration::from_secs(60), begun);
    thread::sleep(Duration::from_secs(1)); // tidy: in this time the first one might still write
    let spans = spans(&fs::read_to_string(marks).unwrap());
    let names: BTreeSet<_> = spans.iter().map(|span| span.0.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["one", "other"]));
    assert!(spans[0].2 < spans[1].1, "both ran: {spans:?}");
    one.line.mend();
    for job in [&second, &first] {
        other.run(&["job", "cancel", job, "--wait"]);
    }
}
