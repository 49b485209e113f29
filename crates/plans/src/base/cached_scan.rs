//! A cached scan: as long as nothing has changed since, the next base is the same and no file has to be checked.
//!
//! A tripwire covers every directory that the scan read, and each was covered before it was read. So while the tripwire
//! is intact, the scan matches what a new one would find, as far as the kernel reports changes. What the kernel doesn't
//! report is checked here: git's rules outside the tree, mounts, another directory at the same path, and files with a
//! second name. Where that isn't enough (network file systems, too many directories), no scan is cached and each base
//! is taken by checking every file.
//!
//! Two kinds of changes are seen late: a write through a memory mapping, which shows up when the file is closed; and a
//! write through a hard link created since the scan, which shows up when the scan is too old to be used. A plan then
//! begins with the file's earlier content, as if it had been opened earlier; an apply checks the file itself.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use watch::Tripwire;

use super::error::BaseError;
use super::left_out::{Ignored, LeftOut};
use super::store::Store;
use super::take::Taken;
use crate::ignores::SeenSources;
use crate::scan::Scan;
use crate::stat_cache::{FileTime, StatKey};
use crate::{IgnoreSources, Manifest, ManifestId, RelPath};

/// How many files with a second name are checked before a cached scan is used. With more than that, no scan is
/// cached.
const LINKED_LIMIT: usize = 1000;

#[derive(Debug)]
pub(crate) struct CachedScan {
    tripwire: Tripwire,
    rest: Uncovered,
    /// Doesn't hold the image: if it isn't needed it may be collected, and is made again.
    id: ManifestId,
    /// Held so that opening this base doesn't have to read the manifest again.
    _manifest: Arc<Manifest>,
    ignored: Ignored,
    left_out: Vec<LeftOut>,
}

/// What a tripwire doesn't cover, as the scan saw it.
#[derive(Debug)]
pub(super) struct Uncovered {
    sources: SeenSources,
    /// The directory that was scanned, by device and inode.
    root: (u64, u64),
    /// Files that can be changed under another name.
    linked: Vec<(RelPath, StatKey)>,
}

impl Uncovered {
    /// What has to be checked later; `None` if checking wouldn't be enough.
    pub(super) fn of(
        workspace: &Path,
        found: &mut Scan,
        sources: IgnoreSources,
        began: FileTime,
    ) -> Option<Self> {
        let linked = std::mem::take(&mut found.linked);
        let is_sure = |(_, key): &(RelPath, StatKey)| key.is_settled_by(began);
        if !found.is_covered || linked.len() > LINKED_LIMIT || !linked.iter().all(is_sure) {
            return None;
        }
        let looked = || -> io::Result<Option<Self>> {
            if has_mounts(workspace)? {
                return Ok(None);
            }
            let root = rustix::fs::fstat(&found.root)?;
            Ok(sources.seen(began).map(|sources| Self {
                sources,
                root: (root.st_dev, root.st_ino),
                linked,
            }))
        };
        looked().unwrap_or_else(|error| {
            tracing::debug!(%error, "the scan of a workspace is not kept");
            None
        })
    }

    fn is_as_it_was(&self, workspace: &Path) -> io::Result<bool> {
        let root = rustix::fs::stat(workspace)?;
        if (root.st_dev, root.st_ino) != self.root || has_mounts(workspace)? {
            return Ok(false);
        }
        for (path, key) in &self.linked {
            match rustix::fs::statat(CWD, workspace.join(path.as_path()), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if StatKey::of(&stat) == *key => {}
                Ok(_) | Err(Errno::NOENT) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.sources.are_current(workspace)
    }
}

impl CachedScan {
    pub(super) fn of(tripwire: Tripwire, rest: Uncovered, taken: &Taken) -> Self {
        Self {
            tripwire,
            rest,
            id: taken.base.id,
            _manifest: Arc::clone(&taken.base.manifest),
            ignored: taken.ignored.clone(),
            left_out: taken.left_out.clone(),
        }
    }

    /// The base that a new scan would find. `None` if something has changed or the image was removed.
    pub(super) fn taken(&self, store: &Store, workspace: &Path) -> Result<Option<Taken>, BaseError> {
        let looked = || Ok(self.tripwire.is_intact()? && self.rest.is_as_it_was(workspace)?);
        let is_current = looked().unwrap_or_else(|error: io::Error| {
            // A new scan hits the same error and reports it to the caller.
            tracing::debug!(%error, "a kept scan is not used");
            false
        });
        if !is_current {
            return Ok(None);
        }
        let Some(pin) = store.pin(self.id)? else {
            return Ok(None);
        };
        Ok(store.hold(pin)?.map(|base| Taken {
            base,
            ignored: self.ignored.clone(),
            left_out: self.left_out.clone(),
            files_read: 0,
        }))
    }
}

/// Whether something is mounted below a directory. The kernel doesn't notify us when that changes.
fn has_mounts(directory: &Path) -> io::Result<bool> {
    let mounts = fs::read("/proc/self/mountinfo")?;
    let below = [directory.as_os_str().as_bytes(), b"/"].concat();
    let mut points = mounts
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    Ok(points.any(|point| unescaped(point).starts_with(&below)))
}

/// A path from that table, which writes spaces and the like as three octal digits.
fn unescaped(point: &[u8]) -> Vec<u8> {
    let (mut path, mut rest) = (Vec::with_capacity(point.len()), point);
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    path
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::process::Command;

    use kernel::{CancellationToken, Scope};

    use super::*;
    use crate::base::{BaseSource, Bases, Retaken};

    /// A workspace, and a store to take bases of it.
    struct Site {
        directory: tempfile::TempDir,
        bases: Bases,
        scope: Scope,
        kept: Option<CachedScan>,
    }

    impl Site {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let bases = Bases::open(directory.path().join("plans/bases"), u64::MAX).unwrap();
            let site = Self {
                directory,
                bases,
                scope: CancellationToken::new().scope(),
                kept: None,
            };
            for path in ["src/deep", "target/debug", "nested/.git"] {
                fs::create_dir_all(site.at(path)).unwrap();
            }
            for path in [
                "a",
                "src/b",
                "src/deep/c",
                "target/debug/d",
                "ignored.log",
                "nested/e",
            ] {
                fs::write(site.at(path), path).unwrap();
            }
            fs::write(site.at("../outside"), "outside").unwrap();
            fs::hard_link(site.at("../outside"), site.at("src/linked")).unwrap();
            fs::write(site.at(".gitignore"), "target\n*.log\n").unwrap();
            site.git(&["init", "--quiet"]);
            site.git(&["add", "a", "src"]);
            site.rest();
            site
        }

        fn at(&self, path: &str) -> PathBuf {
            self.directory.path().join("workspace").join(path)
        }

        fn git(&self, arguments: &[&str]) {
            let ran = Command::new("git")
                .args(arguments)
                .current_dir(self.at(""))
                .output();
            assert!(ran.unwrap().status.success(), "{arguments:?}");
        }

        /// Waits until everything written so far is older than a tick of the file system's clock.
        fn rest(&self) {
            let changed = |path: &str| FileTime::changed(&rustix::fs::stat(self.at(path)).unwrap());
            let written = changed("src/linked").max(changed(".git/index"));
            while self.bases.store.file_clock().unwrap().minus_tick(false) <= written {}
        }

        /// Takes a base with the cached scan and compares it with one taken without.
        fn take(&mut self, name: &str) -> BaseSource {
            let (workspace, kept) = (self.at("").canonicalize().unwrap(), self.kept.take());
            let cache = self.directory.path().join("cache");
            let Retaken { taken, kept, look } = self
                .bases
                .take_again(&workspace, &cache, kept, &self.scope)
                .unwrap();
            self.kept = kept;
            let fresh = tempfile::tempdir().unwrap();
            let bases = Bases::open(fresh.path().join("plans/bases"), u64::MAX).unwrap();
            let whole = bases
                .take(&workspace, &fresh.path().join("cache"), &self.scope)
                .unwrap();
            assert_eq!(
                (&taken.base.manifest, &taken.ignored, &taken.left_out),
                (&whole.base.manifest, &whole.ignored, &whole.left_out),
                "{name}"
            );
            look
        }
    }

    #[test]
    fn a_kept_scan_is_used_until_something_changes_and_every_change_is_seen() {
        type Change = fn(&Site);
        let changes: [(&str, Change); 22] = [
            ("write", |site| fs::write(site.at("src/deep/c"), "new").unwrap()),
            ("write of the same length", |site| {
                fs::write(site.at("a"), "b").unwrap()
            }),
            ("create", |site| fs::write(site.at("src/new"), "").unwrap()),
            ("remove", |site| fs::remove_file(site.at("src/b")).unwrap()),
            ("rename", |site| {
                fs::rename(site.at("a"), site.at("src/a")).unwrap()
            }),
            ("mode", |site| {
                fs::set_permissions(site.at("a"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("new directory", |site| {
                fs::create_dir(site.at("src/deep/new")).unwrap()
            }),
            ("removed directory", |site| {
                fs::remove_dir_all(site.at("src/deep")).unwrap()
            }),
            ("moved directory", |site| {
                fs::rename(site.at("src/deep"), site.at("deep")).unwrap()
            }),
            ("symlink", |site| symlink("a", site.at("link")).unwrap()),
            ("through another name", |site| {
                fs::write(site.at("../outside"), "changed").unwrap()
            }),
            ("rules", |site| {
                fs::write(site.at(".gitignore"), "*.log\n").unwrap()
            }),
            ("rules below", |site| {
                fs::write(site.at("src/.gitignore"), "b\n").unwrap()
            }),
            ("rules of the repository", |site| {
                fs::write(site.at(".git/info/exclude"), "a\nb\n").unwrap()
            }),
            ("a setting", |site| {
                fs::write(site.at("../excludes"), "deep\n").unwrap();
                let file = site.at("../excludes");
                site.git(&["config", "core.excludesFile", file.to_str().unwrap()]);
            }),
            ("what is wanted all the same", |site| {
                fs::write(site.at(".worktreeinclude"), "ignored.log\n").unwrap();
            }),
            ("tracked though ignored", |site| {
                site.git(&["add", "--force", "target/debug/d"])
            }),
            ("an ignored directory goes", |site| {
                fs::remove_dir_all(site.at("target")).unwrap()
            }),
            ("a new ignored file", |site| {
                fs::write(site.at("src/x.log"), "").unwrap()
            }),
            ("a nested repository is none any more", |site| {
                fs::remove_dir_all(site.at("nested/.git")).unwrap();
            }),
            ("another directory at its place", |site| {
                fs::rename(site.at(""), site.at("../before")).unwrap();
                fs::create_dir(site.at("")).unwrap();
                fs::write(site.at("other"), "").unwrap();
            }),
            ("an image that is gone", |site| {
                let images = fs::read_dir(site.directory.path().join("plans/bases")).unwrap();
                for image in images
                    .map(|image| image.unwrap().path())
                    .filter(|path| path.is_dir())
                {
                    fs::remove_dir_all(image).unwrap();
                }
            }),
        ];
        for (name, change) in changes {
            let mut site = Site::new();
            assert_eq!(site.take(name), BaseSource::FullScan, "{name}");
            assert!(site.kept.is_some(), "{name}");
            // Reading, files outside the tree and git reading the repository don't invalidate it.
            fs::read(site.at("a")).unwrap();
            fs::write(site.at("target/debug/d"), "built").unwrap();
            fs::write(site.at("nested/.git/HEAD"), "").unwrap();
            site.git(&["log", "--all"]);
            assert_eq!(site.take(name), BaseSource::CachedScan, "{name}");
            change(&site);
            assert_eq!(site.take(name), BaseSource::FullScan, "{name}");
        }
    }

    /// A scan that raced with a change isn't used again, whatever it saw of the change.
    #[test]
    fn what_changes_during_a_scan_is_seen_by_the_next() {
        let mut site = Site::new();
        let (at, stop) = (site.at("src/racing"), CancellationToken::new());
        let stopped = stop.scope();
        let writer = std::thread::spawn(move || {
            for number in 0_u64.. {
                if stopped.is_cancelled() {
                    return;
                }
                fs::write(&at, number.to_string()).unwrap();
            }
        });
        let workspace = site.at("").canonicalize().unwrap();
        let cache = site.directory.path().join("cache");
        for _ in 0..200 {
            let kept = site.kept.take();
            site.kept = site
                .bases
                .take_again(&workspace, &cache, kept, &site.scope)
                .unwrap()
                .kept;
        }
        stop.cancel(kernel::Cause::new("test", "enough"));
        writer.join().unwrap();
        site.take("after the last write");
    }

    #[test]
    fn too_many_second_names_are_not_looked_at_one_by_one() {
        let mut site = Site::new();
        for number in 0..LINKED_LIMIT {
            fs::hard_link(site.at("a"), site.at(&format!("src/{number}"))).unwrap();
        }
        assert_eq!(site.take("many"), BaseSource::FullScan);
        assert!(site.kept.is_none());
    }

    #[test]
    fn names_in_the_table_of_mounts_are_read_as_the_kernel_writes_them() {
        for (written, path) in [
            ("/a/b", "/a/b"),
            (r"/a\040b\134c", r"/a b\c"),
            (r"/odd\9", r"/odd\9"),
            (r"/end\04", r"/end\04"),
        ] {
            assert_eq!(unescaped(written.as_bytes()), path.as_bytes(), "{written}");
        }
        assert!(
            has_mounts(Path::new("")).unwrap(),
            "/proc is mounted below the root"
        );
        assert!(!has_mounts(Path::new("/proc/self/fd")).unwrap());
    }
}
