//! Views: what a command sees of the file system where that is not what everybody sees.
//!
//! A view is a user namespace and a mount namespace with mounts of its own. A short-lived process, the maker, makes both,
//! hands their descriptors to the daemon, and ends. Nothing else holds them: when the last descriptor is closed and the
//! last command in the view has ended, the kernel takes the mounts away. So a daemon that is killed leaves none behind.
//!
//! - `spec`: what is wanted. `handle`: what is had. `error`: why not.
//! - `make`: the daemon's side of making one. `maker/`: the process that does it. `wire`: what the two say.
//! - `support`: whether this machine can do it.
//!
//! **Invariant:** all sources are opened before anything is mounted, so they are what everybody sees, even below a mount
//! point. Mount points are looked up in the view as it is by then, and never through a symbolic link.
//!
//! **What must not happen here:** any mount in the namespace of the daemon.

mod error;
mod handle;
mod make;
mod maker;
mod spec;
mod support;
mod wire;

pub use error::{ViewError, ViewStep};
pub use handle::View;
pub(crate) use make::make;
pub(crate) use maker::{MAKER_NAME, make_view};
pub use spec::{Mount, ViewSpec};
pub use support::view_support;
