//! A daemon that has much to set right serves everybody else meanwhile, and stops when it is told to.

use std::time::{Duration, Instant};

use crate::harness::{finish_within, wait_for};
use crate::job_stage::Beside;
use crate::plan_stage::Project;

/// How long a start and a stop may take while something huge is being looked at. Both are a matter of seconds.
const LIMIT: Duration = Duration::from_secs(40);

#[test]
fn a_huge_file_in_a_sandbox_keeps_neither_the_start_nor_others_nor_the_stop() {
    let project = Project::with_git(&[("a.txt", "a\n")]);
    let huge = project.open(&[]);
    let other = project.open(&[]);
    let line = "truncate -s 1T huge; echo begun; sleep 600";
    let running = Beside::start(
        &project.world,
        project.command(&["plan", "exec", &huge, "--", "sh", "-c", line]),
    );
    running.wait_for_stdout("begun");
    project.world.kill();

    for _ in 0..2 {
        let started = Instant::now();
        finish_within(project.command(&["up"]), LIMIT).expect(0);
        assert!(started.elapsed() < LIMIT);
        // Everybody else is served at once.
        project.run(&["plan", "list"]).expect(0);
        project.work(&other, "echo more >> more.txt");
        project.work(&project.open(&[]), "true");
        let told = Instant::now();
        finish_within(project.command(&["down"]), LIMIT).expect(0);
        assert!(told.elapsed() < Duration::from_secs(30), "{:?}", told.elapsed());
        wait_for("the daemon to be gone", || project.world.owner().is_none());
    }
}
