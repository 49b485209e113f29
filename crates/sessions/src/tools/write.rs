//! `write`: a whole file.

use async_trait::async_trait;
use plans::{FileOperation, RelPath};
use serde::Deserialize;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional, required};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::tool::{About, Told, Tool};
use crate::ports::Ports;

#[derive(Debug)]
pub(super) struct Write {
    path: RelPath,
    text: String,
    executable: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    text: String,
    executable: Option<bool>,
}

#[async_trait]
impl Tool for Write {
    type Arguments = Arguments;
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = "Writes a file, whole: what was in it is gone. Directories on the way are made. To \
        change a part of a file use `edit`.";
    const ACCESS: Access = Access::WritesPath;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required("path", Takes::Text, "The file, for example `src/main.rs`."),
            required("text", Takes::Text, "All that the file is to hold."),
            optional(
                "executable",
                Takes::YesOrNo,
                "Whether it can be executed; as it is if left out.",
            ),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
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

    async fn run(self, running: &Running<'_>) -> Result<Told, ToolError> {
        let (path, bytes, lines) = (self.path.clone(), self.text.len(), self.text.lines().count());
        let operation = FileOperation::Write {
            path: self.path,
            content: self.text.into_bytes(),
            executable: self.executable,
            seen: None,
        };
        let changed = running.change(Self::NAME, operation).await?;
        Ok(Told::done(if changed.is_empty() {
            format!("`{path}` held exactly this already; nothing was changed.")
        } else {
            format!("Wrote {lines} lines, {bytes} bytes, to `{path}`.")
        }))
    }
}
