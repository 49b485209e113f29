//! Views: a private view of the file system for a command.
//!
//! A view is a user namespace and a mount namespace with its own mounts. A short-lived process, the maker,
//! creates both, sends their descriptors to the daemon, and exits. Nothing else holds them: when the last
//! descriptor is closed and the last command in the view has ended, the kernel removes the mounts. So a killed
//! daemon leaves none behind.
//!
//! - `spec`: the request. `handle`: the result. `error`: why it failed.
//! - `make`: the daemon's side of making one. `maker/`: the process that does it. `wire`: the protocol between
//!   the two.
//! - `support`: whether this machine supports views.
//!
//! **Invariant:** all sources are opened before anything is mounted, so they are what the host sees, even below a
//! mount point. Mount points are resolved in the view as it is by then, and never through a symbolic link.
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
