//! How soon all processes of a cancelled command are gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::commands::CommandJobs;
use crate::report::{BarVerdict, Table};
use crate::statistics::{Figure, nanoseconds, percentiles, short};

const ROUNDS: usize = 100;
const WARM_UP: usize = 3;
/// The shell and its children.
const PROCESSES: usize = 20;
/// How often to check whether the tree exists, and whether it is gone.
const LOOK_EVERY: Duration = Duration::from_micros(100);
const WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "Jobs: from the cancellation to nothing left",
        "A job of the shipped daemon is a shell with 19 children, all of which sleep. It is cancelled over HTTP, 100 times. The tree is gone when none of its \
         processes is in `/proc`, not even as a zombie; the job has ended when `cancelled` is on disk and \
         whoever waited for it has been told. It is shown, and not judged.",
        &["what", "median", "p99", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let mut jobs = CommandJobs::start(tidelock)?;
    let scratch = tempfile::tempdir()?;
    let (mut gone, mut ended) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let tree = Tree::new(scratch.path().join(round.to_string()))?;
        let ours = tree.of_a_job(&mut jobs)?;
        if round >= WARM_UP {
            gone.push(ours.0);
            ended.push(ours.1);
        }
    }
    row(table, "cancel → tree gone", &gone);
    row(table, "cancel → job `cancelled`", &ended);
    Ok(())
}

fn row(table: &mut Table, what: &str, samples: &[f64]) {
    let [p99] = percentiles(samples, [99]);
    let cells = vec![
        what.to_owned(),
        Figure::of(samples).nanoseconds(),
        format!("{} ms", short(p99 / 1e6)),
        String::new(),
    ];
    table.judged_row(cells, BarVerdict::NotAsked);
}

/// A shell and its children. They write their process ids to a file once all of them are running.
struct Tree {
    directory: PathBuf,
}

impl Tree {
    fn new(directory: PathBuf) -> Result<Self> {
        fs::create_dir(&directory)?;
        Ok(Self { directory })
    }

    fn script() -> String {
        let children = PROCESSES - 1;
        format!(
            "i=0; while [ $i -lt {children} ]; do sleep 1000 & echo $! >> pids; i=$((i+1)); done; \
             echo $$ >> pids; mv pids all; wait"
        )
    }

    /// Nanoseconds until the tree is gone, and until the job reports it.
    fn of_a_job(&self, jobs: &mut CommandJobs) -> Result<(f64, f64)> {
        let id = jobs.submit(&Self::script(), &self.directory, &json!({}))?;
        let pids = self.pids()?;
        let began = Instant::now();
        jobs.cancel(&id)?;
        wait_until(|| pids.iter().all(|pid| is_gone(*pid)))?;
        let gone = nanoseconds(began.elapsed());
        let job = jobs.ended(&id)?;
        let ended = nanoseconds(began.elapsed());
        ensure!(job["state"] == "cancelled", "a job ended as {}", job["state"]);
        Ok((gone, ended))
    }

    fn pids(&self) -> Result<Vec<u32>> {
        let file = self.directory.join("all");
        wait_until(|| file.exists())?;
        let text = fs::read_to_string(file)?;
        let pids: Vec<u32> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
        ensure!(pids.len() == PROCESSES, "there are {} processes", pids.len());
        Ok(pids)
    }
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

fn wait_until(mut is_so: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while !is_so() {
        ensure!(began.elapsed() < WITHIN, "a tree did not come or go in time");
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process_group};

    use super::*;

    /// A shell in its own process group. Nothing of it outlives a failed test.
    struct Shell(Child);

    impl Drop for Shell {
        fn drop(&mut self) {
            // If it has already ended, the pid may belong to another process.
            if matches!(self.0.try_wait(), Ok(None)) {
                let group = Pid::from_child(&self.0);
                kill_process_group(group, Signal::KILL).ok();
                self.0.wait().ok();
            }
        }
    }

    #[test]
    fn the_tree_has_all_its_processes() {
        let scratch = tempfile::tempdir().unwrap();
        let tree = Tree::new(scratch.path().join("tree")).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &Tree::script()]).process_group(0);
        let mut shell = Shell(command.current_dir(&tree.directory).spawn().unwrap());
        let pids = tree.pids().unwrap();
        let (shell_pid, children) = pids.split_last().unwrap();
        assert_eq!(*shell_pid, shell.0.id());
        assert!(!pids.iter().any(|pid| is_gone(*pid)), "{pids:?}");
        // The shell waits for its children, so none of them is left when it has ended.
        let children = children.iter().map(u32::to_string);
        assert!(Command::new("kill").args(children).status().unwrap().success());
        shell.0.wait().unwrap();
        assert!(pids.iter().all(|pid| is_gone(*pid)), "{pids:?}");
    }
}
