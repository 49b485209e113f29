//! The entry point: what is known on this machine, and the resulting servers of a workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config::{self, ConfigError, ConfigHash, ConfigNote, Layer, Merged, Read, Trust};
use super::definition::{Origin, ServerDefinition};
use super::detect::LocalPrograms;
use super::environment::Environment;
use super::overview::Overview;
use super::selection::Selection;

/// The daemon's knowledge of the machine and the user.
#[derive(Clone, Debug)]
pub struct RegistrySettings {
    /// Used to find programs, and passed on to servers as far as they need it.
    pub environment: Environment,
    /// The user's configuration, which doesn't have to exist.
    pub user_configuration: Option<PathBuf>,
    /// Servers with an index of their own store it below this directory.
    pub data_directory: PathBuf,
}

/// All known servers. It keeps nothing between calls; callers that ask often keep a [`WorkspaceServers`] and compare
/// the [`Fingerprint`].
///
/// Everything here reads files, and may run a rustup proxy, on the caller's thread.
#[derive(Clone)]
pub struct Registry {
    settings: Arc<RegistrySettings>,
    trust: Arc<Trust>,
}

/// The servers of one workspace, as they were configured at one moment.
#[derive(Clone, Debug)]
pub struct WorkspaceServers {
    pub(super) settings: Arc<RegistrySettings>,
    pub(super) workspace: PathBuf,
    pub(super) definitions: Vec<ServerDefinition>,
    pub(super) prefer: BTreeMap<String, Vec<String>>,
    pub(super) notes: Vec<ConfigNote>,
    pub(super) local: LocalPrograms,
    fingerprint: Fingerprint,
}

/// Changes when a configuration file, or the trust in it, changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    user: Option<ConfigHash>,
    repository: ConfigHash,
    local: LocalPrograms,
}

/// Why a workspace can't be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot look at the workspace {}", path.display())]
pub struct WorkspaceError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

impl Registry {
    /// A registry of the built-in servers and those in the settings.
    pub fn new(settings: RegistrySettings, trust: Arc<Trust>) -> Self {
        Self {
            settings: Arc::new(settings),
            trust,
        }
    }

    /// The same servers, searched for and started with the caller's variables taking precedence over the daemon's.
    pub(crate) fn seen_from(&self, caller: &Environment) -> Self {
        let RegistrySettings {
            environment,
            user_configuration,
            data_directory,
        } = &*self.settings;
        let settings = RegistrySettings {
            environment: environment.with(caller),
            user_configuration: user_configuration.clone(),
            data_directory: data_directory.clone(),
        };
        Self::new(settings, Arc::clone(&self.trust))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.settings.environment.home()
    }

    pub fn workspace(&self, workspace: &Path) -> Result<WorkspaceServers, WorkspaceError> {
        let files = self.read(workspace)?;
        let mut notes = Vec::new();
        let mut layers = Vec::new();
        if let Some((path, read)) = files.user {
            take(Origin::User(path), read, &mut layers, &mut notes);
        }
        let (path, hash) = (files.repository_path, files.fingerprint.repository);
        let local = files.fingerprint.local;
        match (files.repository, local) {
            (Read::Content(_), LocalPrograms::Ignore) => notes.push(ConfigNote::Untrusted {
                path,
                hash,
                how_to_trust: how_to_trust(&files.workspace),
            }),
            (read, _) => take(Origin::Repository(path), read, &mut layers, &mut notes),
        }
        let merged = Merged::new(layers);
        notes.extend(merged.errors.into_iter().map(ConfigNote::Broken));
        Ok(WorkspaceServers {
            settings: Arc::clone(&self.settings),
            workspace: files.workspace,
            definitions: merged.definitions,
            prefer: merged.prefer,
            notes,
            local,
            fingerprint: files.fingerprint,
        })
    }

    /// To compare with a cached [`WorkspaceServers`]. Reads two small files.
    pub fn fingerprint(&self, workspace: &Path) -> Result<Fingerprint, WorkspaceError> {
        Ok(self.read(workspace)?.fingerprint)
    }

    /// The servers for a file: [`Registry::workspace`] and [`WorkspaceServers::servers_for`] in one.
    pub fn servers_for(&self, file: &Path, workspace: &Path) -> Result<Selection, WorkspaceError> {
        Ok(self.workspace(workspace)?.servers_for(file))
    }

    /// All servers: [`Registry::workspace`] and [`WorkspaceServers::overview`] in one.
    pub fn overview(&self, workspace: &Path) -> Result<Overview, WorkspaceError> {
        Ok(self.workspace(workspace)?.overview())
    }

    /// What the user trusts when they trust the current state of the workspace.
    pub fn hash_to_trust(&self, workspace: &Path) -> Result<ConfigHash, WorkspaceError> {
        Ok(self.read(workspace)?.fingerprint.repository)
    }

    fn read(&self, workspace: &Path) -> Result<Files, WorkspaceError> {
        let workspace = fs::canonicalize(workspace).map_err(|source| WorkspaceError {
            path: workspace.to_path_buf(),
            source,
        })?;
        let user = self.settings.user_configuration.as_ref();
        let user = user.map(|path| (path.clone(), config::read_user(path)));
        let (repository_path, repository) = config::read_repository(&workspace);
        let hash = hash_of(&repository_path, &repository);
        let local = match (&repository, (self.trust)(&hash)) {
            (Read::Absent | Read::Content(_), true) => LocalPrograms::Use,
            // A file that can't be read has no content that could have been trusted.
            (Read::Refused(_), _) | (_, false) => LocalPrograms::Ignore,
        };
        let fingerprint = Fingerprint {
            user: user.as_ref().map(|(path, read)| hash_of(path, read)),
            repository: hash,
            local,
        };
        Ok(Files {
            workspace,
            user,
            repository_path,
            repository,
            fingerprint,
        })
    }
}

impl WorkspaceServers {
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The canonical path of the workspace.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub fn notes(&self) -> &[ConfigNote] {
        &self.notes
    }

    /// Whether the workspace is trusted in its current state.
    pub fn local_programs(&self) -> LocalPrograms {
        self.local
    }

    pub fn definitions(&self) -> &[ServerDefinition] {
        &self.definitions
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

pub(super) fn how_to_trust(workspace: &Path) -> String {
    format!("tidelock lsp trust {}", shell_word(&workspace.to_string_lossy()))
}

/// Plain words stay as they are; the rest is quoted, so that the line can be pasted.
fn shell_word(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+@:".contains(character);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The content of the files at one moment. All decisions are based on this, never on a second read.
struct Files {
    workspace: PathBuf,
    user: Option<(PathBuf, Read)>,
    repository_path: PathBuf,
    repository: Read,
    fingerprint: Fingerprint,
}

fn hash_of(path: &Path, read: &Read) -> ConfigHash {
    match read {
        Read::Content(content) => ConfigHash::of(path, Some(content)),
        Read::Absent | Read::Refused(_) => ConfigHash::of(path, None),
    }
}

/// Adds a file as a layer, or notes why not.
fn take(origin: Origin, read: Read, layers: &mut Vec<Layer>, notes: &mut Vec<ConfigNote>) {
    let path = origin.path().unwrap_or(Path::new("")).to_path_buf();
    let content = match read {
        Read::Absent => return,
        Read::Refused(error) => return notes.push(ConfigNote::Broken(error)),
        Read::Content(content) => content,
    };
    let parsed = String::from_utf8(content)
        .map_err(|_| ConfigError::Unreadable {
            path: path.clone(),
            reason: "it is not UTF-8".to_owned(),
        })
        .and_then(|text| config::parse(&path, &text));
    match parsed {
        Ok(configuration) => layers.push(Layer {
            origin,
            configuration,
        }),
        Err(error) => notes.push(ConfigNote::Broken(error)),
    }
}
