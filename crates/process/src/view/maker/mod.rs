//! The maker: a process that makes one view, hands it over, and exits.
//!
//! It is the same program as the keeper, started under another name, because only a process with one thread can
//! create a user namespace. It has no children and no state. Whatever it has mounted is in namespaces that nobody
//! else holds until the daemon has received them, so it can end at any moment without leaving anything behind.

mod mount_points;
mod namespaces;
mod overlay;

mod sources;

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::setsid;

use super::error::ViewStep;
use super::spec::ViewSpec;
use super::wire::{FromMaker, ToMaker, VIEW_DESCRIPTORS, text};
use crate::keeper::fresh;
use crate::receive::message;
use crate::wire::encode;
use sources::Source;

/// The name of a maker in process lists, by which it also knows that it is one.
pub(crate) const MAKER_NAME: &str = "tidelock-view";
/// The same for the kernel.
const MAKER_COMMAND_NAME: &std::ffi::CStr = c"tidelock-view";
/// How long a maker waits for its request, which is sent at once.
const WAIT_FOR_ORDER: Duration = Duration::from_secs(10);
/// After this time the kernel ends a maker, whatever it waits for. Its daemon, if alive, has killed it long
/// before.
const LIFE_SECONDS: u32 = 30;

/// A step that the system refused.
#[derive(Debug)]
struct Refusal {
    step: ViewStep,
    path: PathBuf,
    source: io::Error,
}

/// For `map_err`: which step, and on what.
fn refused<E: Into<io::Error>>(step: ViewStep, path: &Path) -> impl Fn(E) -> Refusal {
    move |source| Refusal {
        step,
        path: path.to_owned(),
        source: source.into(),
    }
}

/// Runs a maker.
pub(crate) fn make_view() -> io::Result<()> {
    fresh::close_inherited();
    fresh::reset_signals();
    fresh::end_after(LIFE_SECONDS);
    rustix::thread::set_name(MAKER_COMMAND_NAME)?;
    setsid()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    set_socket_timeout(&socket, Timeout::Recv, Some(WAIT_FOR_ORDER))?;
    let (order, _) = message::<ToMaker>(&socket)?;
    match make(&ViewSpec::from(order)) {
        Ok(view) => send(&socket, &FromMaker::Made, &view),
        Err(refusal) => {
            let errno = refusal.source.raw_os_error();
            let refused = FromMaker::Refused {
                step: refusal.step,
                path: text(&refusal.path),
                errno: errno.unwrap_or(Errno::INVAL.raw_os_error()),
            };
            send(&socket, &refused, &[])
        }
    }
}

/// Makes the view: user namespace, mount namespace and root.
fn make(spec: &ViewSpec) -> Result<[OwnedFd; VIEW_DESCRIPTORS], Refusal> {
    let [user, mount] = namespaces::enter_new()?;
    // All of them before the first mount, which may cover some.
    let sources: Vec<Source> = spec.mounts.iter().map(Source::open).collect::<Result<_, _>>()?;
    for source in sources {
        source.mount()?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let root = mount_points::existing(&spec.root)
        .and_then(|place| {
            Ok(rustix::fs::openat(
                place,
                c".",
                flags | OFlags::CLOEXEC,
                Mode::empty(),
            )?)
        })
        .map_err(refused(ViewStep::Root, &spec.root))?;
    Ok([user, mount, root])
}

/// Sends a message, with descriptors if there are any.
fn send(mut socket: &UnixStream, message: &FromMaker, descriptors: &[OwnedFd]) -> io::Result<()> {
    let bytes = encode(message)?;
    let mut sent = 0;
    if !descriptors.is_empty() {
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(VIEW_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
        assert!(fits, "the buffer has space for the descriptors of a view");
        sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    }
    socket.write_all(&bytes[sent..])
}
