//! `context`: finds the code relevant to a question.

use async_trait::async_trait;
use protocol::PermissionRule;
use serde::Deserialize;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional, required};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::text::{SHOWN_LIMIT_BYTES, beginning, one_line};
use super::tool::{About, Tool, ToolOutput};
use crate::permissions::Readable;
use crate::ports::{ContextFound, ContextGround, ContextOrder, Ports};

/// The default token budget of an answer.
const USUAL_TOKENS: usize = 4_000;
/// The largest token budget: about as much as fits into an answer.
const MOST_TOKENS: u64 = 8_000;
/// The smallest useful token budget; a smaller one can't hold a single piece.
const LEAST_TOKENS: u64 = 100;

#[derive(Debug)]
pub(super) struct Context {
    pub(super) query: String,
    pub(super) place: SandboxPath,
    pub(super) budget_tokens: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    query: String,
    path: Option<String>,
    budget: Option<usize>,
}

#[async_trait]
impl Tool for Context {
    type Arguments = Arguments;
    const NAME: &'static str = "context";
    const DESCRIPTION: &'static str = "Finds the code that is relevant to a question, best first: by words, by names of \
        definitions, by calls, by recent changes. Use it when you don't know where something is; use `search` to find every \
        occurrence of an exact text.";
    const ACCESS: Access = Access::Reads;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required(
                "query",
                Takes::Text,
                "The question: words, names from the code, or a sentence.",
            ),
            optional("path", Takes::Text, "A file that the question is about."),
            optional(
                "budget",
                Takes::Number {
                    least: LEAST_TOKENS,
                    most: MOST_TOKENS,
                },
                "How many tokens the answer may have. Default: 4000.",
            ),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        if arguments.query.trim().is_empty() && arguments.path.is_none() {
            return Err(ToolError::Refused(
                "`query` is empty, so there is nothing to look for. Ask with words or names.".to_owned(),
            ));
        }
        Ok(Self {
            place: running::place_or_root(options, arguments.path.as_deref()).await?,
            query: arguments.query,
            budget_tokens: arguments.budget.unwrap_or(USUAL_TOKENS),
        })
    }

    fn about(&self) -> About {
        About {
            title: one_line(&format!("context {}", self.query)),
            subjects: vec![self.place.to_string()],
            // Pieces can come from any file, so it waits for all earlier writes.
            touches: Touches::Reads(vec![SandboxPath::Root]),
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let found = self.find(running.options, running.rules.clone());
        let found = running.patience.within(found).await??;
        if found.text.is_empty() {
            let text = "[nothing was found; ask with other words, or use `search`]";
            return Ok(ToolOutput::done(text));
        }
        let (shown, is_cut) = beginning(&found.text, SHOWN_LIMIT_BYTES);
        let cut = if is_cut { "; cut, ask for less" } else { "" };
        let summary = one_line(&found.summary);
        Ok(ToolOutput::done(format!(
            "{}\n[{summary}{cut}]",
            shown.trim_end()
        )))
    }
}

impl Context {
    /// Searches the plan if there is one, otherwise the directory. *Cancel safety*: may be dropped at any time.
    pub(super) async fn find(
        &self,
        options: &ToolboxOptions,
        rules: Vec<PermissionRule>,
    ) -> Result<ContextFound, ToolError> {
        let readable = Readable::by(Self::NAME, rules);
        let ground = match options.desk.existing().await? {
            Some(plan) => ContextGround::Plan(plan),
            // Nothing has changed yet, and a search is no reason to open a plan.
            None => ContextGround::Directory(options.desk.directory().to_owned()),
        };
        let order = ContextOrder {
            ground,
            query: self.query.clone(),
            focus: self
                .place
                .as_path()
                .map(ToString::to_string)
                .into_iter()
                .collect(),
            budget_tokens: self.budget_tokens,
            timeout: options.timeout,
            readable: readable.clone(),
            scope: options.scope.clone(),
        };
        let found = options
            .ports
            .context
            .find(order)
            .await
            .map_err(|error| ToolError::Refused(format!("{error}.")))?;
        // The finder follows the rules itself; this check makes sure that nothing gets past them.
        match found.files.iter().find(|file| !readable.allows(file)) {
            None => Ok(found),
            Some(_) => Err(ToolError::Refused(
                "what was found may not be shown. Use `search` instead.".to_owned(),
            )),
        }
    }
}
