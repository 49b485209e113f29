//! The machines that share a log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The machine that something is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    /// What it is called: `machine.name` of its configuration, or the name of its host. Two of the same name are told apart by
    /// the end of their home.
    #[schema(example = "desk")]
    pub name: String,
    /// The home of its daemon, which is the same in every life.
    #[schema(example = "home_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub home: String,
    /// Whether it is the machine of the daemon that answers.
    pub here: bool,
}
