//! Whether a server is here, and where.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::definition::{CommandLine, ServerDefinition};
use super::environment::Environment;
use super::version_probe::{self, Probed};

/// Where a workspace keeps programs of its own.
const LOCAL_DIRECTORIES: [&str; 3] = ["node_modules/.bin", ".venv/bin", "venv/bin"];
/// What rustup calls itself. Its proxies are links to it.
const RUSTUP: &str = "rustup";
/// A proxy answers in well under a second, unless the disk is asleep. If it takes longer it counts as not here.
const PROXY_ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Whether programs that belong to the workspace may be run. They are code of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalPrograms {
    Use,
    /// It is not: the machine's own programs are used.
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
    /// Absolute. A link is not followed, since shims go by the name they are called.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Known only where it had to be asked for.
    pub version: Option<String>,
    pub place: ProgramPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramPlace {
    Workspace,
    Machine,
}

/// A program that is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    pub install: String,
    pub why: MissingReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingReason {
    /// There is no program of any of its names.
    NotFound { programs: Vec<String> },
    /// The program is rustup's stand-in, and the toolchain lacks the component behind it.
    ComponentMissing { program: PathBuf },
    /// The workspace has it, but the workspace is not trusted.
    OnlyInUntrustedWorkspace {
        /// The program that is not run.
        program: PathBuf,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub environment: &'a Environment,
    pub root: &'a Path,
    /// Local programs are looked for from the root up to here.
    pub workspace: &'a Path,
    pub local: LocalPrograms,
}

impl Search<'_> {
    /// Looks for the first of a server's commands that is here: in the workspace if that is trusted, then on the
    /// `PATH`, then where programs usually are. Blocks: it looks at files and may run a rustup proxy.
    pub fn detect(&self, definition: &ServerDefinition) -> Detected {
        let mut why = None;
        for command in &definition.commands {
            for (program, place) in self.locate(&command.program) {
                let version = match self.version_if_proxy(&program, &command.program) {
                    Ok(version) => version,
                    Err(reason) => {
                        // Another one may stand behind it on the `PATH`.
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

    /// All programs of a name, or the one at a path, the better one first.
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

    /// A command with a slash is a path: from the workspace, or from the user's directory.
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

/// Rustup puts a stand-in for every component on the `PATH`, whether the component is there or not: a link to itself,
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
