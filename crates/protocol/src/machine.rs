//! Machines that share a log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A machine that runs a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    /// The name of the machine: `machine.name` in its configuration, or its host name. If two machines have
    /// the same name, the end of their home ids distinguishes them.
    #[schema(example = "desk")]
    pub name: String,
    /// The home of its daemon, which stays the same across restarts.
    #[schema(example = "home_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub home: String,
    /// Whether this is the machine of the daemon that sent the response.
    pub here: bool,
}
