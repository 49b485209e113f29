//! Layers. They are passed to the kernel through `/proc/self/fd`, so that special characters and the length of a
//! path don't matter, and each is exactly the directory that was opened, whatever is mounted over it by now.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

use super::sources::attach;

#[derive(Debug)]
pub(super) struct Layers {
    /// Topmost first.
    pub(super) lower: Vec<OwnedFd>,
    pub(super) upper: OwnedFd,
    pub(super) work: OwnedFd,
}

/// Options without a value. `userxattr` is for unprivileged mounts: the marks of the overlay are attributes that
/// its user may set. `volatile` is explained at [`Mount::Overlay`](crate::Mount::Overlay).
const FLAGS: [&std::ffi::CStr; 2] = [c"userxattr", c"volatile"];

impl Layers {
    pub(super) fn mount(&self, place: &OwnedFd) -> io::Result<()> {
        self.forget_earlier()?;
        match self.configured() {
            Ok(mount) => Ok(attach(&mount, place)?),
            // Kernels before 6.7 take all lower layers in one option.
            Err(Configured::NoSuchOption) => self.mount_by_one_string(place),
            Err(Configured::Refused(error)) => Err(error.into()),
        }
    }

    /// An earlier volatile overlay has left a mark, so that nobody trusts the layer after a crash of the machine.
    /// The kernel refuses the layer as long as the mark exists. We remove it: a view that is opened again shows
    /// what is there.
    fn forget_earlier(&self) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let marks = match openat(&self.work, c"work/incompat", flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            marks => marks?,
        };
        for (name, flags) in [
            (c"volatile/dirty", AtFlags::empty()),
            (c"volatile", AtFlags::REMOVEDIR),
        ] {
            match unlinkat(&marks, name, flags) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// An overlay that isn't attached yet.
    fn configured(&self) -> Result<OwnedFd, Configured> {
        let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for layer in &self.lower {
            match fsconfig_set_string(&context, c"lowerdir+", name_of(layer)) {
                Err(Errno::INVAL) => return Err(Configured::NoSuchOption),
                set => set?,
            }
        }
        fsconfig_set_string(&context, c"upperdir", name_of(&self.upper))?;
        fsconfig_set_string(&context, c"workdir", name_of(&self.work))?;
        for flag in FLAGS {
            fsconfig_set_flag(&context, flag)?;
        }
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        Ok(fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    }

    /// The same with the old interface, where all options together have the size of a page: about two hundred
    /// layers.
    fn mount_by_one_string(&self, place: &OwnedFd) -> io::Result<()> {
        let lower: Vec<String> = self.lower.iter().map(name_of).collect();
        let mut options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.join(":"),
            name_of(&self.upper),
            name_of(&self.work)
        );
        for flag in FLAGS {
            options.push(',');
            options.push_str(&flag.to_string_lossy());
        }
        let options = CString::new(options).map_err(io::Error::other)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(c"overlay", name_of(place), c"overlay", flags, options.as_c_str())?;
        Ok(())
    }
}

/// Why there is no overlay.
#[derive(Debug)]
enum Configured {
    NoSuchOption,
    Refused(Errno),
}

impl From<Errno> for Configured {
    fn from(error: Errno) -> Self {
        Self::Refused(error)
    }
}

fn name_of(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}
