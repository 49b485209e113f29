//! Whether a server is installed, and where.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::definition::{CommandLine, ServerDefinition};
use super::environment::Environment;
use super::version_probe::{self, Probed};

/// Where a workspace keeps its own programs.
const LOCAL_DIRECTORIES: [&str; 3] = ["node_modules/.bin", ".venv/bin", "venv/bin"];
/// The name of rustup's program. Its proxies are links to it.
const RUSTUP: &str = "rustup";
/// A proxy answers in well under a second, unless the disk is asleep. If it takes longer, it counts as missing.
const PROXY_ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Whether programs that belong to the workspace may be run. They are code from the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalPrograms {
    Use,
    /// They may not: the machine's own programs are used.
    Ignore,
}

/// The result of looking for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detected {
    Found(FoundProgram),
    Missing(MissingProgram),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundProgram {
    /// Absolute. A link isn't followed, because shims depend on the name they are called by.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Known only if finding the program required asking for it.
    pub version: Option<String>,
    pub place: ProgramPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramPlace {
    Workspace,
    Machine,
}

/// A program that isn't installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    pub install: String,
    pub why: MissingReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingReason {
    /// No program with any of its names exists.
    NotFound { programs: Vec<String> },
    /// The program is rustup's proxy, and the toolchain lacks the component behind it.
    ComponentMissing { program: PathBuf },
    /// The workspace has it, but the workspace is not trusted.
    OnlyInUntrustedWorkspace {
        /// The program that isn't run.
        program: PathBuf,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub environment: &'a Environment,
    pub root: &'a Path,
    /// Local programs are searched for from the root up to here.
    pub workspace: &'a Path,
    pub local: LocalPrograms,
}

impl Search<'_> {
    /// Finds the first of a server's commands that is installed: in the workspace if it is trusted, then on the `PATH`,
    /// then in the usual directories. Blocks: it reads files and may run a rustup proxy.
    pub fn detect(&self, definition: &ServerDefinition) -> Detected {
        let mut why = None;
        for command in &definition.commands {
            for (program, place) in self.locate(&command.program) {
                let version = match self.version_if_proxy(&program, &command.program) {
                    Ok(version) => version,
                    Err(reason) => {
                        // Another one may come after it on the `PATH`.
                        why = Some(reason);
                        continue;
                    }
                };
                return Detected::Found(FoundProgram {
                    program,
                    arguments: command.arguments.iter().map(OsString::from).collect(),
                    version,
                    place,
                });
            }
        }
        let why = why
            .or_else(|| self.hidden_local(&definition.commands))
            .unwrap_or_else(|| MissingReason::NotFound {
                programs: definition
                    .commands
                    .iter()
                    .map(|command| command.program.clone())
                    .collect(),
            });
        Detected::Missing(MissingProgram {
            install: definition.install.clone(),
            why,
        })
    }

    fn version_if_proxy(&self, program: &Path, name: &str) -> Result<Option<String>, MissingReason> {
        if !is_rustup_proxy(program, name) {
            return Ok(None);
        }
        match version_probe::run(program, self.root, self.environment, PROXY_ANSWERS_WITHIN) {
            Probed::Version(said) => Ok(Some(said)),
            Probed::Failed => Err(MissingReason::ComponentMissing {
                program: program.to_path_buf(),
            }),
        }
    }

    /// All programs with a name, or the one at a path, the better one first.
    fn locate(&self, program: &str) -> Vec<(PathBuf, ProgramPlace)> {
        if let Some(path) = self.as_path(program) {
            return Vec::from_iter(is_program(&path).then_some((path, ProgramPlace::Machine)));
        }
        let local = match self.local {
            LocalPrograms::Use => self.local_program(program),
            LocalPrograms::Ignore => None,
        };
        let directories = self.environment.path().into_iter();
        let machine = directories
            .chain(self.environment.usual_directories())
            .map(|directory| directory.join(program))
            .filter(|path| is_program(path));
        let local = local.into_iter().map(|path| (path, ProgramPlace::Workspace));
        local
            .chain(machine.map(|path| (path, ProgramPlace::Machine)))
            .collect()
    }

    /// A command with a slash is a path: relative to the workspace, or to the home directory.
    fn as_path(&self, program: &str) -> Option<PathBuf> {
        if let Some(rest) = program.strip_prefix("~/") {
            return Some(self.environment.home()?.join(rest));
        }
        program.contains('/').then(|| self.workspace.join(program))
    }

    fn local_program(&self, program: &str) -> Option<PathBuf> {
        let upwards = self
            .root
            .ancestors()
            .take_while(|directory| directory.starts_with(self.workspace));
        upwards
            .flat_map(|directory| LOCAL_DIRECTORIES.map(|local| directory.join(local).join(program)))
            .find(|path| is_program(path))
    }

    fn hidden_local(&self, commands: &[CommandLine]) -> Option<MissingReason> {
        if self.local == LocalPrograms::Use {
            return None;
        }
        commands
            .iter()
            .filter(|command| !command.program.contains('/'))
            .find_map(|command| self.local_program(&command.program))
            .map(|program| MissingReason::OnlyInUntrustedWorkspace { program })
    }
}

fn is_program(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Rustup puts a proxy for every component on the `PATH`, whether or not the component is installed: a link to itself,
/// soft or hard.
fn is_rustup_proxy(program: &Path, name: &str) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    if name == RUSTUP {
        return false;
    }
    let target = std::fs::canonicalize(program).ok();
    if target.is_some_and(|target| target.file_name().is_some_and(|name| name == RUSTUP)) {
        return true;
    }
    let identity = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    identity(&program.with_file_name(RUSTUP)).is_some_and(|rustup| identity(program) == Some(rustup))
}
