//! Which program an agent runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::Readiness;

/// Which program an agent runs, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AcpSettings {
    /// The agent's name.
    pub name: String,
    /// The program and its arguments. A bare name is looked up in the `PATH` of the environment.
    pub command: Vec<String>,
    /// Its whole environment; nothing is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    /// A one-line description.
    pub description: String,
    /// What the user should do if the program is missing.
    pub if_missing: Option<String>,
    /// Directories outside the sandbox that it may write to, such as where it keeps its conversations. What it writes
    /// there isn't part of a plan.
    pub write_below: Vec<PathBuf>,
    /// The time from the start of its process to its answer to `initialize`, and the same again until it has a
    /// session. Programs that are downloaded on their first start take a while.
    pub start_timeout: Duration,
    /// The time from the request to stop a turn to the end of the process.
    pub cancel_grace: Duration,
}

impl Default for AcpSettings {
    fn default() -> Self {
        Self {
            name: "acp".to_owned(),
            command: Vec::new(),
            environment: BTreeMap::new(),
            description: String::new(),
            if_missing: None,
            write_below: Vec::new(),
            start_timeout: Duration::from_secs(60),
            cancel_grace: Duration::from_secs(5),
        }
    }
}

impl AcpSettings {
    pub(super) fn readiness(&self) -> Readiness {
        let Some(program) = self.command.first().filter(|program| !program.is_empty()) else {
            return Readiness::Missing(format!("no command is configured for the agent `{}`", self.name));
        };
        if self.is_installed(Path::new(program)) {
            return Readiness::Ready;
        }
        Readiness::Missing(self.if_missing.clone().unwrap_or_else(|| {
            format!("the program `{program}` is not installed, or not in the PATH of the daemon")
        }))
    }

    fn is_installed(&self, program: &Path) -> bool {
        if program.components().count() > 1 {
            return is_executable(program);
        }
        let path = self.environment.get(&OsString::from("PATH"));
        path.is_some_and(|path| {
            std::env::split_paths(path).any(|directory| is_executable(&directory.join(program)))
        })
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_there_or_it_is_said_what_is_missing() {
        let check = |command: &[&str], path: Option<&str>, missing: Option<&str>| {
            let settings = AcpSettings {
                command: command.iter().map(ToString::to_string).collect(),
                environment: path
                    .map(|path| ("PATH".into(), path.into()))
                    .into_iter()
                    .collect(),
                ..AcpSettings::default()
            };
            let expected = match missing {
                None => Readiness::Ready,
                Some(text) => Readiness::Missing(text.to_owned()),
            };
            assert_eq!(settings.readiness(), expected, "{command:?}");
        };
        let nowhere = "the program `sh` is not installed, or not in the PATH of the daemon";
        check(&[], None, Some("no command is configured for the agent `acp`"));
        check(&["sh", "-c", "true"], Some("/nonexistent:/bin:/usr/bin"), None);
        check(&["sh"], Some("/nonexistent"), Some(nowhere));
        check(&["sh"], None, Some(nowhere));
        check(&["/bin/sh"], None, None);
        check(
            &["/etc/passwd"],
            Some("/bin"),
            Some("the program `/etc/passwd` is not installed, or not in the PATH of the daemon"),
        );
    }
}
