//! Context, as this daemon finds and shows it.
//!
//! - `start` puts the service together: what is set, and what others know.
//! - `service` is how the rest of the daemon asks: the interface, the page and agents alike. It is where questions are counted.
//! - `ground` is which tree is looked at, and as whom; `focus` the files that a question is about. `plan_view` is a plan's
//!   sandbox as a tree, `shown` a tree without what must not be shown.
//! - `open_plans` tells strategies what is being changed; language servers do so in their own module. `finder` is what agents
//!   have of it.
//! - `acts` is what HTTP, MCP and the page ask; `wire` makes answers into what goes over the wire.

pub(crate) mod acts;
mod finder;
mod focus;
mod ground;
mod open_plans;
mod plan_view;
mod service;
mod shown;
mod start;
pub(crate) mod wire;

pub(crate) use ground::Ground;
pub(crate) use service::{ContextService, FocusFrom, Question, QuestionError};
pub(crate) use start::{Around, start};
