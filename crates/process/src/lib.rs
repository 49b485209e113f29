//! Children that the daemon owns: started under a keeper, recorded before they run, and reliably cleaned up.
//!
//! - [`Processes`] starts and lists children, finds the owner of a pid, and stops all of them.
//! - [`Child`] is one of them: its pipes, its end, its stop. When the last handle is dropped, it is stopped.
//! - [`keep_if_asked`] lets a program be its own keeper. A keeper is the parent of one command and of everything
//!   that the command leaves behind. It kills all of that when its daemon dies, and tells the daemon when all of
//!   it is gone.
//! - [`View`] is a private view of the file system for a child: layers mounted over a directory, made without
//!   privileges in namespaces of their own, and gone with the last holder.
//! - [`Tasks`] are the tasks of the daemon and of the crates below it.
//!
//! **Who owns the state:** each child has one task (`supervise`), which is the only one that talks to its keeper
//! and writes its row of the ledger. Its life is a `kernel::Slot` that others read, wait on and send stop
//! requests to.
//!
//! **Invariant:** the row of a child is durable before its command can run. So the next daemon can kill what a
//! killed daemon left. It trusts a pid only together with its start time, within the same boot of the machine.
//!
//! **Invariant:** signals go through a descriptor of the process, never to a bare pid that may be reused.
//!
//! **What must not happen here:** any knowledge of what a child is for.

mod child;
mod confine;
mod descriptors;
mod ended;
mod entry;
mod error;
mod finish;
mod identity;
mod info;
mod inlet;
mod keeper;
mod keeper_process;
mod ledger;
mod memory;
mod outlet;
mod pidfd;
mod pipes;
mod private;
mod proc_table;
mod processes;
mod receive;
mod reclaim;

mod spawned;
mod spec;
mod start;
mod state;
mod stderr_ring;
mod supervise;
mod sweep;
mod tasks;
mod terminal;
mod view;
mod wire;

pub use child::Child;
pub use confine::landlock_support;
pub use descriptors::raise_open_files;
pub use ended::{Ended, Exit, KeeperEnd, Killed};
pub use error::{OpenProcessesError, SpawnError};
pub use info::{Belongs, ProcessInfo, Why};
pub use inlet::{INLET_BYTES, Inlet, InletReader};
pub use keeper::keep_if_asked;
pub use ledger::unreadable_head;
pub use memory::{give_memory_back, keep_memory_small};
pub use outlet::Outlet;
pub use private::{DATABASE_URL, is_private};
pub use processes::{Processes, ProcessesOptions};
pub use reclaim::Reclaimed;
pub use spec::{Confinement, Enforcement, KeeperProgram, Limits, Spec, StandardError, StopPlan};
pub use tasks::Tasks;
pub use view::{Mount, View, ViewError, ViewSpec, ViewStep, view_support};
