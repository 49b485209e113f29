//! Plans, as this daemon keeps and shows them.
//!
//! - `start` sets up the service.
//! - `acts` has the operations: one function for each, shared by HTTP, MCP and the page.
//! - `checks` runs checks as jobs; `children` stops the jobs of other children when one fails; `jobs_slot` gives both
//!   access to the jobs, which are created after them.
//! - `command` opens a plan and submits the command that runs in it, as one operation.
//! - `finish` handles the end of a command in a plan: seals, applies or discards it.
//! - `handlers` has the job handlers that know plans.
//! - `killing` kills a daemon under test in the middle of an apply.
//! - `diff` shows the changes of a plan.
//! - `wire` converts plans for the wire, for the HTTP API and the page.

pub(crate) mod acts;
mod checks;
mod children;
mod command;
pub(crate) mod diff;
mod finish;
mod handlers;
mod jobs_slot;
mod killing;
mod start;
pub(crate) mod wire;

pub(crate) use checks::{CHECK, CheckError, settle_all};
pub(crate) use command::{forget_unsubmitted, submit_in_new_plan, untouched};
pub(crate) use finish::{FINISH, FinishHandler, TurnFinisher, because, finish, finished_of, follower};
pub(crate) use handlers::{CheckHandler, PlannedHandler};
pub(crate) use jobs_slot::{JobsSlot, Watch};
pub(crate) use killing::KillPoints;
pub(crate) use start::start;
