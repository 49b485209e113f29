//! Directories for a view, and a look at what is mounted anywhere.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use process::{Child, Confinement, Exit, Mount, Spec, View, ViewSpec};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::AsyncReadExt;

use crate::support::{Service, within};

/// A place with something real in it, and layers that are to cover it.
pub(crate) struct Layers {
    /// Where the overlay is seen. Outside a view there is a file `real` in it.
    pub(crate) place: PathBuf,
    pub(crate) lower: PathBuf,
    pub(crate) upper: PathBuf,
    pub(crate) work: PathBuf,
}

impl Layers {
    pub(crate) fn new(directory: &Path) -> Self {
        let layers = Self {
            place: directory.join("place"),
            lower: directory.join("lower"),
            upper: directory.join("upper"),
            work: directory.join("work"),
        };
        for path in [&layers.place, &layers.lower, &layers.upper, &layers.work] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(layers.place.join("real"), "real\n").unwrap();
        fs::write(layers.lower.join("base"), "base\n").unwrap();
        layers
    }

    pub(crate) fn overlay(&self) -> Mount {
        Mount::Overlay {
            lower: vec![self.lower.clone()],
            upper: self.upper.clone(),
            work: self.work.clone(),
            at: self.place.clone(),
        }
    }

    pub(crate) fn spec(&self) -> ViewSpec {
        ViewSpec {
            mounts: vec![self.overlay()],
            root: self.place.clone(),
        }
    }
}

/// The kernel leaves directories that nobody but the superuser can look into, and so cannot remove.
impl Drop for Layers {
    fn drop(&mut self) {
        for left in ["work", "work/incompat", "work/incompat/volatile"] {
            drop(fs::set_permissions(
                self.work.join(left),
                fs::Permissions::from_mode(0o700),
            ));
        }
    }
}

/// The names in a directory, in order.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

impl Service {
    pub(crate) async fn view(&self, spec: ViewSpec) -> View {
        within(self.processes.make_view(spec)).await.unwrap()
    }

    /// A script in a view, in a directory.
    pub(crate) fn sh_in(&self, view: &View, directory: &Path, script: &str) -> Spec {
        let mut spec = self.sh(script);
        spec.view = Some(view.clone());
        spec.directory = directory.to_owned();
        spec
    }

    /// Runs a command to its end, and hands out what it said.
    pub(crate) async fn said(&self, spec: Spec) -> String {
        let child = self.processes.spawn(spec).await.unwrap();
        let said = output(&child).await;
        assert_eq!(
            within(child.ended()).await.exit,
            Exit::Code(0),
            "{}",
            child.stderr_tail()
        );
        said
    }

    /// Runs a script in a view, unconfined or confined to these directories.
    pub(crate) async fn says_in(&self, view: &View, directory: &Path, script: &str) -> String {
        self.said(self.sh_in(view, directory, script)).await
    }
}

pub(crate) async fn output(child: &Child) -> String {
    let mut said = String::new();
    within(child.stdout().unwrap().read_to_string(&mut said))
        .await
        .unwrap();
    said
}

pub(crate) fn write_below(paths: &[&Path]) -> Confinement {
    Confinement::WriteBelow(paths.iter().map(|path| (*path).to_owned()).collect())
}

/// Makers that are children of this process, alive or not reaped.
pub(crate) fn makers() -> Vec<u32> {
    let own = std::process::id();
    let is_maker = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_ours =
            || stat.split(") ").nth(1).and_then(|rest| rest.split(' ').nth(1)) == Some(&own.to_string());
        stat.contains("(tidelock-view)") && is_ours()
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_maker).collect()
}

/// Tells whether a file system is still mounted anywhere, without being a reason for it to be.
pub(crate) struct Watch {
    inotify: OwnedFd,
}

impl Watch {
    pub(crate) fn of(path: &str) -> Self {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        // The kernel tells of the end of the file system in any case.
        inotify::add_watch(&inotify, path, WatchFlags::DELETE_SELF).unwrap();
        Self { inotify }
    }

    /// The file system that a view shows.
    pub(crate) fn of_view(view: &View) -> Self {
        Self::of(&format!("/proc/self/fd/{}", view.root().as_raw_fd()))
    }

    pub(crate) fn is_gone(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 512];
        match inotify::Reader::new(&self.inotify, &mut buffer).next() {
            Ok(event) => event.events().contains(ReadFlags::UNMOUNT),
            Err(_) => false,
        }
    }
}
