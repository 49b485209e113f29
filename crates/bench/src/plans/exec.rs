//! What `tidelock exec` costs on trees of several sizes, and how much memory the daemon keeps for them.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::project::{Project, content, path};
use super::{git, scratch, settle};
use crate::memory::resident_kib;
use crate::own_daemon::Daemon;
use crate::report::{BarVerdict, Table};
use crate::statistics::{Figure, nanoseconds, ratio, short};

/// The number of files in each tree.
const SIZES: [usize; 3] = [1000, 50_000, 200_000];
/// How often the command runs with nothing changed, and how often with one file changed before each run.
const UNCHANGED_RUNS: usize = 15;
const CHANGED_RUNS: usize = 3;
/// How many times longer it may take on the largest tree than on the smallest.
const BAR_GROWTH: f64 = 2.0;
/// When memory is measured, after the last command.
const LATER: Duration = Duration::from_secs(10);
const BAR_MEMORY_MIB: f64 = 150.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "Plans: `exec -- true` on large trees",
        "The shipped binary, from the start of `tidelock exec -- true` to its end: a sandbox is made, the command runs, nothing has changed, and the sandbox \
         goes. In turns with `git status` on the same tree, which looks at every file. Memory is what the daemon has ten seconds after the last command.",
        &["what", "tidelock", "`git status`", "ratio", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let mut smallest = None;
    for files in SIZES {
        let project = Project::make(scratch()?.join("project"), files)?;
        settle();
        let daemon = Daemon::start(tidelock, |_| Ok(()))?;
        exec(&daemon, &project)?;
        let (mut unchanged, mut status) = (Vec::new(), Vec::new());
        for _ in 0..UNCHANGED_RUNS {
            unchanged.push(exec(&daemon, &project)?);
            status.push(look(&project)?);
        }
        let figure = Figure::of(&unchanged);
        let smallest = *smallest.get_or_insert(figure.median);
        let cells = vec![
            format!("{files} files, nothing changed"),
            figure.nanoseconds(),
            Figure::of(&status).nanoseconds(),
            short(ratio(&unchanged, &status)),
            format!("under {BAR_GROWTH} times the first row"),
        ];
        table.judged_row(cells, BarVerdict::from(figure.median < smallest * BAR_GROWTH));
        let (mut changed, mut status) = (Vec::new(), Vec::new());
        for run in 0..CHANGED_RUNS {
            fs::write(project.root.join(path(run)), content(run) + "changed\n")?;
            status.push(look(&project)?);
            changed.push(exec(&daemon, &project)?);
        }
        table.row(vec![
            format!("{files} files, one changed before"),
            Figure::of(&changed).nanoseconds(),
            Figure::of(&status).nanoseconds(),
            short(ratio(&changed, &status)),
            String::new(),
            String::new(),
        ]);
        thread::sleep(LATER);
        let mebibytes = resident_kib(daemon.pid()?)? as f64 / 1024.0;
        let cells = vec![
            format!("{files} files, memory of the daemon"),
            format!("{} MiB", short(mebibytes)),
            String::new(),
            String::new(),
            format!("under {BAR_MEMORY_MIB} MiB"),
        ];
        table.judged_row(cells, BarVerdict::from(mebibytes < BAR_MEMORY_MIB));
    }
    Ok(())
}

fn exec(daemon: &Daemon, project: &Project) -> Result<f64> {
    let mut command = daemon.command(&["exec", "--", "true"]);
    command
        .current_dir(&project.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let began = Instant::now();
    let ended = command.status()?;
    let took = nanoseconds(began.elapsed());
    ensure!(ended.success(), "`exec -- true` ended with {ended}");
    Ok(took)
}

fn look(project: &Project) -> Result<f64> {
    let began = Instant::now();
    git::run(&project.root, &["status", "--porcelain"])?;
    Ok(nanoseconds(began.elapsed()))
}
