//! A private git directory: it looks like the user's, and nothing done with it affects the user's.
//!
//! Branches, index, configuration and hooks are copied. Objects are read from the user's repository as an alternate,
//! and new ones are written here. So commits made inside stay inside. A plan carries only files.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::fill::copy_file;
use super::pinned::REFS;
use super::repository::{Repository, is_absence};

/// The maximum number of files copied for branches, hooks and the like. A repository with more loose refs should be
/// packed (`git pack-refs --all`); until then, there is no git inside.
const MAX_FILES: usize = 20_000;
/// Files of a git directory that aren't needed inside.
const NEEDLESS: [&str; 2] = ["description", "COMMIT_EDITMSG"];
/// How often a reftable is copied again because git has rewritten it in the meantime.
const REFTABLE_TRIES: usize = 16;
/// How many object directories are followed. Git itself follows chains of five.
const MAX_ALTERNATES: usize = 32;
/// The directories of a work tree that belong to a git operation in progress.
const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
/// Directories that are too large to copy. Where overlays are available, they are overlaid.
pub(super) const LAYERED: [&str; 2] = ["modules", "lfs"];

/// Settings that apply inside, whatever the user has set.
///
/// The files of a base have the same mtimes as the workspace's, but other inodes and ctimes. With the first two
/// settings, git only compares the former and doesn't have to read every file again. The rest keeps git from starting
/// things by itself.
pub(super) const SETTINGS: [(&str, &str); 8] = [
    ("core.checkStat", "minimal"),
    ("core.trustctime", "false"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.bare", "false"),
    // These reflogs show which branches were created or moved inside.
    ("core.logAllRefUpdates", "true"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

pub(super) type NoGit = String;

/// The paths that users of a private git directory will see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) root: &'a Path,
    /// The objects of the user's repository.
    pub(super) objects: &'a Path,
}

/// Makes a private git directory. If that isn't possible, returns why.
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
        // Git makes the others when it needs them. When many plans are opened, each extra directory costs
        // time.
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

    /// Copies a reftable: the list of its files, and the files. A listed file may disappear at any time, because git
    /// has compacted several into one; then there is a new list.
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

    /// The files directly in the directory of a work tree: HEAD, the index, and those of a git operation in progress.
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

    /// Copies a directory recursively. Skips locks, samples, anything that isn't a file, and directories without
    /// anything else.
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
                // The refs of other sandboxes aren't anyone's branches.
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

    /// Copies a file, if it exists, with its mtime: git uses the index's mtime to decide which files it must read
    /// again.
    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
        let copied = match fs::read_link(from) {
            // Hooks are often links into the work tree, with relative paths that are the same inside.
            Ok(target) => symlink(target, to),
            Err(_) => copy_file(from, to).map(drop),
        };
        match copied {
            Err(error) if is_absence(&error) => Ok(()),
            copied => copied,
        }
    }
}

/// The alternates of an object directory. They may be relative to its location, and it will be seen at another one.
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

/// The line that names another object directory. Git uses it verbatim, unless it begins with a quote.
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

/// Copies a configuration and appends our settings, so that they win.
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
    // It may set the work tree, which would be the user's. The last value wins.
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
