//! Code context for a prompt, found before the agent starts to work on it.

use std::time::Duration;

use protocol::{RulePermission, ToolState};
use serde_json::json;

use super::context::Context;
use super::path::SandboxPath;
use super::running::Patience;
use super::spec::ToolboxOptions;
use super::text::{beginning, bounded, one_line};
use super::tool::Tool;
use super::toolbox::Toolbox;
use crate::permissions::decide;
use crate::sink::Sink;

/// How long the finder may take. It then answers with what it has.
const FINDER_TIME: Duration = Duration::from_millis(2_000);
/// How long the turn waits if the finder exceeds that.
const LONGEST_WAIT: Duration = Duration::from_millis(3_000);
/// How much of a prompt is used as the query. The request is usually at the start; a longer text would match
/// everything.
const QUERY_LIMIT_BYTES: usize = 4 * 1024;

impl Toolbox {
    /// Finds the code relevant to a prompt, within a token budget. The turn's stream shows it as a call of the tool
    /// `context`. Returns `None` if nothing was found. A finder that fails or takes too long costs the turn only that
    /// time, and the user is never asked for permission.
    ///
    /// *Cancel safety*: if dropped midway, the stream never sees the end of the call; stop the turn instead.
    pub async fn opening(&self, prompt: &str, budget_tokens: usize, sink: &Sink) -> Option<String> {
        let options = ToolboxOptions {
            timeout: FINDER_TIME,
            ..self.options().clone()
        };
        if budget_tokens == 0 || !options.ports.context.can_find() || prompt.trim().is_empty() {
            return None;
        }
        let patience = Patience::of(&options, LONGEST_WAIT);
        let (query, _) = beginning(prompt, QUERY_LIMIT_BYTES);
        let opening = Context {
            query: query.to_owned(),
            place: SandboxPath::Root,
            budget_tokens,
        };
        let about = opening.about();
        let rules = patience.within(options.asker.rules()).await.ok()?;
        let is_allowed = |subject: &String| decide(&rules, Context::NAME, subject) == RulePermission::Allow;
        if !about.subjects.iter().all(is_allowed) {
            return None;
        }
        let call = sink.tool(Context::NAME, "").await.ok()?;
        let arguments = json!({ "query": opening.query, "budget": budget_tokens });
        call.started(about.title, arguments).await.ok()?;
        let looked = patience.within(opening.find(&options, rules)).await;
        let (state, answer, text) = match looked.flatten() {
            Ok(found) if found.text.is_empty() => (ToolState::Done, "[nothing was found]".to_owned(), None),
            Ok(found) => {
                let answer = format!("{}\n[{}]", found.text.trim_end(), one_line(&found.summary));
                (ToolState::Done, answer, Some(found.text))
            }
            Err(error) => {
                tracing::info!(%error, "a turn begins without context");
                (error.state(), error.to_string(), None)
            }
        };
        // A turn that accepts nothing more is over, and its scope is cancelled.
        call.ended(state, bounded(answer), None).await.ok()?;
        text
    }
}
