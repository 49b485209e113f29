//! `move`: another path for a file or a directory.

use async_trait::async_trait;
use plans::{FileOperation, RelPath};
use serde::Deserialize;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, required};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::tool::{About, Told, Tool};
use crate::ports::Ports;

#[derive(Debug)]
pub(super) struct Move {
    from: RelPath,
    to: RelPath,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    from: String,
    to: String,
}

#[async_trait]
impl Tool for Move {
    type Arguments = Arguments;
    const NAME: &'static str = "move";
    const DESCRIPTION: &'static str = "Gives a file or a directory another path. Nothing may be there yet; directories on \
        the way are made.";
    const ACCESS: Access = Access::WritesPath;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required("from", Takes::Text, "The file or directory."),
            required("to", Takes::Text, "Its new path, with its name."),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        Ok(Self {
            from: running::place(options, &arguments.from).await?.path()?,
            to: running::place(options, &arguments.to).await?.path()?,
        })
    }

    fn about(&self) -> About {
        let places = [&self.from, &self.to].map(|path| SandboxPath::Path(path.clone()));
        About {
            title: format!("move {} to {}", self.from, self.to),
            subjects: vec![self.from.to_string(), self.to.to_string()],
            touches: Touches::Writes(places.into()),
            whole_trees: vec![self.from.clone()],
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<Told, ToolError> {
        let told = format!("Moved `{}` to `{}`.", self.from, self.to);
        let operation = FileOperation::Rename {
            from: self.from,
            path: self.to,
        };
        running.change(Self::NAME, operation).await?;
        Ok(Told::done(told))
    }
}
