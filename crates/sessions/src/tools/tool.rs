//! What a tool is.

use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use plans::RelPath;
use protocol::ToolState;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{self, Parameter};
use super::running::Running;
use super::spec::{Access, ToolSpec, ToolboxOptions};
use crate::ports::Ports;

/// A tool. A value of it is one call with valid arguments.
#[async_trait]
pub(super) trait Tool: Sized + Send + Sync + fmt::Debug + 'static {
    /// Its arguments as given. The fields match [`parameters`](Self::parameters); a test compares them.
    type Arguments: DeserializeOwned + Send;
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const ACCESS: Access;

    /// Its parameters. `Ports` determine which questions can be asked.
    fn parameters(ports: &Ports) -> Vec<Parameter>;

    /// Validates the arguments further than the table can. It changes nothing.
    async fn prepare(arguments: Self::Arguments, options: &ToolboxOptions) -> Result<Self, ToolError>;

    /// What must be known before it runs.
    fn about(&self) -> About;

    /// Runs the call. It's never dropped midway; it stops by itself when the turn is stopped or time is up.
    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError>;
}

/// What must be known about a call before it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    /// What it's about to do, in one line.
    pub(super) title: String,
    /// What to check against the rules: each must be allowed.
    pub(super) subjects: Vec<String>,
    pub(super) touches: Touches,
    /// Directories that it affects with everything below them; the rules are checked for those files too.
    pub(super) whole_trees: Vec<RelPath>,
}

/// The result of a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ToolOutput {
    pub(super) state: ToolState,
    pub(super) text: String,
    /// Where to find the full output, if it was truncated.
    pub(super) full: Option<String>,
}

impl ToolOutput {
    pub(super) fn done(text: impl Into<String>) -> Self {
        Self {
            state: ToolState::Done,
            text: text.into(),
            full: None,
        }
    }

    /// Adds where to find the full output.
    pub(super) fn with_full(self, full: impl Into<String>) -> Self {
        Self {
            full: Some(full.into()),
            ..self
        }
    }
}

/// A boxed future.
pub(super) type Coming<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A call that is being prepared.
type Preparing<'a> = Coming<'a, Result<Box<dyn Prepared>, ToolError>>;

/// A kind of tool, as the toolbox stores it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    description: &'static str,
    access: Access,
    parameters: fn(&Ports) -> Vec<Parameter>,
    prepare: for<'a> fn(Value, &'a ToolboxOptions) -> Preparing<'a>,
}

/// A call with valid arguments.
pub(super) struct Ready {
    pub(super) tool: &'static str,
    /// The arguments, as shown in the turn's stream.
    pub(super) arguments: Value,
    pub(super) about: About,
    work: Box<dyn Prepared>,
}

impl Kind {
    pub(super) const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            description: T::DESCRIPTION,
            access: T::ACCESS,
            parameters: T::parameters,
            prepare: prepare::<T>,
        }
    }

    pub(super) fn parameters(&self, ports: &Ports) -> Vec<Parameter> {
        (self.parameters)(ports)
    }

    pub(super) fn spec(&self, ports: &Ports) -> ToolSpec {
        ToolSpec {
            name: self.name,
            description: self.description,
            schema: parameters::schema(&self.parameters(ports)),
            access: self.access,
        }
    }

    pub(super) async fn prepare(
        &self,
        arguments: Value,
        options: &ToolboxOptions,
    ) -> Result<Ready, ToolError> {
        let arguments = parameters::check(self.name, &self.parameters(&options.ports), arguments)?;
        let work = (self.prepare)(arguments.clone(), options).await?;
        Ok(Ready {
            tool: self.name,
            arguments,
            about: work.about(),
            work,
        })
    }
}

impl Ready {
    pub(super) async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        self.work.run(running).await
    }
}

fn prepare<T: Tool>(arguments: Value, options: &ToolboxOptions) -> Preparing<'_> {
    Box::pin(async move {
        // The table has already been checked, so this fails only if the table and the struct disagree.
        let arguments = serde_json::from_value(arguments)
            .map_err(|error| ToolError::Refused(format!("the arguments cannot be used: {error}.")))?;
        let call: Box<dyn Prepared> = Box::new(T::prepare(arguments, options).await?);
        Ok(call)
    })
}

#[async_trait]
trait Prepared: Send {
    fn about(&self) -> About;

    async fn run(self: Box<Self>, running: &Running<'_>) -> Result<ToolOutput, ToolError>;
}

#[async_trait]
impl<T: Tool> Prepared for T {
    fn about(&self) -> About {
        Tool::about(self)
    }

    async fn run(self: Box<Self>, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        Tool::run(*self, running).await
    }
}
