//! Context for agents: one text, limited to what they may read.

use std::collections::BTreeSet;
use std::fmt::Write;

use async_trait::async_trait;
use context::{Answer, StrategyOutcome};
use sessions::{ContextFinder, ContextFound, ContextGround, ContextOrder, FinderError};

use super::service::{ContextService, FocusFrom, Question};
use super::tree::TreeRef;

#[async_trait]
impl ContextFinder for ContextService {
    async fn find(&self, order: ContextOrder) -> Result<ContextFound, FinderError> {
        let question = Question {
            tree: match order.ground {
                ContextGround::Plan(plan) => TreeRef::Plan(plan),
                ContextGround::Directory(directory) => TreeRef::Directory(directory),
            },
            query: order.query,
            focus: order.focus,
            focus_from: FocusFrom::Root,
            budget_tokens: Some(order.budget_tokens),
            // A tool may have minutes, but an answer that takes longer than the setting isn't worth the wait.
            patience: Some(order.timeout.min(self.contexts.settings().patience)),
            only: Vec::new(),
            without: Vec::new(),
            tokenizer: None,
            readable: order.readable,
        };
        match self.ask(question, &order.scope).await {
            Ok(answered) => Ok(found(answered.answer)),
            Err(error) => Err(FinderError {
                text: error.to_string(),
            }),
        }
    }
}

fn found(answer: Answer) -> ContextFound {
    let fragments = answer.fragments.iter();
    let files: BTreeSet<String> = fragments.map(|fragment| fragment.path.to_string()).collect();
    ContextFound {
        summary: summary(&answer, files.len()),
        text: if answer.fragments.is_empty() {
            String::new()
        } else {
            answer.text
        },
        files: files.into_iter().collect(),
    }
}

/// How much was found and which strategies didn't answer, in one line.
fn summary(answer: &Answer, files: usize) -> String {
    let counted = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let mut summary = format!(
        "{} of {}, {}",
        counted(answer.fragments.len(), "piece"),
        counted(files, "file"),
        counted(answer.tokens, "token"),
    );
    for report in &answer.strategies {
        let did_not = match &report.outcome {
            StrategyOutcome::Ran { .. }
            | StrategyOutcome::NotApplicable { .. }
            | StrategyOutcome::LeftOut => continue,
            StrategyOutcome::TimedOut { .. } | StrategyOutcome::OutOfTime => "timed out",
            StrategyOutcome::Open { .. } => "is not asked for a while",
            StrategyOutcome::Failed { .. } => "failed",
        };
        // Writing to a string can't fail.
        let _ = write!(summary, "; {} {did_not}", report.strategy);
    }
    summary
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use context::{Depth, Fragment, Lines, StrategyName, StrategyReport, TreePath};

    use super::*;

    #[test]
    fn an_answer_is_summed_up_in_a_line_and_names_each_file_once() {
        let fragment = |path: &str, line: u32| Fragment {
            path: TreePath::new(path).unwrap(),
            lines: Lines::one(line).unwrap(),
            depth: Depth::Body,
            symbol: None,
            text: "text".to_owned(),
            tokens: 1,
            score: 1.0,
            parts: Vec::new(),
        };
        let report = |name: &str, outcome: StrategyOutcome| StrategyReport {
            strategy: StrategyName::new(name),
            outcome,
            took: Duration::ZERO,
        };
        let answer = Answer {
            fragments: vec![fragment("b", 1), fragment("a", 1), fragment("b", 9)],
            text: "all".to_owned(),
            tokens: 1,
            budget_tokens: 2,
            strategies: vec![
                report("keyword", StrategyOutcome::Ran { hits: 1 }),
                report("recent", StrategyOutcome::OutOfTime),
                report(
                    "symbols",
                    StrategyOutcome::Failed {
                        why: "why".to_owned(),
                    },
                ),
            ],
            left_out: Vec::new(),
            left_out_total: 0,
            took: Duration::ZERO,
        };
        let expected = ContextFound {
            text: "all".to_owned(),
            summary: "3 pieces of 2 files, 1 token; recent timed out; symbols failed".to_owned(),
            files: vec!["a".to_owned(), "b".to_owned()],
        };
        assert_eq!(found(answer.clone()), expected);
        let nothing = Answer {
            fragments: Vec::new(),
            strategies: Vec::new(),
            tokens: 0,
            ..answer
        };
        let expected = ContextFound {
            summary: "0 pieces of 0 files, 0 tokens".to_owned(),
            ..ContextFound::default()
        };
        assert_eq!(found(nothing), expected);
    }
}
