//! `write`, `move` and `delete`: whole files and directories.

use async_trait::async_trait;
use plans::{FileOperation, RelPath};
use serde::Deserialize;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional, required};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::tool::{About, Tool, ToolOutput};
use crate::ports::Ports;

#[derive(Debug)]
pub(super) struct Write {
    path: RelPath,
    text: String,
    executable: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArguments {
    path: String,
    text: String,
    executable: Option<bool>,
}

#[async_trait]
impl Tool for Write {
    type Arguments = WriteArguments;
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = "Writes a whole file, and replaces what was in it. Missing directories are created. To \
        change a part of a file use `edit`.";
    const ACCESS: Access = Access::WritesPath;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required("path", Takes::Text, "The file, for example `src/main.rs`."),
            required("text", Takes::Text, "The whole content."),
            optional(
                "executable",
                Takes::YesOrNo,
                "Whether it is executable. Default: as it was.",
            ),
        ]
    }

    async fn prepare(arguments: WriteArguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        Ok(Self {
            path: running::place(options, &arguments.path).await?.path()?,
            text: arguments.text,
            executable: arguments.executable,
        })
    }

    fn about(&self) -> About {
        About {
            title: format!("write {}", self.path),
            subjects: vec![self.path.to_string()],
            touches: Touches::Writes(vec![SandboxPath::Path(self.path.clone())]),
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let (path, bytes, lines) = (self.path.clone(), self.text.len(), self.text.lines().count());
        let operation = FileOperation::Write {
            path: self.path,
            content: self.text.into_bytes(),
            executable: self.executable,
            seen: None,
        };
        let changed = running.change(Self::NAME, operation).await?;
        Ok(ToolOutput::done(if changed.is_empty() {
            format!("`{path}` held exactly this already; nothing was changed.")
        } else {
            format!("Wrote {lines} lines, {bytes} bytes, to `{path}`.")
        }))
    }
}

#[derive(Debug)]
pub(super) struct Move {
    from: RelPath,
    to: RelPath,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveArguments {
    from: String,
    to: String,
}

#[async_trait]
impl Tool for Move {
    type Arguments = MoveArguments;
    const NAME: &'static str = "move";
    const DESCRIPTION: &'static str = "Moves a file or a directory to a path where nothing is yet. Missing directories are \
        created.";
    const ACCESS: Access = Access::WritesPath;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required("from", Takes::Text, "The file or directory."),
            required("to", Takes::Text, "Its new path, with its name."),
        ]
    }

    async fn prepare(arguments: MoveArguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
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

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let told = format!("Moved `{}` to `{}`.", self.from, self.to);
        let operation = FileOperation::Rename {
            from: self.from,
            path: self.to,
        };
        running.change(Self::NAME, operation).await?;
        Ok(ToolOutput::done(told))
    }
}

#[derive(Debug)]
pub(super) struct Delete {
    path: RelPath,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArguments {
    path: String,
}

#[async_trait]
impl Tool for Delete {
    type Arguments = DeleteArguments;
    const NAME: &'static str = "delete";
    const DESCRIPTION: &'static str = "Deletes a file, or a directory with everything in it.";
    const ACCESS: Access = Access::WritesPath;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![required("path", Takes::Text, "The file or directory.")]
    }

    async fn prepare(arguments: DeleteArguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
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

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let path = self.path.clone();
        let operation = FileOperation::Delete { path: self.path };
        let changed = running.change(Self::NAME, operation).await?;
        Ok(ToolOutput::done(match changed.len() {
            0 | 1 => format!("Deleted `{path}`."),
            count => format!("Deleted `{path}` and {} files and directories in it.", count - 1),
        }))
    }
}
