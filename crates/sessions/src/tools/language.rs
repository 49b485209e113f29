//! `language`: asks the language servers.

use async_trait::async_trait;
use plans::Change;
use protocol::CodeVerb;
use serde::Deserialize;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional, required};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::text::{SHOWN_LIMIT_BYTES, beginning, one_line};
use super::tool::{About, Tool, ToolOutput};
use crate::ports::{LanguageOrder, Ports};

/// The largest line or column.
const LARGEST: u64 = 1 << 31;

#[derive(Debug)]
pub(super) struct Language {
    verb: String,
    place: SandboxPath,
    line: Option<u32>,
    column: Option<u32>,
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    verb: String,
    path: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    name: Option<String>,
}

#[async_trait]
impl Tool for Language {
    type Arguments = Arguments;
    const NAME: &'static str = "language";
    const DESCRIPTION: &'static str = "Asks the language servers about code: where something is defined or used, the errors of \
        a file, its outline. They see the workspace's files as the user has them, without the changes in this plan. It changes nothing: a rename or a format shows the edits to make.";
    const ACCESS: Access = Access::Reads;

    fn parameters(ports: &Ports) -> Vec<Parameter> {
        let number = Takes::Number {
            least: 1,
            most: LARGEST,
        };
        vec![
            required("verb", Takes::OneOf(ports.languages.verbs()), questions()),
            optional(
                "path",
                Takes::Text,
                "The file. Only `workspace-symbols` can do without.",
            ),
            optional(
                "line",
                number.clone(),
                "The line, counted from 1, for a question about a position.",
            ),
            optional("column", number, "The column, counted from 1, in characters."),
            optional(
                "name",
                Takes::Text,
                "A part of the name for `workspace-symbols`; the new name for `rename`.",
            ),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        if arguments.column.is_some() && arguments.line.is_none() {
            return Err(ToolError::Refused("`column` needs a `line`.".to_owned()));
        }
        Ok(Self {
            place: running::place_or_root(options, arguments.path.as_deref()).await?,
            verb: arguments.verb,
            line: arguments.line,
            column: arguments.column,
            name: arguments.name,
        })
    }

    fn about(&self) -> About {
        let mut title = format!("{} {}", self.verb, self.place);
        for number in [self.line, self.column].into_iter().flatten() {
            title.push_str(&format!(":{number}"));
        }
        About {
            title: one_line(&title),
            subjects: vec![format!("{} {}", self.verb, self.place)],
            // The servers read the workspace, not the sandbox.
            touches: Touches::Nothing,
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let options = running.options;
        let (workspace, _) = running::roots(options).await?;
        let path = match self.place.as_path() {
            Some(path) => workspace.join(path.as_path()),
            None => workspace.clone(),
        };
        let order = LanguageOrder {
            verb: self.verb.clone(),
            path,
            line: self.line,
            column: self.column,
            name: self.name.clone(),
            workspace,
            timeout: options.timeout,
            scope: options.scope.clone(),
        };
        let answer = running
            .patience
            .within(options.ports.languages.ask(order))
            .await?
            .map_err(|error| ToolError::Refused(format!("{error} ({})", error.code)))?;
        let (shown, is_cut) = beginning(&answer, SHOWN_LIMIT_BYTES);
        let mut text = shown.to_owned();
        if is_cut {
            text.push_str("\n[the answer is cut; ask about less]");
        }
        if self.is_changed(running).await {
            text.push_str(&format!(
                "\n[`{}` was changed in this plan; the answer is about it as the user has it]",
                self.place
            ));
        }
        Ok(ToolOutput::done(text))
    }
}

/// The arguments that each question needs.
fn questions() -> String {
    let about_position = |wanted: bool| {
        let verbs = CodeVerb::ALL.iter().filter(|verb| verb.has_position() == wanted);
        let names = verbs.filter(|verb| **verb != CodeVerb::WorkspaceSymbols);
        names.map(|verb| format!("`{}`", verb.name())).collect::<Vec<_>>()
    };
    format!(
        "The question. {} need a `path`, a `line` and a `column`; {} need a `path`; `{}` needs a `name`.",
        about_position(true).join(", "),
        about_position(false).join(", "),
        CodeVerb::WorkspaceSymbols.name()
    )
}

impl Language {
    /// Whether the plan's version of the file differs from the one the servers see. It's only a note on top of an
    /// answer, so a failure to find out doesn't fail the call.
    async fn is_changed(&self, running: &Running<'_>) -> bool {
        let desk = &running.options.desk;
        let (Some(path), Some(plan)) = (self.place.as_path(), desk.opened()) else {
            return false;
        };
        let is_it = |change: &Change| change.path == *path || change.from.as_ref() == Some(path);
        match running.patience.within(desk.plans().changes(plan, None)).await {
            Ok(Ok(changes)) => changes.iter().any(is_it),
            _ => false,
        }
    }
}
