//! Answers for tests.

use protocol::{
    ContextAnswer, ContextDepth, ContextFragment, ContextIndex, ContextIndexState, ContextLeftOut,
    ContextOutcome, ContextScorePart, ContextStrategy, ContextStrategyState,
};

/// A strategy in a state, with every field set.
pub(super) fn strategy(id: &str, state: ContextStrategyState) -> ContextStrategy {
    let ran = state == ContextStrategyState::Ran;
    ContextStrategy {
        id: id.to_owned(),
        state,
        took_ms: 2.5,
        hits: if ran { 40 } else { 0 },
        why: (!ran).then(|| "why it is so".to_owned()),
        retry_after_ms: (state == ContextStrategyState::Open).then_some(28_000),
    }
}

pub(super) fn index(state: ContextIndexState) -> ContextIndex {
    ContextIndex {
        root: "/home/me/project".to_owned(),
        state,
        why: None,
        files: 1234,
        source_bytes: 5 << 20,
        index_bytes: 1 << 20,
        used_at: String::new(),
    }
}

fn part(strategy: &str, rank: u64, why: &str) -> ContextScorePart {
    ContextScorePart {
        strategy: strategy.to_owned(),
        rank,
        adds: 0.0164,
        why: why.to_owned(),
    }
}

/// An answer with two pieces, and some that were left out.
pub(super) fn answer() -> ContextAnswer {
    let fragments = vec![
        ContextFragment {
            path: "src/retry.rs".to_owned(),
            first_line: 12,
            last_line: 40,
            depth: ContextDepth::Body,
            symbol: Some("function back_off".to_owned()),
            text: "fn back_off() {\n## docs are code\n}\n".to_owned(),
            tokens: 1412,
            score: 0.032_786,
            parts: vec![
                part("keyword", 1, "3 of 3 words"),
                part("symbols", 2, "defines `back_off`"),
            ],
        },
        ContextFragment {
            path: "docs/retry.md".to_owned(),
            first_line: 1,
            last_line: 9,
            depth: ContextDepth::Signature,
            symbol: None,
            text: "# Retries\n".to_owned(),
            tokens: 20,
            score: 0.015,
            parts: vec![part("keyword", 4, "1 of 3 words")],
        },
    ];
    ContextAnswer {
        root: "/home/me/project".to_owned(),
        plan: None,
        outcome: ContextOutcome::Found,
        fragments,
        text: "## src/retry.rs:12-40 (function back_off)\nfn back_off() {\n## docs are code\n}\n\n\
               ## docs/retry.md:1-9\n# Retries\n"
            .to_owned(),
        tokens: 1432,
        budget_tokens: 8000,
        strategies: vec![
            strategy("keyword", ContextStrategyState::Ran),
            strategy("symbols", ContextStrategyState::Ran),
            strategy("repo-map", ContextStrategyState::TimedOut),
            strategy("recent", ContextStrategyState::NotApplicable),
            strategy("language-server", ContextStrategyState::Open),
            strategy("mine", ContextStrategyState::LeftOut),
        ],
        left_out: vec![ContextLeftOut {
            path: "src/other.rs".to_owned(),
            first_line: 3,
            last_line: 300,
            score: 0.01,
            tokens: 9000,
        }],
        left_out_total: 7,
        took_ms: 84.2,
        index: index(ContextIndexState::Ready),
    }
}

/// An answer with nothing in it.
pub(super) fn empty() -> ContextAnswer {
    ContextAnswer {
        plan: Some("plan_01ARZ3NDEKTSV4RRFFQ69G5FAW".to_owned()),
        outcome: ContextOutcome::NothingMatched,
        fragments: Vec::new(),
        text: String::new(),
        tokens: 0,
        strategies: vec![strategy("keyword", ContextStrategyState::Ran)],
        left_out: Vec::new(),
        left_out_total: 0,
        took_ms: 12.0,
        index: index(ContextIndexState::Building),
        ..answer()
    }
}
