//! Which servers a file gets, and how each is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::adjust;
use super::config::ConfigNote;
use super::definition::{
    Applies, CommandSpec, DATA_PLACEHOLDER, Enablement, LaunchSpec, Origin, Readiness, Role,
    ServerDefinition, ServerLimits, Transport,
};
use super::detect::{
    Detected, FoundProgram, LocalPrograms, MissingProgram, MissingReason, ProgramPlace, Search,
};
use super::languages;
use super::registry::{WorkspaceServers, how_to_trust};
use super::roots::{self, Bounds, FoundBy, Root};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    pub primary: Option<Chosen>,
    pub supplements: Vec<Chosen>,
    /// Servers that would be used but aren't installed: the primary ones if no primary server is installed,
    /// and those that somebody configured explicitly.
    pub missing: Vec<MissingServer>,
    pub notes: Vec<ConfigNote>,
}

/// A server, with everything needed to start it for one root.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub name: Arc<str>,
    pub root: Arc<Path>,
    pub role: Role,
    /// The file's language, as this server calls it.
    pub language_id: Arc<str>,
    pub launch: LaunchSpec,
    /// Sent with `initialize`.
    pub initialization_options: Option<Value>,
    /// Answers `workspace/configuration`, by section.
    pub settings: Option<Value>,
    pub readiness: Readiness,
    pub limits: ServerLimits,
}

/// A server that isn't installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingServer {
    pub name: Arc<str>,
    pub program: MissingProgram,
}

struct Candidate<'a> {
    definition: &'a ServerDefinition,
    language: Arc<str>,
    rank: (usize, u8, usize),
}

impl WorkspaceServers {
    /// Chooses the servers for a file, which doesn't have to exist yet. Blocks.
    pub fn servers_for(&self, file: &Path) -> Selection {
        let mut selection = Selection {
            notes: self.notes.clone(),
            ..Selection::default()
        };
        let mut candidates = self.candidates(file);
        candidates.sort_by_key(|candidate| candidate.rank);
        let mut passed_over = Vec::new();
        for candidate in candidates {
            let definition = candidate.definition;
            let is_primary = definition.role == Role::Primary;
            if is_primary && selection.primary.is_some() {
                continue;
            }
            let root = match self.root_for(definition, file) {
                Ok(Some(root)) => root,
                Ok(None) => continue,
                Err(reason) => {
                    selection.notes.push(ConfigNote::NoRoot {
                        server: definition.name.to_string(),
                        reason,
                    });
                    continue;
                }
            };
            match self.choose(definition, candidate.language, root) {
                Ok(chosen) if is_primary => selection.primary = Some(chosen),
                Ok(chosen) => selection.supplements.push(chosen),
                Err(program) => {
                    self.note_local_program(definition, &program, &mut selection.notes);
                    let missing = MissingServer {
                        name: Arc::clone(&definition.name),
                        program,
                    };
                    if definition.command_origin != Origin::BuiltIn {
                        selection.missing.push(missing);
                    } else if is_primary {
                        passed_over.push(missing);
                    }
                }
            }
        }
        if selection.primary.is_none() {
            selection.missing.append(&mut passed_over);
        }
        selection
    }

    fn candidates(&self, file: &Path) -> Vec<Candidate<'_>> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let script = languages::of_script(file);
        let enabled = self.definitions.iter().enumerate();
        enabled
            .filter(|(_, definition)| definition.enablement == Enablement::Enabled)
            .filter_map(|(position, definition)| {
                let by_script = || {
                    script
                        .filter(|language| definition.serves(language))
                        .map(Arc::from)
                };
                let language = definition.language_of(&name).cloned().or_else(by_script)?;
                Some(Candidate {
                    definition,
                    rank: self.rank(position, definition, &language),
                    language,
                })
            })
            .collect()
    }

    /// First the preferred servers, then those with a configured command, then our own order.
    fn rank(&self, position: usize, definition: &ServerDefinition, language: &str) -> (usize, u8, usize) {
        let preferred = self.prefer.get(language).map_or(&[][..], Vec::as_slice);
        let asked_for = preferred.iter().position(|name| **name == *definition.name);
        let given = match definition.command_origin {
            Origin::Repository(_) => 0,
            Origin::User(_) => 1,
            Origin::BuiltIn => 2,
        };
        (asked_for.unwrap_or(preferred.len()), given, position)
    }

    /// The root, or `None` if the server isn't relevant there.
    fn root_for(&self, definition: &ServerDefinition, file: &Path) -> Result<Option<Root>, String> {
        let home = self.settings.environment.home();
        let bounds = Bounds {
            workspace: Some(&self.workspace),
            home: home.as_deref(),
        };
        let root = roots::find(&definition.roots, file, bounds).map_err(|error| error.to_string())?;
        let is_marked = matches!(root.found_by, FoundBy::Marker(_) | FoundBy::Configuration);
        let is_trusted = self.local == LocalPrograms::Use;
        let applies = match definition.applies {
            Applies::Always => true,
            Applies::WithMarker => is_marked,
            Applies::WithMarkerAndTrust => is_marked && is_trusted,
        };
        Ok(applies.then_some(root))
    }

    pub(super) fn detect(&self, definition: &ServerDefinition, root: &Path) -> Detected {
        let search = Search {
            environment: &self.settings.environment,
            root,
            workspace: &self.workspace,
            local: self.local,
        };
        search.detect(definition)
    }

    fn choose(
        &self,
        definition: &ServerDefinition,
        language_id: Arc<str>,
        root: Root,
    ) -> Result<Chosen, MissingProgram> {
        let root = root.path;
        let found = match definition.transport {
            Transport::Tcp(_) => None,
            Transport::Stdio | Transport::TcpSpawned(_) => match self.detect(definition, &root) {
                Detected::Found(found) => Some(found),
                Detected::Missing(missing) => return Err(missing),
            },
        };
        let options = adjust::options(definition, &root, &self.workspace, found.as_ref(), self.local);
        let command = found.map(|found| self.command(definition, &root, found));
        let launch = match (definition.transport, command) {
            (Transport::Stdio, Some(command)) => LaunchSpec::Stdio(command),
            (Transport::TcpSpawned(address), Some(command)) => LaunchSpec::TcpSpawned { command, address },
            // Without a command, somebody else runs the server.
            (Transport::Tcp(address) | Transport::TcpSpawned(address), _) => LaunchSpec::Tcp(address),
            (Transport::Stdio, None) => {
                return Err(MissingProgram {
                    install: definition.install.clone(),
                    why: MissingReason::NotFound { programs: Vec::new() },
                });
            }
        };
        Ok(Chosen {
            name: Arc::clone(&definition.name),
            root,
            role: definition.role,
            language_id,
            launch,
            initialization_options: options.initialization,
            settings: options.settings,
            readiness: definition.readiness,
            limits: definition.limits.clone(),
        })
    }

    fn command(&self, definition: &ServerDefinition, root: &Path, found: FoundProgram) -> CommandSpec {
        let data = self.data_directory(definition, root);
        let mut needed_directories = Vec::new();
        let arguments = found.arguments.iter().map(|argument| match argument.to_str() {
            Some(text) if text.contains(DATA_PLACEHOLDER) => {
                needed_directories.push(data.clone());
                text.replace(DATA_PLACEHOLDER, &data.to_string_lossy()).into()
            }
            _ => argument.clone(),
        });
        CommandSpec {
            arguments: arguments.collect(),
            environment: self.environment(definition, &found),
            program: found.program,
            directory: root.to_path_buf(),
            needed_directories,
        }
    }

    /// One directory per server and root. It stays the same after a restart, so that the index is still warm.
    fn data_directory(&self, definition: &ServerDefinition, root: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let root = blake3::hash(root.as_os_str().as_bytes()).to_hex();
        self.settings
            .data_directory
            .join(&*definition.name)
            .join(&root.as_str()[..16])
    }

    /// The passed and set variables, and a `PATH` on which the program finds its neighbours.
    fn environment(
        &self,
        definition: &ServerDefinition,
        found: &FoundProgram,
    ) -> BTreeMap<OsString, OsString> {
        let daemon = &self.settings.environment;
        let names = definition.passed_variables.iter().map(String::as_str);
        let mut environment = daemon.select(names);
        let mut path = daemon.path();
        if let Some(directory) = found.program.parent()
            && !path.iter().any(|known| known == directory)
        {
            let at = match found.place {
                ProgramPlace::Workspace => 0,
                ProgramPlace::Machine => path.len(),
            };
            path.insert(at, directory.to_path_buf());
        }
        if let Ok(path) = std::env::join_paths(path) {
            environment.insert("PATH".into(), path);
        }
        let set = definition.environment.iter();
        environment.extend(set.map(|(name, value)| (name.into(), value.into())));
        environment
    }

    fn note_local_program(
        &self,
        definition: &ServerDefinition,
        missing: &MissingProgram,
        notes: &mut Vec<ConfigNote>,
    ) {
        if let MissingReason::OnlyInUntrustedWorkspace { program } = &missing.why {
            notes.push(ConfigNote::LocalProgramNotUsed {
                server: definition.name.to_string(),
                program: program.clone(),
                how_to_trust: how_to_trust(&self.workspace),
            });
        }
    }
}
