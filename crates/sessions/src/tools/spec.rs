//! What is said of a tool, to it, and by it.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Scope};
use protocol::ToolState;
use serde_json::Value;

use crate::asking::Asker;
use crate::desk::PlanDesk;
use crate::ports::Ports;

/// What a toolbox is made of.
#[derive(Clone, Debug)]
pub struct ToolboxOptions {
    /// The plan.
    pub desk: PlanDesk,
    /// Asks the user.
    pub asker: Asker,
    /// What others do.
    pub ports: Ports,
    /// Cancelled when the turn shall stop.
    pub scope: Scope,
    /// How long a tool may take, unless it says so itself.
    pub timeout: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in words for a model.
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
    /// It writes to the path that its arguments name. Those for one path run one after the other.
    WritesPath,
    /// It may write anywhere, and runs alone.
    WritesAnywhere,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, as the agent gave them.
    pub arguments: Value,
}

/// What an agent is told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolAnswer {
    /// How it ended.
    pub state: ToolState,
    /// The answer, bounded.
    pub text: String,
    /// Where all of it is, if that is more.
    pub full: Option<String>,
}
