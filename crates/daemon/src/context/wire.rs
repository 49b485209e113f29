//! Converts answers for the wire, for the HTTP API and the page.

use std::time::Duration;

use context::{
    Answer, Depth, Fragment, IndexInfo, IndexState, LeftOut, ScorePart, StrategyName, StrategyOutcome,
    StrategyReport, StrategySettings,
};

use super::service::Answered;
use crate::app::{whole_ms, whole_ms_up};
use crate::times::rfc3339;

pub(crate) fn answer_to_wire(answered: Answered, plan: Option<String>) -> protocol::ContextAnswer {
    let Answered { root, answer, index } = answered;
    protocol::ContextAnswer {
        root: root.display().to_string(),
        plan,
        outcome: outcome(&answer),
        fragments: answer.fragments.into_iter().map(fragment_to_wire).collect(),
        text: answer.text,
        tokens: answer.tokens as u64,
        budget_tokens: answer.budget_tokens as u64,
        strategies: answer.strategies.iter().map(strategy_to_wire).collect(),
        left_out: answer.left_out.iter().map(left_out_to_wire).collect(),
        left_out_total: answer.left_out_total as u64,
        took_ms: milliseconds(answer.took),
        index: index_to_wire(&index),
    }
}

fn outcome(answer: &Answer) -> protocol::ContextOutcome {
    if !answer.fragments.is_empty() {
        protocol::ContextOutcome::Found
    } else if answer.left_out_total > 0 || answer.budget_tokens == 0 {
        protocol::ContextOutcome::NothingFits
    } else {
        protocol::ContextOutcome::NothingMatched
    }
}

fn fragment_to_wire(fragment: Fragment) -> protocol::ContextFragment {
    protocol::ContextFragment {
        path: fragment.path.to_string(),
        first_line: fragment.lines.first(),
        last_line: fragment.lines.last(),
        depth: match fragment.depth {
            Depth::Body => protocol::ContextDepth::Body,
            Depth::Signature => protocol::ContextDepth::Signature,
            Depth::Name => protocol::ContextDepth::Name,
        },
        symbol: fragment.symbol,
        text: fragment.text,
        tokens: fragment.tokens as u64,
        score: fragment.score,
        parts: fragment.parts.into_iter().map(part_to_wire).collect(),
    }
}

fn part_to_wire(part: ScorePart) -> protocol::ContextScorePart {
    protocol::ContextScorePart {
        strategy: part.strategy.to_string(),
        rank: part.rank as u64,
        adds: part.adds,
        why: part.why,
    }
}

fn left_out_to_wire(left_out: &LeftOut) -> protocol::ContextLeftOut {
    protocol::ContextLeftOut {
        path: left_out.path.to_string(),
        first_line: left_out.lines.first(),
        last_line: left_out.lines.last(),
        score: left_out.score,
        tokens: left_out.tokens as u64,
    }
}

fn strategy_to_wire(report: &StrategyReport) -> protocol::ContextStrategy {
    use protocol::ContextStrategyState as State;
    let (state, hits, why, retry_after) = match &report.outcome {
        StrategyOutcome::Ran { hits } => (State::Ran, *hits, None, None),
        StrategyOutcome::NotApplicable { why } => (State::NotApplicable, 0, Some(why.clone()), None),
        StrategyOutcome::TimedOut { after } => {
            let why = format!("it had {} ms", whole_ms(*after));
            (State::TimedOut, 0, Some(why), None)
        }
        StrategyOutcome::OutOfTime => (State::OutOfTime, 0, None, None),
        StrategyOutcome::Open { retry_after } => (State::Open, 0, None, *retry_after),
        StrategyOutcome::Failed { why } => (State::Failed, 0, Some(why.clone()), None),
        StrategyOutcome::LeftOut => (State::LeftOut, 0, None, None),
    };
    protocol::ContextStrategy {
        id: report.strategy.to_string(),
        state,
        took_ms: milliseconds(report.took),
        hits: hits as u64,
        why,
        retry_after_ms: retry_after.map(whole_ms_up),
    }
}

pub(crate) fn index_to_wire(index: &IndexInfo) -> protocol::ContextIndex {
    use protocol::ContextIndexState as State;
    let (state, why, files) = match &index.state {
        IndexState::Building { files } => (State::Building, None, *files),
        IndexState::Ready => (State::Ready, None, index.files as u64),
        IndexState::Failed { why } => (State::Failed, Some(why.clone()), index.files as u64),
        // Only the daemon closes it: when it stops, or when the index is removed.
        IndexState::Closed => (State::Failed, Some("it is closed".to_owned()), index.files as u64),
    };
    protocol::ContextIndex {
        root: index.root.display().to_string(),
        state,
        why,
        files,
        source_bytes: index.source_bytes,
        index_bytes: index.index_bytes,
        used_at: rfc3339(index.used),
    }
}

pub(crate) fn strategy_info_to_wire(
    (name, set): (StrategyName, StrategySettings),
) -> protocol::ContextStrategyInfo {
    protocol::ContextStrategyInfo {
        id: name.to_string(),
        breaker: name.circuit(),
        enabled: set.enabled,
        timeout_ms: whole_ms(set.timeout),
    }
}

pub(super) fn counts_to_wire(indexes: &[IndexInfo]) -> protocol::ContextCounts {
    protocol::ContextCounts {
        indexes: indexes.len() as u64,
        index_bytes: indexes.iter().map(|index| index.index_bytes).sum(),
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use context::StrategyName;
    use protocol::ContextStrategyState as State;

    use super::*;

    #[test]
    fn what_a_strategy_did_is_said_with_its_reason() {
        let ms = Duration::from_millis;
        let failed = |why: &str| StrategyOutcome::Failed { why: why.to_owned() };
        let not_applicable = |why: &str| StrategyOutcome::NotApplicable { why: why.to_owned() };
        for (outcome, state, hits, why, retry_after_ms) in [
            (StrategyOutcome::Ran { hits: 3 }, State::Ran, 3, None, None),
            (
                not_applicable("no git"),
                State::NotApplicable,
                0,
                Some("no git"),
                None,
            ),
            (
                StrategyOutcome::TimedOut { after: ms(5) },
                State::TimedOut,
                0,
                Some("it had 5 ms"),
                None,
            ),
            (StrategyOutcome::OutOfTime, State::OutOfTime, 0, None, None),
            (
                StrategyOutcome::Open {
                    retry_after: Some(Duration::from_micros(1500)),
                },
                State::Open,
                0,
                None,
                Some(2),
            ),
            (failed("broken"), State::Failed, 0, Some("broken"), None),
            (StrategyOutcome::LeftOut, State::LeftOut, 0, None, None),
        ] {
            let report = StrategyReport {
                strategy: StrategyName::new("a"),
                outcome,
                took: Duration::from_nanos(1_234_567),
            };
            let expected = protocol::ContextStrategy {
                id: "a".to_owned(),
                state,
                took_ms: 1.235,
                hits,
                why: why.map(str::to_owned),
                retry_after_ms,
            };
            assert_eq!(strategy_to_wire(&report), expected);
        }
    }
}
