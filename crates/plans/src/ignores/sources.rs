//! The rules that don't come from the tree itself.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use gix_ignore::glob::pattern::Case;
use gix_ignore::glob::search::Pattern;
use gix_ignore::glob::search::pattern::List;
use gix_ignore::search::Ignore;

use super::RULES_LIMIT_BYTES;
use super::git_settings::GitSettings;
use super::include::Include;
use super::level::{IgnoreMatch, Level};
use super::repository::Repository;
use super::seen::{SeenIndex, SeenSources};
use super::tracked::{Tracked, index_key};
use crate::RelPath;
use crate::stat_cache::{FileTime, StatKey};

pub(super) type RuleList = List<Ignore>;

/// Everything that decides what is ignored in a workspace, except its `.gitignore` files.
pub struct IgnoreSources {
    /// From weakest to strongest: the user's, the repository's, and those of directories above the workspace.
    pub(super) lists: Vec<RuleList>,
    /// The prefix that turns a workspace path into a repository path: empty, or ending with a slash.
    pub(super) prefix: Vec<u8>,
    pub(super) include: Option<Include>,
    pub(super) case: Case,
    repository: Option<Repository>,
    /// Read when something is ignored for the first time, together with the index's stat data from before the read.
    tracked: OnceLock<Result<(Option<StatKey>, Tracked), String>>,
}

impl IgnoreSources {
    /// The current rules for a workspace.
    pub fn of_workspace(workspace: &Path) -> io::Result<Self> {
        let workspace = workspace.canonicalize()?;
        let include = read_rules(&workspace.join(".worktreeinclude"))?.map(|bytes| Include {
            list: rule_list(&bytes, b""),
        });
        let plain = |include| Self {
            lists: Vec::new(),
            prefix: Vec::new(),
            include,
            case: Case::Sensitive,
            repository: None,
            tracked: OnceLock::new(),
        };
        let Some(repository) = Repository::find(&workspace) else {
            return Ok(plain(include));
        };
        let settings = GitSettings::of(&repository.root);
        let mut lists = Vec::new();
        let exclude = repository.common_directory.join("info/exclude");
        for file in settings.excludes_file.iter().chain([&exclude]) {
            lists.extend(read_rules(file)?.map(|bytes| rule_list(&bytes, b"")));
        }
        let of_repository = Self {
            lists,
            case: settings.case,
            repository: Some(repository),
            ..plain(None)
        };
        match of_repository.narrowed(&workspace)? {
            Some(narrowed) => Ok(Self { include, ..narrowed }),
            None => Ok(plain(include)),
        }
    }

    /// A repository's rules for a workspace at or below its root. `None` if the repository ignores the workspace: then
    /// its rules don't apply.
    fn narrowed(self, workspace: &Path) -> io::Result<Option<Self>> {
        let Some(repository) = &self.repository else {
            return Ok(Some(self));
        };
        let root = repository.root.clone();
        let Some(inside) = workspace
            .strip_prefix(&root)
            .ok()
            .filter(|path| *path != Path::new(""))
        else {
            return Ok(Some(self));
        };
        let inside = RelPath::from_path(inside).map_err(io::Error::other)?;
        let mut lists = Vec::new();
        let mut level = Level::root(read_rules(&root.join(".gitignore"))?.as_deref(), &self);
        for directory in inside.ancestors().chain([inside.clone()]) {
            let ignore_match = level.judge(&self, &directory, true)?;
            if ignore_match == IgnoreMatch::Ignored {
                return Ok(None);
            }
            let rules = read_rules(&root.join(directory.as_path()).join(".gitignore"))?;
            lists.extend(level.list().cloned());
            level = Level::below(&level, &directory, ignore_match, rules.as_deref(), &self);
        }
        Ok(Some(Self {
            lists: self.lists.into_iter().chain(lists).collect(),
            prefix: [inside.as_path().as_os_str().as_bytes(), b"/"].concat(),
            ..self
        }))
    }

    /// What git tracks; `None` if there is no repository.
    pub(super) fn tracked(&self) -> io::Result<Option<&Tracked>> {
        let Some(repository) = &self.repository else {
            return Ok(None);
        };
        let read = self.tracked.get_or_init(|| {
            let read = index_key(repository).and_then(|key| Ok((key, Tracked::read(repository)?)));
            read.map_err(|error| error.to_string())
        });
        read.as_ref()
            .map(|(_, tracked)| Some(tracked))
            .map_err(|why| io::Error::other(why.clone()))
    }

    /// The sources that a scan used that began at this moment. `None` if we can't tell later whether they have
    /// changed.
    pub(crate) fn seen(mut self, began: FileTime) -> Option<SeenSources> {
        let index = match self.tracked.take() {
            None => SeenIndex::Unseen,
            Some(Ok((key, _))) if key.is_none_or(|key| key.is_settled_by(began)) => SeenIndex::Seen(key),
            Some(_) => return None,
        };
        Some(SeenSources { sources: self, index })
    }

    /// The current stat data of the index; `None` if there is no index.
    pub(super) fn index_now(&self) -> io::Result<Option<StatKey>> {
        self.repository.as_ref().map_or(Ok(None), index_key)
    }

    /// Whether both have the same rules. Ignores what git tracks.
    pub(super) fn says_the_same_as(&self, other: &Self) -> bool {
        self.case == other.case
            && self.prefix == other.prefix
            && self.lists == other.lists
            && self.include == other.include
            && self.repository == other.repository
    }
}

impl fmt::Debug for IgnoreSources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IgnoreSources")
            .field("repository", &self.repository)
            .field("prefix", &String::from_utf8_lossy(&self.prefix))
            .finish_non_exhaustive()
    }
}

/// Patterns that apply below a directory of the repository, which is empty or ends with a slash.
pub(super) fn rule_list(bytes: &[u8], directory: &[u8]) -> RuleList {
    let parse = Ignore {
        support_precious: false,
    };
    List {
        patterns: parse.bytes_to_patterns(bytes, Path::new("")),
        source: None,
        base: (!directory.is_empty()).then(|| directory.into()),
    }
}

/// The bytes of a rules file; `None` if it doesn't exist or isn't a file.
fn read_rules(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                // Git ignores rules files that it may not read.
                io::ErrorKind::PermissionDenied => Ok(None),
                _ => Err(error),
            };
        }
    };
    bounded_rules(opened)
}

/// The bytes of an open rules file.
pub(crate) fn bounded_rules(file: File) -> io::Result<Option<Vec<u8>>> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() > RULES_LIMIT_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(RULES_LIMIT_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
