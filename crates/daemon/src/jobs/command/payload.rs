//! A command as stored in a job.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use protocol::{JobTerminal, PlanId};
use serde::{Deserialize, Serialize};

use super::title;
use crate::jobs::environments::shareable;

/// The largest terminal, in columns and in rows. Programs keep its contents in memory, so it must not be absurd.
const TERMINAL_LIMIT: u16 = 4096;

/// A command. It is stored in the log when the job is submitted, so fields can only be added.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandPayload {
    pub(crate) line: CommandLine,
    /// The absolute path of the directory that it starts in.
    pub(crate) directory: String,
    /// Its whole environment; `None` for the daemon's. It may contain secrets, so it goes into the log only if another
    /// daemon may have to run the command. Earlier versions always stored it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) environment: Option<BTreeMap<String, String>>,
    /// Whether the environment is stored next to the log, under the id of the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) environment_is_kept: bool,
    /// Whether an agent started it, outside all sandboxes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_of_agent: bool,
    /// The terminal that it writes to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terminal: Option<JobTerminal>,
    /// The directories that it may write to, if it is confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) write_below: Option<Vec<String>>,
    /// The resource limits of each of its processes.
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub(crate) limits: process::Limits,
    /// The plan with the sandbox that it runs in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PlanPlace>,
    /// Whether a client sends its input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) attach_stdin: bool,
}

/// A directory in the sandbox of a plan.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanPlace {
    pub(crate) id: String,
    /// The directory that the command starts in, relative to the root of the workspace; empty for the root itself. Its
    /// actual path depends on how the sandbox is built.
    pub(crate) below: String,
}

/// A plan that a command is to run in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanSite<'a> {
    pub(crate) id: PlanId,
    /// The root of its workspace.
    pub(crate) workspace: &'a Path,
    /// The root of its sandbox, as a command sees it.
    pub(crate) sandbox: &'a Path,
}

/// What to run.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommandLine {
    /// The program and its arguments.
    Argv(Vec<String>),
    /// A line for `sh -c`.
    Shell(String),
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{field}` {why}")]
pub(crate) struct BadCommand {
    /// The invalid part, as a path in the request.
    pub(crate) field: &'static str,
    /// What is wrong with it.
    pub(crate) why: String,
}

fn bad(field: &'static str, why: impl Into<String>) -> BadCommand {
    let why = why.into();
    BadCommand { field, why }
}

impl CommandPayload {
    /// Validates the command of a request. It checks that the directory exists, so it blocks. The input of the command
    /// isn't included: that is a blob of the job.
    pub(crate) fn from_wire(command: &protocol::JobCommand) -> Result<Self, BadCommand> {
        let payload = Self::parsed(command)?;
        match std::fs::metadata(&payload.directory) {
            Ok(found) if found.is_dir() => Ok(payload),
            Ok(_) => Err(bad("command.directory", "is not a directory")),
            Err(error) => Err(bad("command.directory", format!("cannot be used: {error}"))),
        }
    }

    /// The same for a command that runs in the sandbox of a plan. Its directory is in the workspace, as the command
    /// sees it. Whether it exists is only known inside the sandbox.
    pub(crate) fn from_wire_in(
        command: &protocol::JobCommand,
        site: PlanSite<'_>,
    ) -> Result<Self, BadCommand> {
        let payload = Self::parsed(command)?;
        let below = below(site, Path::new(&payload.directory)).ok_or_else(|| {
            let root = site.workspace.display();
            bad(
                "command.directory",
                format!("is not in the workspace of the plan, {root}"),
            )
        })?;
        let mut environment = payload.environment;
        if let Some(environment) = &mut environment {
            // Shells and build tools trust it.
            let here = site.sandbox.join(&below);
            environment.insert("PWD".to_owned(), here.display().to_string());
        }
        Ok(Self {
            environment,
            plan: Some(PlanPlace {
                id: site.id.to_string(),
                below,
            }),
            ..payload
        })
    }

    /// The command for a check of a plan.
    pub(crate) fn of_check(plan: PlanId, workspace: &Path, command: &str) -> Self {
        Self {
            line: CommandLine::Shell(command.to_owned()),
            directory: workspace.display().to_string(),
            environment: None,
            environment_is_kept: false,
            is_of_agent: false,
            terminal: None,
            write_below: None,
            limits: process::Limits::default(),
            plan: Some(PlanPlace {
                id: plan.to_string(),
                below: String::new(),
            }),
            attach_stdin: false,
        }
    }

    /// Removes the environment, so that it can be stored next to the log.
    pub(crate) fn take_environment(&mut self) -> Option<BTreeMap<String, String>> {
        let environment = self.environment.take();
        self.environment_is_kept = environment.is_some();
        environment
    }

    /// The plan that it runs in, if any.
    pub(crate) fn plan_id(&self) -> Option<PlanId> {
        self.plan.as_ref()?.id.parse().ok()
    }

    fn parsed(command: &protocol::JobCommand) -> Result<Self, BadCommand> {
        let line = match (&command.shell, command.argv.as_slice()) {
            (Some(_), [_, ..]) => {
                return Err(bad("command", "has both `argv` and `shell`; give one of them"));
            }
            (None, []) => return Err(bad("command", "has neither `argv` nor `shell`; give one of them")),
            (Some(shell), []) => CommandLine::Shell(shell.clone()),
            (None, argv) => CommandLine::Argv(argv.to_vec()),
        };
        let limits = command.limits.unwrap_or_default();
        let payload = Self {
            line,
            directory: command.directory.clone(),
            environment: command.environment.clone().map(shareable),
            environment_is_kept: false,
            is_of_agent: false,
            terminal: command.terminal,
            write_below: command.write_below.clone(),
            limits: process::Limits {
                address_space_bytes: limits.address_space_bytes,
                open_files: limits.open_files,
                file_bytes: limits.file_bytes,
                core_bytes: None,
                cpu_seconds: limits.cpu_seconds,
                processes: limits.processes,
            },
            plan: None,
            attach_stdin: command.attach_stdin,
        };
        payload.check()?;
        Ok(payload)
    }

    /// Checks everything that doesn't depend on the machine.
    fn check(&self) -> Result<(), BadCommand> {
        match &self.line {
            CommandLine::Shell(line) if line.trim().is_empty() => {
                return Err(bad("command.shell", "is empty"));
            }
            CommandLine::Shell(line) => no_nul("command.shell", line)?,
            CommandLine::Argv(argv) => {
                if argv.first().is_none_or(String::is_empty) {
                    return Err(bad("command.argv", "has an empty program"));
                }
                argv.iter()
                    .try_for_each(|argument| no_nul("command.argv", argument))?;
            }
        }
        absolute("command.directory", &self.directory)?;
        for (name, value) in self.environment.iter().flatten() {
            no_nul("command.environment", name)?;
            no_nul("command.environment", value)?;
            if name.is_empty() || name.contains('=') {
                let why = format!("has a variable `{name}`, which is no name for one");
                return Err(bad("command.environment", why));
            }
        }
        for directory in self.write_below.iter().flatten() {
            absolute("command.write_below", directory)?;
        }
        let is_usual = |length: u16| (1..=TERMINAL_LIMIT).contains(&length);
        match self.terminal {
            Some(JobTerminal { columns, rows }) if !is_usual(columns) || !is_usual(rows) => Err(bad(
                "command.terminal",
                format!("has {columns} columns and {rows} rows; both can be 1 to {TERMINAL_LIMIT}"),
            )),
            _ => Ok(()),
        }
    }

    /// Serializes it for a job.
    ///
    /// # Errors
    /// It can't be serialized.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// What identifies this command. The variables and the terminal size of the calling shell aren't part of it: the
    /// same command from another shell is the same command.
    ///
    /// # Errors
    /// It can't be serialized.
    pub(crate) fn essence(&self) -> Result<Vec<u8>, serde_json::Error> {
        let essence = Self {
            environment: None,
            environment_is_kept: false,
            terminal: None,
            ..self.clone()
        };
        essence.encode()
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(payload)
    }

    /// The command line as a shell would read it, in one line of at most 200 characters.
    pub(crate) fn title(&self) -> String {
        match &self.line {
            CommandLine::Shell(line) => title::one_line(line),
            CommandLine::Argv(argv) => title::one_line(&title::quoted(argv)),
        }
    }
}

/// A directory relative to the root of a plan's workspace; `None` if it is outside.
fn below(site: PlanSite<'_>, directory: &Path) -> Option<String> {
    let roots = [site.workspace, site.sandbox];
    let below = roots.iter().find_map(|root| directory.strip_prefix(root).ok())?;
    let is_plain = |component| matches!(component, Component::Normal(_));
    match below.components().all(is_plain) {
        true => below.to_str().map(str::to_owned),
        false => None,
    }
}

fn no_nul(field: &'static str, text: &str) -> Result<(), BadCommand> {
    match text.contains('\0') {
        true => Err(bad(field, "has a NUL in it, which no command can be given")),
        false => Ok(()),
    }
}

fn absolute(field: &'static str, path: &str) -> Result<(), BadCommand> {
    no_nul(field, path)?;
    match Path::new(path).is_absolute() {
        true => Ok(()),
        false => Err(bad(field, format!("has `{path}`, which is not an absolute path"))),
    }
}

fn is_unlimited(limits: &process::Limits) -> bool {
    *limits == process::Limits::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> protocol::JobCommand {
        protocol::JobCommand {
            argv: words.iter().map(ToString::to_string).collect(),
            directory: "/".to_owned(),
            ..protocol::JobCommand::default()
        }
    }

    #[test]
    fn a_command_comes_out_of_the_log_as_it_went_in() {
        let whole = protocol::JobCommand {
            environment: Some(BTreeMap::from([("A".to_owned(), "b=c".to_owned())])),
            terminal: Some(protocol::JobTerminal {
                columns: 80,
                rows: 24,
            }),
            write_below: Some(vec!["/tmp".to_owned()]),
            limits: Some(protocol::JobLimits {
                processes: Some(7),
                ..protocol::JobLimits::default()
            }),
            ..argv(&["make", "-k"])
        };
        let shell = protocol::JobCommand {
            shell: Some("make | tee log".to_owned()),
            ..argv(&[])
        };
        for (command, encoded) in [
            (
                whole,
                r#"{"line":{"argv":["make","-k"]},"directory":"/","environment":{"A":"b=c"},"terminal":{"columns":80,"rows":24},"write_below":["/tmp"],"limits":{"address_space_bytes":null,"open_files":null,"file_bytes":null,"core_bytes":null,"cpu_seconds":null,"processes":7}}"#,
            ),
            (shell, r#"{"line":{"shell":"make | tee log"},"directory":"/"}"#),
        ] {
            let payload = CommandPayload::from_wire(&command).unwrap();
            assert_eq!(String::from_utf8(payload.encode().unwrap()).unwrap(), encoded);
            assert_eq!(CommandPayload::decode(encoded.as_bytes()).unwrap(), payload);
        }
        assert!(CommandPayload::decode(br#"{"directory":"/"}"#).is_err());
    }

    #[test]
    fn a_command_in_a_plan_starts_in_a_directory_of_its_workspace_wherever_that_is_seen() {
        let id: PlanId = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let site = PlanSite {
            id,
            workspace: Path::new("/no/such/workspace"),
            sandbox: Path::new("/data/sandbox"),
        };
        for (directory, expected) in [
            ("/no/such/workspace", Some("")),
            ("/no/such/workspace/", Some("")),
            ("/no/such/workspace/a/b", Some("a/b")),
            ("/data/sandbox/a", Some("a")),
            ("/no/such/workspace/../a", None),
            ("/no/such/workspace/a/../../b", None),
            ("/no/such/workspaces", None),
            ("/", None),
        ] {
            let command = protocol::JobCommand {
                directory: directory.to_owned(),
                ..argv(&["true"])
            };
            let found = CommandPayload::from_wire_in(&command, site);
            let expected = match expected {
                Some(below) => Ok(Some(PlanPlace {
                    id: id.to_string(),
                    below: below.to_owned(),
                })),
                None => Err(bad(
                    "command.directory",
                    "is not in the workspace of the plan, /no/such/workspace",
                )),
            };
            assert_eq!(found.map(|payload| payload.plan), expected, "{directory}");
        }
        let payload = CommandPayload::of_check(id, Path::new("/a"), "make test");
        assert_eq!(
            String::from_utf8(payload.encode().unwrap()).unwrap(),
            format!(
                r#"{{"line":{{"shell":"make test"}},"directory":"/a","plan":{{"id":"{id}","below":""}}}}"#
            )
        );
        assert_eq!(payload.plan_id(), Some(id));
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_the_reason() {
        let ok = argv(&["true"]);
        let environment = |name: &str, value: &str| protocol::JobCommand {
            environment: Some(BTreeMap::from([(name.to_owned(), value.to_owned())])),
            ..argv(&["true"])
        };
        let shell = |line: &str| protocol::JobCommand {
            shell: Some(line.to_owned()),
            ..argv(&[])
        };
        let directory = |path: &str| protocol::JobCommand {
            directory: path.to_owned(),
            ..argv(&["true"])
        };
        let terminal = |columns, rows| protocol::JobCommand {
            terminal: Some(protocol::JobTerminal { columns, rows }),
            ..argv(&["true"])
        };
        let write_below = protocol::JobCommand {
            write_below: Some(vec!["/tmp".to_owned(), "here".to_owned()]),
            ..argv(&["true"])
        };
        let both = protocol::JobCommand {
            argv: ok.argv.clone(),
            ..shell("true")
        };
        let nul = "has a NUL in it, which no command can be given";
        for (command, field, why) in [
            (
                argv(&[]),
                "command",
                "has neither `argv` nor `shell`; give one of them",
            ),
            (both, "command", "has both `argv` and `shell`; give one of them"),
            (argv(&["", "x"]), "command.argv", "has an empty program"),
            (argv(&["a", "b\0c"]), "command.argv", nul),
            (shell(" \n"), "command.shell", "is empty"),
            (shell("a\0"), "command.shell", nul),
            (
                directory(""),
                "command.directory",
                "has ``, which is not an absolute path",
            ),
            (
                directory("a/b"),
                "command.directory",
                "has `a/b`, which is not an absolute path",
            ),
            (directory("/a\0"), "command.directory", nul),
            (
                directory("/proc/self/comm"),
                "command.directory",
                "is not a directory",
            ),
            (
                directory("/proc/nothing"),
                "command.directory",
                "cannot be used: No such file or directory (os error 2)",
            ),
            (environment("A\0", ""), "command.environment", nul),
            (environment("A", "\0"), "command.environment", nul),
            (
                environment("A=B", ""),
                "command.environment",
                "has a variable `A=B`, which is no name for one",
            ),
            (
                environment("", "x"),
                "command.environment",
                "has a variable ``, which is no name for one",
            ),
            (
                write_below,
                "command.write_below",
                "has `here`, which is not an absolute path",
            ),
            (
                terminal(0, 24),
                "command.terminal",
                "has 0 columns and 24 rows; both can be 1 to 4096",
            ),
            (
                terminal(80, 4097),
                "command.terminal",
                "has 80 columns and 4097 rows; both can be 1 to 4096",
            ),
        ] {
            assert_eq!(CommandPayload::from_wire(&command), Err(bad(field, why)));
        }
        for fine in [ok, terminal(1, 4096), shell("true"), environment("A", "")] {
            assert_eq!(CommandPayload::from_wire(&fine).map(|_| ()), Ok(()));
        }
    }
}
