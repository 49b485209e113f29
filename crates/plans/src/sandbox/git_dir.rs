//! A private git directory: it looks like the user's, and nothing that is done with it reaches the user's.
//!
//! Branches, index, configuration and hooks are copied. Objects are read from the user's repository, as from an alternate
//! one, and new ones are written here. So what is committed inside stays inside. What a plan carries is files.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::fill::copy_file;
use super::pinned::REFS;
use super::repository::{Repository, is_absence};

/// How many files of branches, hooks and the like are copied at most. A repository with more loose ones wants to be packed
/// (`git pack-refs --all`); until then there is no git inside.
const MAX_FILES: usize = 20_000;
/// Files of a git directory that nobody misses inside.
const NEEDLESS: [&str; 2] = ["description", "COMMIT_EDITMSG"];
/// How often a table of branches is copied again because git has rewritten it meanwhile.
const REFTABLE_TRIES: usize = 16;
/// How many directories of objects are followed. Git itself follows chains of five.
const MAX_ALTERNATES: usize = 32;
/// The directories of a work tree that say what git is in the middle of.
const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
/// Directories that are too large to be copied. Where layers can be had, they are layered.
pub(super) const LAYERED: [&str; 2] = ["modules", "lfs"];

/// What is in force inside, whatever the user has set.
///
/// The files of a base have the times of the workspace's, but other inodes and change times. With the first two settings
/// git looks at the former alone, and need not read every file again. The rest keeps git from starting things by itself.
pub(super) const SETTINGS: [(&str, &str); 8] = [
    ("core.checkStat", "minimal"),
    ("core.trustctime", "false"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.bare", "false"),
    // By these logs it is known which branches were made or moved inside.
    ("core.logAllRefUpdates", "true"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

pub(super) type NoGit = String;

/// Where things will be seen by those who use a private git directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) root: &'a Path,
    /// The objects of the user's repository.
    pub(super) objects: &'a Path,
}

/// Makes a private git directory. If there can be none, it says why.
pub(super) fn make(
    repository: &Repository,
    directory: &Path,
    seen: Seen<'_>,
) -> io::Result<Result<(), NoGit>> {
    if repository.has_reftable() && repository.own != repository.common {
        return Ok(Err(
            "there is no git inside: this is a linked work tree of a repository that keeps its branches in a reftable"
                .to_owned(),
        ));
    }
    let mut copy = Copying { left: MAX_FILES };
    match copy.all(repository, directory, seen) {
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => Ok(Err(format!(
            "the repository has more than {MAX_FILES} loose references; there is no git inside until `git pack-refs \
             --all` was run"
        ))),
        made => made.map(Ok),
    }
}

struct Copying {
    left: usize,
}

impl Copying {
    fn all(&mut self, repository: &Repository, to: &Path, seen: Seen<'_>) -> io::Result<()> {
        let Repository { own, common } = repository;
        // Git makes the others when it needs them. Where plans come and go, each directory more is felt.
        for directory in ["objects/info", "refs", "logs"] {
            fs::create_dir_all(to.join(directory))?;
        }
        let mut places = vec![seen.objects.to_owned()];
        places.extend(alternates_of(&common.join("objects")));
        let lines: Vec<u8> = places.iter().flat_map(|place| alternate(place)).collect();
        fs::write(to.join("objects/info/alternates"), lines)?;
        self.files_of(own, to)?;
        if own != common {
            for name in ["packed-refs", "shallow"] {
                self.file(&common.join(name), &to.join(name))?;
            }
        }
        for name in UNFINISHED {
            self.tree(&own.join(name), &to.join(name))?;
        }
        for name in ["refs", "hooks", "info"] {
            self.tree(&common.join(name), &to.join(name))?;
            if own != common {
                self.tree(&own.join(name), &to.join(name))?;
            }
        }
        self.file(&own.join("logs/HEAD"), &to.join("logs/HEAD"))?;
        let stash = common.join("logs/refs/stash");
        if stash.exists() {
            fs::create_dir_all(to.join("logs/refs"))?;
            self.file(&stash, &to.join("logs/refs/stash"))?;
        }
        if repository.has_reftable() {
            self.reftable(&common.join("reftable"), &to.join("reftable"))?;
        }
        configure(&common.join("config"), &to.join("config"), seen.root)?;
        if own.join("config.worktree").exists() {
            configure(
                &own.join("config.worktree"),
                &to.join("config.worktree"),
                seen.root,
            )?;
        }
        Ok(())
    }

    /// Copies a table of branches: the list of its files, and those. A file on the list may go at any time, because git has made
    /// one of several; then there is another list.
    fn reftable(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir_all(to)?;
        let list = |directory: &Path| directory.join("tables.list");
        for _ in 0..REFTABLE_TRIES {
            let names = fs::read(list(from))?;
            let mut lines = names.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let copied = lines.try_for_each(|name| {
                self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
                let name = OsStr::from_bytes(name);
                copy_file(&from.join(name), &to.join(name)).map(drop)
            });
            match copied {
                Ok(()) => return fs::write(list(to), names),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(
            "the table of branches is being rewritten all the time",
        ))
    }

    /// The files right in the directory of a work tree: HEAD, the index, and what git is in the middle of.
    fn files_of(&mut self, own: &Path, to: &Path) -> io::Result<()> {
        for item in fs::read_dir(own)? {
            let item = item?;
            let name = item.file_name();
            let is_elsewhere = ["config", "config.worktree", "commondir", "gitdir"]
                .iter()
                .chain(&NEEDLESS)
                .any(|other| name == *other);
            let is_lock = Path::new(&name)
                .extension()
                .is_some_and(|extension| extension == "lock");
            if item.file_type()?.is_file() && !is_elsewhere && !is_lock {
                self.file(&item.path(), &to.join(name))?;
            }
        }
        Ok(())
    }

    /// Copies a directory with what is below it. Locks and samples are left behind, and so is what is no file, and a directory
    /// with nothing else in it.
    fn tree(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let mut pending = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = pending.pop() {
            let items = match fs::read_dir(&from) {
                Ok(items) => items,
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(error),
            };
            for item in items {
                let item = item?;
                let (name, kind) = (item.file_name(), item.file_type()?);
                let extension = Path::new(&name).extension().unwrap_or_default();
                if extension == "lock" || extension == "sample" {
                    continue;
                }
                // Those of other sandboxes are nobody's branches.
                let is_pin = name == REFS && from.ends_with("refs");
                if is_pin {
                    continue;
                }
                if kind.is_dir() {
                    pending.push((item.path(), to.join(name)));
                } else {
                    fs::create_dir_all(&to)?;
                    self.file(&item.path(), &to.join(name))?;
                }
            }
        }
        Ok(())
    }

    /// Copies a file, if it is there, with its time: git decides by the time of the index which files it must read again.
    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
        let copied = match fs::read_link(from) {
            // Hooks often are links into the work tree, by relative ways that are the same inside.
            Ok(target) => symlink(target, to),
            Err(_) => copy_file(from, to).map(drop),
        };
        match copied {
            Err(error) if is_absence(&error) => Ok(()),
            copied => copied,
        }
    }
}

/// The directories that a directory of objects names in its turn. They may be relative to where it is, and it will be seen
/// elsewhere.
fn alternates_of(objects: &Path) -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![objects.to_owned()]);
    while let Some(objects) = pending.pop() {
        let lines = fs::read(objects.join("info/alternates")).unwrap_or_default();
        let lines = lines.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
            let place = objects.join(OsStr::from_bytes(line)).canonicalize();
            if let Ok(place) = place
                && !found.contains(&place)
                && found.len() < MAX_ALTERNATES
            {
                pending.push(place.clone());
                found.push(place);
            }
        }
    }
    found
}

/// The line that names another directory of objects. Git takes it as it stands, unless it begins with a quote.
fn alternate(objects: &Path) -> Vec<u8> {
    let path = objects.as_os_str().as_bytes();
    let mut line = if path.contains(&b'\n') {
        quoted(path)
    } else {
        path.to_vec()
    };
    line.push(b'\n');
    line
}

/// Copies a configuration and puts our settings behind it, where they win.
fn configure(from: &Path, to: &Path, root: &Path) -> io::Result<()> {
    let mut text = match fs::read(from) {
        Ok(text) => text,
        Err(error) if is_absence(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    let names_a_tree = text
        .windows(b"worktree".len())
        .any(|word| word.eq_ignore_ascii_case(b"worktree"));
    text.extend_from_slice(b"\n");
    for (name, value) in SETTINGS {
        let (section, key) = name.split_once('.').unwrap_or((name, ""));
        text.extend_from_slice(format!("[{section}]\n\t{key} = {value}\n").as_bytes());
    }
    // It may say where the work tree is, which would be the user's. What comes last counts.
    if names_a_tree {
        text.extend_from_slice(b"[core]\n\tworktree = ");
        text.extend_from_slice(&quoted(root.as_os_str().as_bytes()));
        text.push(b'\n');
    }
    fs::write(to, text)
}

fn quoted(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}
