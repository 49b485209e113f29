//! Runs a command that may hang, with its output in a log and with a time limit.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of the log an error shows.
const LINES_SHOWN: usize = 12;

/// Runs a command with its output in a log. On timeout it is killed, with everything it started in its group.
pub(super) fn run(command: &mut Command, log: &Path, within: Duration) -> Result<()> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    match wait(&mut child, within)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("{program} ended with {status}: {}", end_of(log)),
        None => {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status().ok();
            child.kill().ok();
            child.wait().ok();
            bail!(
                "{program} took longer than {} s: {}",
                within.as_secs(),
                end_of(log)
            )
        }
    }
}

fn wait(child: &mut Child, within: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > within {
            return Ok(None);
        }
        sleep(LOOK_EVERY);
    }
}

fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
    format!("see {}\n{shown}", log.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_well_badly_or_not_in_time() {
        let directory = std::env::temp_dir().join(format!("tidelock-bounded-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let log = directory.join("log");
        let sh = |script: &str, within| run(Command::new("sh").args(["-c", script]), &log, within);
        let long = Duration::from_secs(60);

        sh("echo fine", long).unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap(), "fine\n");
        let failed = sh("echo why >&2; exit 3", long).unwrap_err().to_string();
        assert!(
            failed.contains("exit status: 3") && failed.ends_with("\nwhy"),
            "{failed}"
        );

        // Its children are killed with it: the first line of the log is the process that would remain.
        let late = sh("sleep 600 & echo $!; wait", Duration::from_millis(300))
            .unwrap_err()
            .to_string();
        assert!(late.contains("took longer"), "{late}");
        let left = fs::read_to_string(&log).unwrap();
        let process = Path::new("/proc").join(left.trim()).join("stat");
        let started = Instant::now();
        let is_alive = || fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z "));
        while is_alive() {
            assert!(started.elapsed() < long, "{left} is still there");
            sleep(LOOK_EVERY);
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
