//! Plans, as this daemon keeps and shows them.
//!
//! - `start` puts the service together.
//! - `acts` carries out what is asked for: one function for each act, for HTTP, MCP and the page.
//! - `checks` runs checks as jobs; `children` stops the jobs of other children when one fails; `jobs_slot` is how
//!   both reach the jobs, which are made after them.
//! - `command` opens a plan and submits the command that runs in it, in one act.
//! - `finish` deals with the end of a command in a plan: seals, applies or discards it.
//! - `handlers` are the handlers of jobs that know plans.
//! - `killing` ends a daemon that is being tested in the middle of an apply.
//! - `diff` shows what a plan changes.
//! - `wire` makes plans into what goes over the wire, for the interface and for the page alike.

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
