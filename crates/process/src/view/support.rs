//! Whether this machine can make views. That is tried, not guessed; only the explanation of a failure is a guess.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use protocol::RequestId;
use rustix::fs::{AtFlags, Mode, OFlags, openat, statfs, unlinkat};
use rustix::io::Errno;

use super::error::{ViewError, ViewStep};
use super::handle::View;
use super::spec::{Mount, ViewSpec};
use crate::processes::Processes;

/// The `statfs` number of an overlay.
const OVERLAY_MAGIC: u64 = 0x794c_7630;

/// Checks whether views with layers in this directory work here: one is made, written, and removed. The error
/// explains what is in the way. The directory must exist, and its path must be canonical.
///
/// *Cancel safety*: the future may be dropped at any time; a small directory may be left in `scratch`.
///
/// # Errors
/// Views don't work.
pub async fn view_support(processes: &Processes, scratch: &Path) -> Result<(), String> {
    let directory = scratch.to_owned();
    let probe = blocking(move || Probe::new(&directory))
        .await
        .map_err(|error| format!("`{}` cannot be used: {error}", scratch.display()))?;
    match processes.make_view(probe.spec()).await {
        Ok(view) => blocking(move || probe.try_out(&view)).await.map_err(|error| {
            let scratch = scratch.display();
            format!("layers in `{scratch}` can be mounted, but do not work: {error}")
        }),
        Err(error) => Err(why(&error, scratch)),
    }
}

/// Runs file operations on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

/// A directory that exists for the duration of a probe.
#[derive(Debug)]
struct Probe {
    directory: PathBuf,
}

impl Drop for Probe {
    fn drop(&mut self) {
        // If it can't be removed, it is small, and its name tells what it was.
        drop(self.remove());
    }
}

impl Probe {
    fn new(scratch: &Path) -> io::Result<Self> {
        let probe = Self {
            directory: scratch.join(format!("view-probe-{}", RequestId::generate())),
        };
        fs::create_dir(&probe.directory)?;
        for name in ["lower", "upper", "work", "place"] {
            fs::create_dir(probe.directory.join(name))?;
        }
        fs::write(probe.directory.join("lower/below"), "below")?;
        Ok(probe)
    }

    fn spec(&self) -> ViewSpec {
        let place = self.directory.join("place");
        ViewSpec {
            mounts: vec![Mount::Overlay {
                lower: vec![self.directory.join("lower")],
                upper: self.directory.join("upper"),
                work: self.directory.join("work"),
                at: place.clone(),
            }],
            root: place,
        }
    }

    /// Writes and removes files through the view, and checks the layers.
    fn try_out(&self, view: &View) -> io::Result<()> {
        let root = view.root();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let made = openat(root, c"made", flags, Mode::from_raw_mode(0o600))?;
        rustix::io::write(made, b"made")?;
        unlinkat(root, c"below", AtFlags::empty())?;
        let upper = self.directory.join("upper");
        let is_marked = fs::symlink_metadata(upper.join("below"))?
            .file_type()
            .is_char_device();
        let is_whole = self.directory.join("lower/below").exists();
        match (fs::read(upper.join("made"))?.as_slice(), is_marked, is_whole) {
            (b"made", true, true) => Ok(()),
            _ => Err(io::Error::other("what is written does not go to the upper layer")),
        }
    }

    /// The kernel leaves a directory in `work` that nobody may read, not even its owner.
    fn remove(&self) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let mut left = self.directory.join("work/work");
        for below in ["incompat", "volatile"] {
            // They needn't all exist.
            drop(fs::set_permissions(&left, fs::Permissions::from_mode(0o700)));
            left.push(below);
        }
        drop(fs::set_permissions(&left, fs::Permissions::from_mode(0o700)));
        fs::remove_dir_all(&self.directory)
    }
}

/// What is in the way, as far as it can be told.
fn why(error: &ViewError, scratch: &Path) -> String {
    let ViewError::Refused { step, path, source } = error else {
        return with_source(error);
    };
    let number = source.raw_os_error().map(Errno::from_raw_os_error);
    let reason = match (step, number) {
        (ViewStep::Namespaces, _) if setting("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) => {
            "user namespaces are switched off (kernel.unprivileged_userns_clone is 0)".to_owned()
        }
        (ViewStep::Namespaces, _) if setting("/proc/sys/user/max_user_namespaces") == Some(0) => {
            "user namespaces are switched off (user.max_user_namespaces is 0)".to_owned()
        }
        (ViewStep::Namespaces, Some(Errno::NOSPC)) => "there are as many user namespaces as there may be".to_owned(),
        (ViewStep::Namespaces, _) => "the kernel, or the container that this runs in, gives no user namespaces".to_owned(),
        (_, Some(Errno::PERM | Errno::ACCESS))
            if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) =>
        {
            "AppArmor takes the rights in user namespaces away (kernel.apparmor_restrict_unprivileged_userns is 1)".to_owned()
        }
        (ViewStep::Overlay, Some(Errno::NODEV)) => "the kernel has no overlay file system".to_owned(),
        (ViewStep::Overlay, Some(Errno::PERM)) => "the kernel does not mount overlays in user namespaces".to_owned(),
        (ViewStep::Overlay, _) if is_overlay(scratch) => {
            format!("`{}` lies on an overlay, which cannot be an upper layer", scratch.display())
        }
        (ViewStep::Overlay, _) => format!(
            "the file system of `{}` cannot be an upper layer; it needs extended attributes, for one",
            scratch.display()
        ),
        _ => format!("{step} `{}`", path.display()),
    };
    format!("{reason} ({source})")
}

fn with_source(error: &ViewError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error} ({source})"),
        None => error.to_string(),
    }
}

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn is_overlay(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| u64::try_from(found.f_type) == Ok(OVERLAY_MAGIC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_said_in_words() {
        let refused = |step, number: Errno| ViewError::Refused {
            step,
            path: "/place".into(),
            source: number.into(),
        };
        let cases = [
            (refused(ViewStep::Overlay, Errno::NODEV), "no overlay file system"),
            (
                refused(ViewStep::Overlay, Errno::INVAL),
                "cannot be an upper layer",
            ),
            (refused(ViewStep::Namespaces, Errno::NOSPC), "user namespaces"),
            (
                refused(ViewStep::Place, Errno::NOTDIR),
                "nothing can be mounted at `/place`",
            ),
            (
                ViewError::Maker(Errno::PIPE.into()),
                "the maker of the view failed (Broken pipe",
            ),
        ];
        for (error, part) in cases {
            let said = why(&error, Path::new("/"));
            assert!(said.contains(part), "{said}");
        }
    }
}
