//! The pieces of code that belong to a question.

use protocol::{ContextAnswer, ContextOutcome, ContextQuestion, ContextStrategyState};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::entry::{
    Answer, Entry, Interruption, Nature, directory_member, number, object, plan_member, reads, text, texts,
};
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::current::{own_plan, plan_of};
use crate::mcp::error::ToolError;
use crate::mcp::place::{directory_of, path_in_plan};

/// How many tokens an answer has if nobody says: what fits into the largest text of an answer.
const USUAL_TOKENS: u64 = 6_000;
/// The most tokens that can be asked for. A token has about four bytes, and a text has a limit.
const MOST_TOKENS: u64 = 8_000;

pub(super) const TOOLS: &[Entry] = &[Entry {
    name: "context",
    title: "Find code for a question",
    description: "Finds the pieces of the code base that belong to a question, in words or names, within a number of tokens. \
        Use it first when you do not know where something is; it sees your plan's changes. \
        Example: {\"query\": \"where is the retry policy decided\"}",
    schema,
    nature: Nature::Reads,
    interruption: Interruption::Dropped,
    run: |call, given| Box::pin(context(call, given)),
    read: reads::<Arguments>,
}];

fn schema() -> Value {
    object(
        &[(
            "query",
            text("The question: words, names, a sentence. May be empty if there is a file in focus."),
        )],
        &[
            ("focus", texts("Files that the question is about.")),
            (
                "budget_tokens",
                number(
                    1,
                    MOST_TOKENS,
                    "How many tokens the answer may have; 6000 if left out.",
                ),
            ),
            plan_member(),
            directory_member(),
        ],
    )
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

async fn context(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let Arguments {
        query,
        focus,
        budget_tokens,
        plan,
        directory,
    } = arguments(given)?;
    let ground = match (&plan, &directory) {
        (Some(named), _) => Some(plan_of(call, Some(named)).await?),
        (None, Some(_)) => None,
        (None, None) => own_plan(call).await?,
    };
    let mut question = ContextQuestion {
        query,
        budget_tokens: Some(budget_tokens.unwrap_or(USUAL_TOKENS).min(MOST_TOKENS)),
        ..ContextQuestion::default()
    };
    match &ground {
        Some(ground) => {
            let paths = focus.iter().map(|path| path_in_plan(ground, path));
            question.focus = paths.collect::<Result<_, _>>()?;
            question.plan = Some(ground.id.clone());
        }
        None => {
            let directory = directory_of(call, directory.as_deref()).await?;
            question.directory = Some(directory.display().to_string());
            question.focus = focus;
        }
    }
    let answer: ContextAnswer = call.post("/v1/context", &question).await?;
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
