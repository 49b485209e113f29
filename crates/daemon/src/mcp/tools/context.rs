//! Finds the code that is relevant to a question.
//!
//! The corresponding tool of sessions uses the same service through its port (`context::finder`), because it must
//! follow the session's rules about what may be read, and has its own budget.

use protocol::{ContextOutcome, ContextQuestion, ContextStrategyState};
use serde::Deserialize;
use sessions::tools::{Takes, optional, required};

use super::entry::{Answer, Effect, Entry, directory, plan, tool};
use crate::context::acts;
use crate::mcp::call::{Call, Reply};
use crate::mcp::error::ToolError;
use crate::mcp::working_plan::{own_plan, plan_of};

/// How many tokens an answer has by default: as many as fit into the largest text of an answer.
const USUAL_TOKENS: u64 = 6_000;
/// The most tokens that can be requested. A token has about four bytes, and a text has a limit.
const MOST_TOKENS: u64 = 8_000;

pub(super) fn tools() -> Vec<Entry> {
    let budget = Takes::Capped {
        least: 1,
        most: MOST_TOKENS,
    };
    vec![tool(
        "context",
        "Find code for a question",
        "Finds the code that is relevant to a question, in words or names, within a token budget. Use it first when you don't \
         know where something is; it sees your plan's changes. \
         Example: {\"query\": \"where is the retry policy decided\"}",
        vec![
            required(
                "query",
                Takes::Text,
                "The question: words, names, a sentence. May be empty if `focus` names a file.",
            ),
            optional("focus", Takes::Texts, "Files that the question is about."),
            optional(
                "budget_tokens",
                budget,
                "How many tokens the answer may have. Default: 6000.",
            ),
            plan(),
            directory(),
        ],
        Effect::Reads,
        |call, arguments| Box::pin(context(call, arguments)),
    )]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    #[serde(default)]
    focus: Vec<String>,
    budget_tokens: Option<u64>,
    plan: Option<String>,
    directory: Option<String>,
}

async fn context(call: &Call<'_>, arguments: Arguments) -> Result<Answer, ToolError> {
    let plan = match (&arguments.plan, &arguments.directory) {
        (Some(named), _) => Some(plan_of(call, Some(named)).await?),
        (None, Some(_)) => None,
        (None, None) => own_plan(call).await?,
    };
    let mut question = ContextQuestion {
        query: arguments.query,
        budget_tokens: Some(arguments.budget_tokens.unwrap_or(USUAL_TOKENS)),
        ..ContextQuestion::default()
    };
    match &plan {
        Some(plan) => {
            let paths = arguments
                .focus
                .iter()
                .map(|path| Ok(plan.path(path)?.to_string()));
            question.focus = paths.collect::<Result<_, ToolError>>()?;
            question.plan = Some(plan.id.to_string());
        }
        None => {
            let directory = call.directory(arguments.directory.as_deref()).await?;
            question.directory = Some(directory.display().to_string());
            question.focus = arguments.focus;
        }
    }
    let answer = acts::ask(call.app, question).await?;
    let mut text = match answer.outcome {
        ContextOutcome::Found => answer.text,
        ContextOutcome::NothingMatched => {
            "Nothing matched. Try other words, or search with plan_shell.\n".to_owned()
        }
        ContextOutcome::NothingFits => {
            let tokens = answer.budget_tokens;
            format!(
                "Something matched, but nothing fits into {tokens} tokens. Try again with a larger budget_tokens.\n"
            )
        }
    };
    for strategy in &answer.strategies {
        let failed = matches!(
            strategy.state,
            ContextStrategyState::TimedOut
                | ContextStrategyState::OutOfTime
                | ContextStrategyState::Open
                | ContextStrategyState::Failed
        );
        if failed {
            let why = strategy.why.as_deref().unwrap_or("it didn't finish in time");
            text.push_str(&format!("\n[{} returned nothing: {why}]", strategy.id));
        }
    }
    Ok(Reply::text(text).into())
}
