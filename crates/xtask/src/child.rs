//! Running other programs: plainly, quietly, or with every line both shown and read.

use std::io::{self, BufRead as _, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context as _, Result, bail};

/// How many lines may be read ahead of the counter. A full queue only slows down the reader.
const LINES_AHEAD: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Badly,
}

/// Runs a command with our own standard streams; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command only for its answer: the first line of its output, if it succeeded.
pub(crate) fn probe(line: &[&str]) -> Option<String> {
    let (program, arguments) = line.split_first()?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Runs a command, shows its output as it arrives, and passes every line (of both streams) to `read`.
pub(crate) fn run_reading(command: &mut Command, mut read: impl FnMut(&str)) -> Result<Ended> {
    println!("$ {}", shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    let stdout = child.stdout.take().context("stdout was piped")?;
    let stderr = child.stderr.take().context("stderr was piped")?;
    let (lines, received) = mpsc::sync_channel(LINES_AHEAD);
    let status = thread::scope(|scope| {
        let to_counter = lines.clone();
        scope.spawn(move || echo(stdout, io::stdout(), &to_counter));
        scope.spawn(move || echo(stderr, io::stderr(), &lines));
        // The loop ends when both streams have ended, which drops both senders.
        for line in received {
            read(&line);
        }
        child.wait()
    })?;
    Ok(if status.success() {
        Ended::Well
    } else {
        Ended::Badly
    })
}

/// Copies a stream line by line. Output that is not UTF-8 is shown unchanged and parsed as well as possible.
fn echo(from: impl io::Read, mut to: impl Write, lines: &mpsc::SyncSender<String>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(from.read_until(b'\n', &mut line), Ok(length) if length > 0) {
        // A closed terminal is no reason to stop counting.
        to.write_all(&line).and_then(|()| to.flush()).ok();
        if lines
            .send(String::from_utf8_lossy(&line).trim_end().to_owned())
            .is_err()
        {
            return;
        }
        line.clear();
    }
}

/// The command as the user would type it, preceded by the variables that we set.
fn shown(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)))
        // These two only say where we read and how it is colored, which doesn't help to repeat the command.
        .filter(|(name, _)| *name != "TIDELOCK_SKIP_REPORT" && *name != "CARGO_TERM_COLOR")
        .map(|(name, value)| format!("{}={:?}", name.to_string_lossy(), value.to_string_lossy()))
        .collect();
    let program = command.get_program().to_string_lossy();
    // The full path of cargo is noise.
    words.push(program.rsplit('/').next().unwrap_or(&program).to_owned());
    words.extend(
        command
            .get_args()
            .map(|argument| argument.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_both_streams_is_read_and_the_outcome_kept() {
        let cases = [("true", Ended::Well), ("exit 3", Ended::Badly)];
        for (ending, expected) in cases {
            let mut lines = Vec::new();
            let script = format!("echo one; echo two >&2; printf three; {ending}");
            let ended = run_reading(Command::new("sh").args(["-c", &script]), |line| {
                lines.push(line.to_owned())
            });
            lines.sort();
            assert_eq!(
                (ended.unwrap(), lines),
                (expected, ["one", "three", "two"].map(str::to_owned).into())
            );
        }
    }

    #[test]
    fn a_probe_answers_with_the_first_line_or_not_at_all() {
        assert_eq!(
            probe(&["sh", "-c", "echo 1.2.3; echo more"]),
            Some("1.2.3".to_owned())
        );
        assert_eq!(probe(&["sh", "-c", "echo 1.2.3; exit 1"]), None);
        assert_eq!(probe(&["no-such-program-here"]), None);
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/opt/bin/cargo");
        command
            .args(["test", "-p", "kernel"])
            .env("RUSTFLAGS", "--cfg x")
            .env("CARGO_TERM_COLOR", "always");
        assert_eq!(shown(&command), r#"RUSTFLAGS="--cfg x" cargo test -p kernel"#);
    }
}
