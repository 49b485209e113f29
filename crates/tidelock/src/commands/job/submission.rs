//! Builds a request from the arguments and the user's directory, environment and terminal.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::{JobCommand, JobLane, JobLimits, JobTerminal, SubmitJob};

use super::input::Source;
use crate::cli::{Inherited, JobLimit, Reads, RunArguments, Terminal, Variable};
use crate::client::whole_ms;
use crate::error::{Exit, Failure};
use crate::paths;

/// The most input that a command can be given in the request. It is part of the body, which may have 1 MiB, in an
/// encoding that takes a third more, together with the environment.
const STDIN_LIMIT_BYTES: usize = 512 * 1024;

const KEPT: [&str; 8] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR",
];

#[derive(Debug)]
pub(super) struct Submission {
    pub(super) request: SubmitJob,
    pub(super) notes: Vec<String>,
    /// The input forwarded to the command while it runs.
    pub(super) source: Option<Source>,
}

/// Builds the request. Jobs in `after` stay as the user named them.
pub(super) fn build(arguments: &RunArguments) -> Result<Submission, Failure> {
    let directory = match &arguments.directory {
        Some(directory) => paths::directory(directory)?,
        None => paths::directory(&paths::current_directory()?)?,
    };
    let (here, notes) = environment_here();
    let wanted = (arguments.inherited(), arguments.variables.as_slice());
    let environment = environment(wanted, here, &directory)?;
    let (stdin, stdin_base64) = stdin(arguments.stdin.as_deref())?;
    let source = source(arguments.reads());
    let command = JobCommand {
        argv: arguments.command.clone(),
        shell: arguments.shell.clone(),
        directory,
        environment: Some(environment),
        stdin,
        stdin_base64,
        attach_stdin: source.is_some(),
        terminal: terminal(arguments.terminal()),
        write_below: write_below(&arguments.write_below)?,
        limits: limits(&arguments.limits),
        plan: None,
    };
    Ok(Submission {
        request: request(arguments, command),
        notes,
        source,
    })
}

/// The input forwarded to the command while it runs, if any.
pub(in crate::commands) fn source(reads: Reads) -> Option<Source> {
    match reads {
        Reads::StandardInput => Source::stdin(),
        Reads::Nothing => None,
    }
}

/// The directories that a command may write to, if any were given.
pub(in crate::commands) fn write_below(wanted: &[PathBuf]) -> Result<Option<Vec<String>>, Failure> {
    let directories: Result<Vec<String>, Failure> = wanted
        .iter()
        .map(|directory| paths::directory(directory))
        .collect();
    Ok(Some(directories?).filter(|directories| !directories.is_empty()))
}

/// The environment of this process, and notes about it for the user.
pub(in crate::commands) fn environment_here() -> (BTreeMap<String, String>, Vec<String>) {
    let all = || std::env::vars_os().filter(|(name, _)| !daemon::is_private(name));
    let here = all().filter_map(|(name, value)| {
        // Only UTF-8 can be sent.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    });
    let here: BTreeMap<String, String> = here.collect();
    let notes = match all().count() - here.len() {
        0 => Vec::new(),
        1 => vec!["1 environment variable isn't UTF-8 and was left out".to_owned()],
        count => vec![format!(
            "{count} environment variables aren't UTF-8 and were left out"
        )],
    };
    (here, notes)
}

/// A command's input: as text if it is UTF-8, otherwise in Base64.
pub(in crate::commands) fn stdin(path: Option<&Path>) -> Result<(Option<String>, Option<String>), Failure> {
    Ok(match path {
        Some(path) => match String::from_utf8(read(path)?) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
        },
        None => (None, None),
    })
}

fn request(arguments: &RunArguments, command: JobCommand) -> SubmitJob {
    SubmitJob {
        command,
        title: arguments.title.clone(),
        priority: arguments.priority,
        lane: arguments.lane.as_ref().map(|lane| JobLane {
            name: lane.name.clone(),
            limit: lane.limit,
        }),
        after: arguments.after.clone(),
        delay_ms: arguments.delay.map(whole_ms),
        deadline_ms: arguments.deadline.map(whole_ms),
        time_limit_ms: arguments.timeout.map(whole_ms),
        max_retries: arguments.retries,
        retry_pause_ms: arguments.retry_pause.map(whole_ms),
        if_interrupted: arguments.if_interrupted(),
        idempotency_key: arguments.key.clone(),
        output_limit_bytes: arguments.output_limit,
        anywhere: arguments.anywhere(),
        foreground: false,
        finish: None,
        open: None,
    }
}

/// The command's environment: the current one, or a small part of it, plus what was asked for.
pub(in crate::commands) fn environment(
    (inherited, variables): (Inherited, &[Variable]),
    here: BTreeMap<String, String>,
    directory: &str,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut environment = here.clone();
    if inherited == Inherited::Little {
        environment.retain(|name, _| KEPT.contains(&name.as_str()));
    }
    // Shells and build tools rely on it.
    environment.insert("PWD".to_owned(), directory.to_owned());
    for variable in variables {
        let (name, value) = match variable {
            Variable::Set { name, value } => (name, value.clone()),
            Variable::Kept { name } => {
                let value = here.get(name).cloned().ok_or_else(|| {
                    let shown = name.escape_debug();
                    let message = format!("--env {shown}: there is no such variable here");
                    Failure::new(Exit::Usage, "usage", message).advise("write NAME=VALUE to set it")
                })?;
                (name, value)
            }
        };
        environment.insert(name.clone(), value);
    }
    Ok(environment)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: io::Error| {
        let message = format!("`{}` cannot be read: {error}", path.display());
        Failure::new(Exit::Refused, "path_unusable", message).advise("choose a file that you can read")
    };
    let mut content = Vec::new();
    let limit = STDIN_LIMIT_BYTES as u64 + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut content)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut content))
    }
    .map_err(unreadable)?;
    if content.len() > STDIN_LIMIT_BYTES {
        let message = format!(
            "`{}` is larger than {STDIN_LIMIT_BYTES} bytes, the limit for the input of a job",
            path.display()
        );
        return Err(Failure::new(Exit::Refused, "path_unusable", message)
            .advise("let the command read the file itself, for example: --shell 'COMMAND < FILE'"));
    }
    Ok(content)
}

/// The terminal that will show the output, so that the command can use it.
pub(in crate::commands) fn terminal(wanted: Terminal) -> Option<JobTerminal> {
    // On a terminal, both streams of a command become one. If either is redirected, keep them separate.
    let is_here = io::stdout().is_terminal() && io::stderr().is_terminal();
    if wanted == Terminal::Never || !is_here {
        return None;
    }
    // Use the traditional size for a terminal that does not know its own.
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    Some(size.map_or(
        JobTerminal {
            columns: 80,
            rows: 24,
        },
        |size| JobTerminal {
            columns: size.ws_col,
            rows: size.ws_row,
        },
    ))
}

fn limits(wanted: &[JobLimit]) -> Option<JobLimits> {
    let mut limits = JobLimits::default();
    for limit in wanted {
        match *limit {
            JobLimit::AddressSpace(bytes) => limits.address_space_bytes = Some(bytes),
            JobLimit::FileSize(bytes) => limits.file_bytes = Some(bytes),
            JobLimit::OpenFiles(count) => limits.open_files = Some(count),
            JobLimit::Processes(count) => limits.processes = Some(count),
            JobLimit::CpuSeconds(seconds) => limits.cpu_seconds = Some(seconds),
        }
    }
    (!wanted.is_empty()).then_some(limits)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::{Cli, Command};

    fn arguments(line: &[&str]) -> RunArguments {
        let words = ["tidelock", "job", "run"].iter().chain(line);
        match Cli::try_parse_from(words).unwrap().command {
            Command::Job(crate::cli::JobCommand::Run(arguments)) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arguments_become_a_request() {
        let cases: [(&[&str], Value); 4] = [
            (
                &["--", "make", "-k"],
                json!({ "command": { "argv": ["make", "-k"] } }),
            ),
            // Even without `--`, whatever follows the program belongs to it.
            (
                &["make", "--wait", "--json"],
                json!({ "command": { "argv": ["make", "--wait", "--json"] } }),
            ),
            (
                &[
                    "--shell",
                    "make | tee log",
                    "--priority",
                    "-3",
                    "--lane",
                    "cargo:/a:2",
                ],
                json!({
                    "command": { "shell": "make | tee log" },
                    "priority": -3,
                    "lane": { "name": "cargo:/a", "limit": 2 },
                }),
            ),
            (
                &[
                    "--timeout",
                    "5m",
                    "--deadline",
                    "1h",
                    "--retries",
                    "2",
                    "--retry-pause",
                    "500ms",
                    "--key",
                    "k",
                    "--after",
                    "last",
                    "--after",
                    "9S1TX",
                    "--delay",
                    "1s",
                    "--repeat",
                    "--title",
                    "t",
                    "--limit",
                    "open-files=9",
                    "--limit",
                    "address-space=1K",
                    "--output-limit",
                    "2M",
                    "true",
                ],
                json!({
                    "command": {
                        "argv": ["true"],
                        "limits": { "open_files": 9, "address_space_bytes": 1024 },
                    },
                    "time_limit_ms": 300_000,
                    "deadline_ms": 3_600_000,
                    "max_retries": 2,
                    "retry_pause_ms": 500,
                    "idempotency_key": "k",
                    "after": ["last", "9S1TX"],
                    "delay_ms": 1_000,
                    "if_interrupted": "repeat",
                    "title": "t",
                    "output_limit_bytes": 2 << 20,
                }),
            ),
        ];
        for (line, expected) in cases {
            let mut found = json!(build(&arguments(line)).unwrap().request);
            let command = found["command"].as_object_mut().unwrap();
            // These depend on the environment that the tests run in.
            let here = paths::current_directory().unwrap();
            assert_eq!(command.remove("directory"), Some(json!(here)));
            let environment = command.remove("environment").unwrap();
            assert_eq!(environment["PWD"], json!(here));
            command.remove("terminal");
            assert_eq!(found, expected, "{line:?}");
        }
    }

    #[test]
    fn the_environment_is_that_of_here_or_a_little_of_it() {
        let here = || -> BTreeMap<String, String> {
            [
                ("PATH", "/bin"),
                ("PWD", "/elsewhere"),
                ("SECRET", "s"),
                ("A", "1"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
        };
        type Case<'a> = (&'a [&'a str], Result<&'a [(&'a str, &'a str)], &'a str>);
        let cases: [Case<'_>; 5] = [
            (
                &["true"],
                Ok(&[("A", "1"), ("PATH", "/bin"), ("PWD", "/here"), ("SECRET", "s")]),
            ),
            (
                &["--env", "A=2", "--env", "B=", "true"],
                Ok(&[
                    ("A", "2"),
                    ("B", ""),
                    ("PATH", "/bin"),
                    ("PWD", "/here"),
                    ("SECRET", "s"),
                ]),
            ),
            (
                &["--clean-env", "true"],
                Ok(&[("PATH", "/bin"), ("PWD", "/here")]),
            ),
            (
                &["--clean-env", "--env", "A", "--env", "B=3", "true"],
                Ok(&[("A", "1"), ("B", "3"), ("PATH", "/bin"), ("PWD", "/here")]),
            ),
            (
                &["--env", "B", "true"],
                Err("--env B: there is no such variable here"),
            ),
        ];
        for (line, expected) in cases {
            let arguments = arguments(line);
            let wanted = (arguments.inherited(), arguments.variables.as_slice());
            let found = environment(wanted, here(), "/here");
            let found = found.map_err(|failure| failure.message);
            let expected: Result<BTreeMap<String, String>, String> = match expected {
                Ok(pairs) => Ok(pairs
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect()),
                Err(message) => Err(message.to_owned()),
            };
            assert_eq!(found, expected, "{line:?}");
        }
    }
}
