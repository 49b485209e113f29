//! The description of a tool, a call to it, and its answer.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Scope};
use protocol::ToolState;
use serde_json::Value;

use crate::asking::Asker;
use crate::desk::PlanDesk;
use crate::ports::Ports;

/// What a toolbox needs.
#[derive(Clone, Debug)]
pub struct ToolboxOptions {
    /// The plan.
    pub desk: PlanDesk,
    /// Asks the user.
    pub asker: Asker,
    /// Access to commands, language servers and the context finder.
    pub ports: Ports,
    /// Cancelled when the turn should stop.
    pub scope: Scope,
    /// How long a tool may take, unless it sets its own limit.
    pub timeout: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// A tool, as described to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What it's for, written for a model.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// What it does to the plan.
    pub access: Access,
}

/// What a tool does to the plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// It only reads. Several of these run together.
    Reads,
    /// It writes to the path that its arguments name. Calls for the same path run one after the other.
    WritesPath,
    /// It may write anywhere, and runs alone.
    WritesAnywhere,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, as the agent gave them.
    pub arguments: Value,
}

/// The answer an agent gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolAnswer {
    /// How the call ended.
    pub state: ToolState,
    /// The answer, truncated to the limit.
    pub text: String,
    /// Where to find the full answer, if it was truncated.
    pub full: Option<String>,
}
