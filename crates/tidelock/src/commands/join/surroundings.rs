//! The machine as `join` sees it: where configurations are, which programs are installed, and which of them is this
//! one. Read-only.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::clients::{Base, Client, Passes, Program, UserFile};
use super::error::JoinError;
use crate::cli::{JoinScope, JoinWay};

const OWN_VARIABLES: [&str; 2] = ["TIDELOCK_HOME", "TIDELOCK_TOKEN_FILE"];
/// Variables that decide which daemon is meant if the first of those does not. Without them a client would look for
/// another daemon.
const SHARED_VARIABLES: [&str; 3] = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];

type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

pub(crate) struct Surroundings<'a> {
    pub(super) variable: Variable<'a>,
    pub(super) project: PathBuf,
    pub(super) executable: PathBuf,
}

impl<'a> Surroundings<'a> {
    pub(crate) fn look(variable: Variable<'a>) -> Result<Self, JoinError> {
        let directory = std::env::current_dir().map_err(JoinError::Surroundings)?;
        let executable = std::env::current_exe().map_err(JoinError::Surroundings)?;
        Ok(Surroundings {
            variable,
            project: project_root(&directory).to_owned(),
            executable,
        })
    }

    /// The file for a client's entry; `None` if the client has none for that scope.
    pub(super) fn file(&self, client: &Client, scope: JoinScope) -> Result<Option<PathBuf>, JoinError> {
        let candidates: Vec<PathBuf> = match scope {
            JoinScope::User => {
                let paths: Result<_, _> = client.user.iter().map(|place| self.user_file(place)).collect();
                paths?
            }
            JoinScope::Project => client
                .project
                .iter()
                .map(|path| self.project.join(path))
                .collect(),
        };
        let there = candidates.iter().position(|path| path.symlink_metadata().is_ok());
        Ok(candidates.into_iter().nth(there.unwrap_or(0)))
    }

    fn user_file(&self, place: &UserFile) -> Result<PathBuf, JoinError> {
        let home = || self.directory("HOME").ok_or(JoinError::NoHome);
        let base = match place.base {
            Base::Home => home()?,
            Base::Config => match self.directory("XDG_CONFIG_HOME") {
                Some(directory) => directory,
                None => home()?.join(".config"),
            },
            Base::Variable(name, otherwise) => match self.directory(name) {
                Some(directory) => directory,
                None => home()?.join(otherwise),
            },
        };
        Ok(base.join(place.path))
    }

    fn directory(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    }

    pub(crate) fn trace(&self, client: &Client) -> Option<PathBuf> {
        let program = client.programs.iter().find_map(|program| self.on_path(program));
        let directory = || {
            let file = self.file(client, JoinScope::User).ok()??;
            // The home directory itself says nothing about a client.
            let directory = file
                .parent()
                .filter(|directory| Some(*directory) != self.directory("HOME").as_deref());
            directory
                .map_or(Some(file.clone()), |directory| Some(directory.to_owned()))
                .filter(|path| path.exists())
        };
        program.or_else(directory)
    }

    pub(crate) fn program_of(&self, command: &str) -> Option<PathBuf> {
        let path = Path::new(command);
        if path.components().count() > 1 {
            return is_executable(path).then(|| path.to_owned());
        }
        self.on_path(command)
    }

    fn on_path(&self, program: &str) -> Option<PathBuf> {
        let path = (self.variable)("PATH")?;
        let mut directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
        directories.find_map(|directory| Some(directory.join(program)).filter(|path| is_executable(path)))
    }

    pub(crate) fn is_this(&self, program: &Path) -> bool {
        matches!((program.canonicalize(), self.executable.canonicalize()), (Ok(one), Ok(other)) if one == other)
    }

    pub(super) fn program(&self, client: &Client, scope: JoinScope, way: JoinWay) -> Program {
        let found = self.on_path("tidelock").filter(|found| self.is_this(found));
        let command = match found {
            Some(_) => "tidelock".to_owned(),
            None => self.executable.display().to_string(),
        };
        let arguments: &[&str] = match way {
            JoinWay::Mcp | JoinWay::Http => &["mcp"],
            JoinWay::McpAllowed => &["mcp", "--allow-apply"],
            JoinWay::Acp => &["acp"],
        };
        let set = |names: &[&str]| -> Vec<(String, String)> {
            let value = |name: &&str| Some(((*name).to_owned(), (self.variable)(name)?.into_string().ok()?));
            names
                .iter()
                .filter_map(value)
                .filter(|(_, value)| !value.is_empty())
                .collect()
        };
        let mut environment = set(&OWN_VARIABLES);
        let mut passed = Vec::new();
        let has_home = environment.iter().any(|(name, _)| name == OWN_VARIABLES[0]);
        match (has_home, client.passes) {
            (true, _) | (false, Passes::Everything) => {}
            (false, Passes::Named) => passed = SHARED_VARIABLES.map(str::to_owned).to_vec(),
            (false, Passes::Unsure) => environment.extend(set(&SHARED_VARIABLES)),
        }
        if scope == JoinScope::Project {
            // Others read that file, and have their own homes.
            environment.clear();
        }
        Program {
            command,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            environment,
            passed,
        }
    }
}

/// The repository that contains a directory, or the directory itself.
fn project_root(directory: &Path) -> &Path {
    let is_root = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
    directory.ancestors().find(is_root).unwrap_or(directory)
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::clients::{CLIENTS, of};
    use super::*;
    use crate::cli::JoinClient;

    fn with<T>(variables: &[(&str, &str)], look: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        look(&Surroundings {
            variable: &variable,
            project: PathBuf::from("/project"),
            executable: PathBuf::from("/opt/tidelock"),
        })
    }

    #[test]
    fn every_file_has_its_place() {
        let mut said = String::new();
        let usual: &[(&str, &str)] = &[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")];
        let moved: &[(&str, &str)] = &[
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/c"),
            ("CODEX_HOME", "/x"),
            ("CLAUDE_CONFIG_DIR", "/y"),
        ];
        for client in CLIENTS {
            for (variables, scope) in [
                (usual, JoinScope::User),
                (moved, JoinScope::User),
                (usual, JoinScope::Project),
            ] {
                let file = with(variables, |surroundings| {
                    surroundings.file(client, scope).unwrap()
                });
                said.push_str(&format!("{} {scope:?}: {file:?}\n", client.word));
            }
            assert!(matches!(
                with(&[], |s| s.file(client, JoinScope::User)),
                Err(JoinError::NoHome)
            ));
        }
        insta::assert_snapshot!(said);
    }

    #[test]
    fn a_client_is_told_where_our_home_is_if_it_would_not_know() {
        let usual: &[(&str, &str)] = &[("XDG_RUNTIME_DIR", "/run/me")];
        let own: &[(&str, &str)] = &[("XDG_RUNTIME_DIR", "/run/me"), ("TIDELOCK_HOME", "/t")];
        let names = SHARED_VARIABLES.map(str::to_owned).to_vec();
        let (user, project) = (JoinScope::User, JoinScope::Project);
        for (client, variables, scope, environment, passed) in [
            (JoinClient::Claude, usual, user, vec![], vec![]),
            (
                JoinClient::Claude,
                own,
                user,
                vec![("TIDELOCK_HOME", "/t")],
                vec![],
            ),
            (JoinClient::Claude, own, project, vec![], vec![]),
            (JoinClient::Codex, usual, user, vec![], names),
            (
                JoinClient::Codex,
                own,
                user,
                vec![("TIDELOCK_HOME", "/t")],
                vec![],
            ),
            (
                JoinClient::Cursor,
                usual,
                user,
                vec![("XDG_RUNTIME_DIR", "/run/me")],
                vec![],
            ),
        ] {
            let found = with(variables, |s| {
                s.program(of(client).unwrap(), scope, JoinWay::McpAllowed)
            });
            let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            let expected = Program {
                command: "/opt/tidelock".to_owned(),
                arguments: vec!["mcp".to_owned(), "--allow-apply".to_owned()],
                environment: environment.into_iter().map(pair).collect(),
                passed,
            };
            assert_eq!(found, expected, "{client:?} {variables:?}");
        }
    }

    #[test]
    fn a_project_is_the_repository() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(project_root(&deep), deep);
        fs::write(directory.path().join("a/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(project_root(&deep), directory.path().join("a"));
    }
}
