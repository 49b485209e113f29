//! `delete`: a file, or a directory with all that is in it.

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
pub(super) struct Delete {
    path: RelPath,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
}

#[async_trait]
impl Tool for Delete {
    type Arguments = Arguments;
    const NAME: &'static str = "delete";
    const DESCRIPTION: &'static str = "Deletes a file, or a directory with everything in it.";
    const ACCESS: Access = Access::WritesPath;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![required("path", Takes::Text, "The file or directory.")]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        Ok(Self {
            path: running::place(options, &arguments.path).await?.path()?,
        })
    }

    fn about(&self) -> About {
        About {
            title: format!("delete {}", self.path),
            subjects: vec![self.path.to_string()],
            touches: Touches::Writes(vec![SandboxPath::Path(self.path.clone())]),
            whole_trees: vec![self.path.clone()],
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<Told, ToolError> {
        let path = self.path.clone();
        let operation = FileOperation::Delete { path: self.path };
        let changed = running.change(Self::NAME, operation).await?;
        Ok(Told::done(match changed.len() {
            0 | 1 => format!("Deleted `{path}`."),
            count => format!("Deleted `{path}` and {} files and directories in it.", count - 1),
        }))
    }
}
