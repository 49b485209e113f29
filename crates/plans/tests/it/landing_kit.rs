//! A tree, a staging directory and contents, for tests of landings.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use bytes::Bytes;
use eventlog::BlobId;
use kernel::{CancellationToken, Scope};
use plans::landing::{
    Landing, LandingEnd, LandingId, LandingSite, NoRemerge, NoSteps, Remerge, Step, StepKind, Steps,
};
use plans::{Effect, Entry, FileKind, LinkTarget, RelPath, Tree};
use tempfile::TempDir;

/// What is in a tree.
pub(crate) type Image = BTreeMap<RelPath, Entry>;

/// A tree to land in.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) tree: Tree,
    pub(crate) contents: HashMap<BlobId, Bytes>,
    renames: Renames,
}

/// What the file system can do, as far as landings are told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Renames {
    /// Everything.
    Any,
    /// It can neither exchange two files, nor leave alone what is at the new path of a rename.
    Plain,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::in_directory(TempDir::with_prefix("tidelock-landing-").unwrap())
    }

    /// In memory if there is such a file system, for tests that land so often that they would only wait for the disk.
    pub(crate) fn in_memory() -> Self {
        let memory = TempDir::with_prefix_in("tidelock-landing-", "/dev/shm");
        memory.map_or_else(|_| Self::new(), Self::in_directory)
    }

    fn in_directory(directory: TempDir) -> Self {
        for name in ["tree", "contents"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let tree = Tree::open(&directory.path().join("tree")).unwrap();
        Self {
            directory,
            tree,
            contents: HashMap::new(),
            renames: Renames::Any,
        }
    }

    pub(crate) fn with(self, renames: Renames) -> Self {
        let tree = match renames {
            Renames::Any => self.tree,
            Renames::Plain => self.tree.with_plain_renames(),
        };
        Self {
            tree,
            renames,
            ..self
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.directory.path().join("staging")
    }

    pub(crate) fn site<'a>(
        &'a self,
        staging: &'a Path,
        remerge: &'a dyn Remerge,
        steps: &'a dyn Steps,
    ) -> LandingSite<'a> {
        LandingSite {
            tree: &self.tree,
            staging,
            contents: &self.contents,
            remerge,
            steps,
        }
    }

    /// Stages and carries out, in one.
    pub(crate) fn land(&self, landing: &Landing, remerge: &dyn Remerge, steps: &dyn Steps) -> LandingEnd {
        let staging = self.staging();
        let site = self.site(&staging, remerge, steps);
        site.carry_out(site.stage(landing, &live()).unwrap()).unwrap()
    }

    pub(crate) fn recover(&self, landing: &Landing, remerge: &dyn Remerge) -> LandingEnd {
        let staging = self.staging();
        self.site(&staging, remerge, &NoSteps).recover(landing).unwrap()
    }

    /// Cleans, and looks that nothing of ours is left.
    pub(crate) fn clean(&self, landing: &Landing) {
        let staging = self.staging();
        let site = self.site(&staging, &NoRemerge, &NoSteps);
        site.clean(landing, &[], &mut |kept, _| panic!("{kept:?}"))
            .unwrap();
        assert!(!staging.join(landing.id.as_str()).exists());
        assert!(!self.root().join(".tidelock").exists());
    }

    /// A file with a content that can be landed.
    pub(crate) fn file(&mut self, content: &str, mode: u32) -> Option<Entry> {
        let content = Bytes::copy_from_slice(content.as_bytes());
        let hash = BlobId::from_bytes(*blake3::hash(&content).as_bytes());
        let size = content.len() as u64;
        self.contents.insert(hash, content);
        Some(Entry::File { hash, size, mode })
    }

    /// Writes the journal and the contents where the program of the tests finds them.
    pub(crate) fn lay_out(&self, landing: &Landing) {
        let directory = self.directory.path();
        fs::write(
            directory.join("journal.json"),
            serde_json::to_vec(landing).unwrap(),
        )
        .unwrap();
        for (id, content) in &self.contents {
            let at = directory.join("contents").join(id.to_string());
            if !at.exists() {
                fs::write(at, content).unwrap();
            }
        }
    }

    pub(crate) fn lander(&self, action: &str, step: u64, save: &str, remerge: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_test-lander"));
        command.arg(action).arg(self.directory.path());
        command.args([&step.to_string(), save, remerge]);
        if self.renames == Renames::Plain {
            command.env("TEST_PLAIN_RENAMES", "1");
        }
        command
    }

    pub(crate) fn image(&self) -> Image {
        image(&self.tree)
    }
}

pub(crate) fn path(text: &str) -> RelPath {
    text.parse().unwrap()
}

pub(crate) fn link(target: &str) -> Option<Entry> {
    Some(Entry::Symlink {
        target: LinkTarget(target.as_bytes().into()),
    })
}

pub(crate) fn effect(at: &str, before: Option<Entry>, after: Option<Entry>) -> Effect {
    Effect {
        path: path(at),
        before,
        after,
    }
}

pub(crate) fn landing(effects: Vec<Effect>) -> Landing {
    Landing {
        id: LandingId::generate(),
        effects,
        attributes: Vec::new(),
    }
}

pub(crate) fn live() -> Scope {
    CancellationToken::new().scope()
}

/// Everything in a tree but our own directory.
pub(crate) fn image(tree: &Tree) -> Image {
    let (mut image, mut left) = (Image::new(), vec![None]);
    while let Some(directory) = left.pop() {
        for (name, kind) in tree.list(directory.as_ref()).unwrap() {
            if directory.is_none() && name == ".tidelock" {
                continue;
            }
            let path = match &directory {
                None => RelPath::from_path(Path::new(&name)).unwrap(),
                Some(directory) => directory.join(&name).unwrap(),
            };
            image.insert(path.clone(), tree.entry(&path).unwrap().unwrap());
            if kind == FileKind::Directory {
                left.push(Some(path));
            }
        }
    }
    image
}

/// What effects make of an image.
pub(crate) fn after(image: &Image, effects: &[Effect]) -> Image {
    let mut image = image.clone();
    for effect in effects {
        assert_eq!(image.get(&effect.path), effect.before.as_ref(), "{effect:?}");
        match &effect.after {
            Some(entry) => image.insert(effect.path.clone(), entry.clone()),
            None => image.remove(&effect.path),
        };
    }
    image
}

/// A tree and a landing with every kind of effect.
pub(crate) fn every_kind() -> (Place, Landing) {
    let mut place = Place::new();
    let root = place.root();
    for directory in ["dir/sub", "becomes-file", "stays"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for (name, content) in [
        ("keep.txt", "keep\n"),
        ("edit.txt", "old\n"),
        ("mode.sh", "#!/bin/sh\n"),
        ("gone.txt", "gone\n"),
        ("dir/sub/gone.txt", "gone as well\n"),
        ("dir/top.txt", "top\n"),
        ("becomes-dir", "a file\n"),
        ("becomes-file/inner.txt", "inner\n"),
        ("becomes-link", "a file\n"),
        ("Readme", "read me\n"),
        ("stays/other.txt", "other\n"),
        ("stays/edit.txt", "old here\n"),
    ] {
        fs::write(root.join(name), content).unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    symlink("keep.txt", root.join("link")).unwrap();
    fs::write(root.join(path("caf\\xe9").as_path()), "old\n").unwrap();
    fs::set_permissions(
        root.join(path("caf\\xe9").as_path()),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();

    let directory = || Some(Entry::Directory);
    let mut file = |content: &str| place.file(content, 0o644);
    let mut effects = vec![
        effect("edit.txt", file("old\n"), file("new\n")),
        effect("gone.txt", file("gone\n"), None),
        effect("dir", directory(), None),
        effect("dir/top.txt", file("top\n"), None),
        effect("dir/sub", directory(), None),
        effect("dir/sub/gone.txt", file("gone as well\n"), None),
        effect("becomes-dir/inner.txt", None, file("inner\n")),
        effect("becomes-dir", file("a file\n"), directory()),
        effect("becomes-file", directory(), file("a file now\n")),
        effect("becomes-file/inner.txt", file("inner\n"), None),
        effect("becomes-link", file("a file\n"), link("nowhere")),
        effect("link", link("keep.txt"), link("edit.txt")),
        effect("Readme", file("read me\n"), None),
        effect("README", None, file("read me\n")),
        effect("new", None, directory()),
        effect("new/deep", None, directory()),
        effect("new/deep/file.txt", None, file("created\n")),
        effect("new-empty", None, directory()),
        effect("stays/edit.txt", file("old here\n"), file("new here\n")),
        effect("stays/link", None, link("../keep.txt")),
    ];
    let script = "#!/bin/sh\n";
    effects.push(effect(
        "mode.sh",
        place.file(script, 0o644),
        place.file(script, 0o755),
    ));
    effects.push(effect(
        "caf\\xe9",
        place.file("old\n", 0o600),
        place.file("new\n", 0o600),
    ));
    (place, landing(effects))
}

/// Does something when a step is reached for the first time.
pub(crate) struct When {
    kind: StepKind,
    path: Option<RelPath>,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl When {
    pub(crate) fn new(kind: StepKind, at: &str, act: impl FnOnce() + Send + 'static) -> Self {
        Self {
            kind,
            path: (!at.is_empty()).then(|| path(at)),
            act: Mutex::new(Some(Box::new(act))),
        }
    }

    pub(crate) fn happened(&self) -> bool {
        self.act.lock().unwrap().is_none()
    }
}

impl Steps for When {
    fn reached(&self, step: Step<'_>) {
        if step.kind == self.kind && step.path == self.path.as_ref() {
            let act = self.act.lock().unwrap().take();
            if let Some(act) = act {
                act();
            }
        }
    }
}

/// Saves as editors do: a new file, with the permissions that all of the tests use, is renamed over the old one.
pub(crate) fn save(at: &Path, content: &str) {
    let outside = at.ancestors().find(|above| above.ends_with("tree")).unwrap();
    let draft = outside.with_file_name(format!("draft-{}", LandingId::generate()));
    fs::write(&draft, content).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o644)).unwrap();
    fs::rename(&draft, at).unwrap();
}
