//! A workspace and a store of bases in a directory of their own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use eventlog::BlobId;
use kernel::CancellationToken;
use plans::{BaseError, Bases, Entry, LinkTarget, MODE_MASK, Manifest, RelPath, Taken, WhyLeftOut};
use tempfile::TempDir;

/// A workspace, a store, and the cache of the workspace.
pub(crate) struct Site {
    pub(crate) directory: TempDir,
    pub(crate) bases: Bases,
}

impl Site {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("workspace")).unwrap();
        let bases = Bases::open(directory.path().join("plans/bases"), u64::MAX).unwrap();
        Self { directory, bases }
    }

    /// The same, with a repository of git in the workspace.
    pub(crate) fn with_git() -> Self {
        let site = Self::new();
        site.git(&["init", "--quiet"]);
        site
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("plans/bases")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.workspace().join(path)
    }

    /// Writes a file, and makes the directories that it is in.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// What is in the store that is no image: nothing but the clock, if nothing is under way.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let names = fs::read_dir(self.store()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.len() != 64 && name != "clock").collect()
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.path().join("plans/cache")
    }

    pub(crate) fn try_take(&self) -> Result<Taken, BaseError> {
        let scope = CancellationToken::new().scope();
        self.bases.take(&self.workspace(), &self.cache(), &scope)
    }

    /// Takes a base, and checks that the image is what the manifest says.
    pub(crate) fn take(&self) -> Taken {
        let taken = self.try_take().unwrap();
        assert_eq!(
            naive_walk(&taken.base.tree),
            *taken.base.manifest,
            "the image and its manifest"
        );
        assert_eq!(taken.base.id, taken.base.manifest.id());
        taken
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        git(&self.workspace(), arguments);
    }
}

/// Runs git as nobody in particular, with no settings of this machine.
pub(crate) fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_AUTHOR_NAME", "n"),
            ("GIT_AUTHOR_EMAIL", "n@example.org"),
            ("GIT_COMMITTER_NAME", "n"),
            ("GIT_COMMITTER_EMAIL", "n@example.org"),
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

pub(crate) fn path(text: &str) -> RelPath {
    text.parse().unwrap()
}

pub(crate) fn file(content: impl AsRef<[u8]>, mode: u32) -> Entry {
    Entry::File {
        hash: BlobId::from_bytes(*blake3::hash(content.as_ref()).as_bytes()),
        size: content.as_ref().len() as u64,
        mode,
    }
}

pub(crate) fn link(target: &[u8]) -> Entry {
    Entry::Symlink {
        target: LinkTarget(target.into()),
    }
}

/// Everything in a tree but `.git`, read one by one in the plainest way.
pub(crate) fn naive_walk(root: &Path) -> Manifest {
    let mut entries = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let at = entry.unwrap().path();
            if at == root.join(".git") {
                continue;
            }
            let found = fs::symlink_metadata(&at).unwrap();
            let entry = if found.is_dir() {
                left.push(at.clone());
                Entry::Directory
            } else if found.is_symlink() {
                link(fs::read_link(&at).unwrap().as_os_str().as_bytes())
            } else {
                file(fs::read(&at).unwrap(), found.permissions().mode() & MODE_MASK)
            };
            let relative = RelPath::from_path(at.strip_prefix(root).unwrap()).unwrap();
            entries.insert(relative, entry);
        }
    }
    Manifest::from_entries(entries)
}

/// The paths of a manifest as text, without directories.
pub(crate) fn files_of(manifest: &Manifest) -> Vec<String> {
    let files = manifest.iter().filter(|(_, entry)| !entry.is_directory());
    files.map(|(path, _)| path.to_string()).collect()
}

pub(crate) fn texts(paths: &[RelPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

pub(crate) fn left_out_of(taken: &Taken) -> Vec<(String, WhyLeftOut)> {
    let left_out = taken.left_out.iter();
    left_out.map(|left| (left.path.to_string(), left.why)).collect()
}

pub(crate) fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

/// Waits until a file that is written now would be trusted by a scan that begins then.
pub(crate) fn let_the_clock_of_files_move(site: &Site) {
    let probe = site.directory.path().join("probe");
    fs::write(&probe, "").unwrap();
    let begin = fs::metadata(&probe).unwrap().modified().unwrap();
    for _ in 0..10_000 {
        fs::write(&probe, "").unwrap();
        let now = fs::metadata(&probe).unwrap().modified().unwrap();
        if now.duration_since(begin).unwrap_or_default().as_millis() > 60 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the clock of files stands still");
}
