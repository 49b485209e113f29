//! The conversation so far, for an agent that does not know it.

use eventlog::Log;
use protocol::TurnId;

use crate::error::SessionError;
use crate::history::{self, Past, Said};

/// The most bytes to put before a prompt. The newest turns take priority.
const BUDGET_BYTES: usize = 32 * 1024;

/// The conversation so far as text; `None` if there is none.
pub(super) async fn before(log: &Log, previous: Option<TurnId>) -> Result<Option<String>, SessionError> {
    let turns = history::read(log, previous, BUDGET_BYTES).await?;
    Ok((!turns.is_empty()).then(|| in_words(&turns)))
}

/// The prompt, preceded by the conversation so far.
pub(super) fn with(before: &str, prompt: &str) -> String {
    format!(
        "This conversation began before you were started. What was said in it so far:\n\n{before}Now the user says:\n\n{prompt}"
    )
}

fn in_words(turns: &[Past]) -> String {
    let mut text = String::new();
    for turn in turns {
        text.push_str(&format!("The user said:\n{}\n\nThe answer was:\n", turn.prompt));
        for said in &turn.said {
            match said {
                Said::Text(said) => text.push_str(&format!("{}\n", said.trim_end())),
                Said::Tool { tool, .. } => text.push_str(&format!("[used {tool}]\n")),
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use protocol::TurnState;
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_was_said_is_told_in_order() {
        let turn = |prompt: &str, said: Vec<Said>| Past {
            prompt: prompt.to_owned(),
            said,
            state: TurnState::Done,
        };
        let tool = Said::Tool {
            tool: "write".to_owned(),
            arguments: Value::Null,
            answer: String::new(),
        };
        let turns = [
            turn(
                "one?",
                vec![
                    Said::Text("let me see\n".to_owned()),
                    tool,
                    Said::Text("1".to_owned()),
                ],
            ),
            turn("two?", Vec::new()),
        ];
        assert_eq!(
            with(&in_words(&turns), "three?"),
            "This conversation began before you were started. What was said in it so far:\n\nThe user said:\none?\n\nThe answer was:\nlet me see\n[used write]\n1\n\nThe user said:\ntwo?\n\nThe answer was:\n\nNow the user says:\n\nthree?"
        );
    }
}
