//! An answer: what each strategy did, the pieces with the reasons for them, and what was left out. Anybody may have
//! written the files that the pieces come from, so none of their text becomes markup.

use std::collections::BTreeSet;

use maud::{Markup, html};
use protocol::{
    Breaker, BreakerState, ContextAnswer, ContextDepth, ContextFragment, ContextIndexState, ContextLeftOut,
    ContextOutcome, ContextStrategy, ContextStrategyInfo, ContextStrategyState,
};

use crate::page::parts::list::Column::{Count, Text};
use crate::page::parts::list::{count, table};
use crate::page::parts::text::{self, counted, exact, exact_words};
use crate::page::parts::times::short;
use crate::page::system::breakers;

#[derive(Debug)]
pub(crate) struct Around<'a> {
    pub(crate) strategies: &'a [ContextStrategyInfo],
    pub(crate) breakers: &'a [Breaker],
}

pub(crate) fn show(answer: &ContextAnswer, around: &Around<'_>) -> Markup {
    html! {
        section class="card table context-strategies" aria-labelledby="context-strategies" {
            div class="context-summary" {
                h2 id="context-strategies" { (summary(answer)) }
                p {
                    @if answer.plan.is_some() { "Plan sandbox of " } code { (exact(&answer.root)) } ", "
                    (index_words(answer)) "."
                }
            }
            (strategies(answer, around))
        }
        (nothing(answer.outcome))
        @for (place, fragment) in answer.fragments.iter().enumerate() { (piece(place, fragment)) }
        @if answer.left_out_total > 0 { (left_out(answer)) }
    }
}

fn summary(answer: &ContextAnswer) -> String {
    let files: BTreeSet<&str> = answer
        .fragments
        .iter()
        .map(|fragment| fragment.path.as_str())
        .collect();
    format!(
        "{} of {}, {} of {} tokens, {}",
        counted(answer.fragments.len() as u64, "piece", "pieces"),
        counted(files.len() as u64, "file", "files"),
        answer.tokens,
        answer.budget_tokens,
        milliseconds(answer.took_ms)
    )
}

fn index_words(answer: &ContextAnswer) -> Markup {
    let index = &answer.index;
    html! {
        @match index.state {
            ContextIndexState::Ready => { "index of " (counted(index.files, "file", "files")) },
            ContextIndexState::Building => { "index still being built; later questions are faster" },
            ContextIndexState::Failed => {
                "no index"
                @if let Some(why) = &index.why { " (" (exact(why)) ")" }
            },
        }
    }
}

fn strategies(answer: &ContextAnswer, around: &Around<'_>) -> Markup {
    table(
        &[
            Text("Strategy"),
            Text("State"),
            Text("Time"),
            Count("Hits"),
            Text("Breaker"),
        ],
        answer
            .strategies
            .iter()
            .map(|strategy| strategy_row(strategy, answer, around)),
    )
}

fn strategy_row(strategy: &ContextStrategy, answer: &ContextAnswer, around: &Around<'_>) -> Markup {
    html! {
        tr data-strategy=(strategy.id) {
            th scope="row" { (strategy.id) }
            td class="state" {
                (badge(strategy.state))
                @if let Some(why) = &strategy.why { small { (exact(why)) } }
                @if let Some(ms) = strategy.retry_after_ms { small { "retries in " (short(ms)) } }
            }
            td class="act" { (bar(strategy, answer)) }
            (count("Hits", strategy.hits))
            td class="act" { (breaker(strategy, around)) }
        }
    }
}

/// How long it took, relative to the whole answer.
fn bar(strategy: &ContextStrategy, answer: &ContextAnswer) -> Markup {
    let was_asked = !matches!(
        strategy.state,
        ContextStrategyState::LeftOut | ContextStrategyState::Open
    );
    let whole = answer.took_ms.max(strategy.took_ms);
    let time = milliseconds(strategy.took_ms);
    html! {
        @if was_asked && whole > 0.0 {
            (time)
            progress max=(format!("{whole:.3}")) value=(format!("{:.3}", strategy.took_ms))
                aria-label={ "Time of " (strategy.id) } { (time) }
        } @else {
            "–"
        }
    }
}

fn badge(state: ContextStrategyState) -> Markup {
    text::badge(match state {
        ContextStrategyState::Ran => ("badge good", "Ran"),
        ContextStrategyState::NotApplicable => ("badge", "Not applicable"),
        ContextStrategyState::TimedOut => ("badge bad", "Timed out"),
        ContextStrategyState::OutOfTime => ("badge warn", "Out of time"),
        ContextStrategyState::Open => ("badge bad", "Open"),
        ContextStrategyState::Failed => ("badge bad", "Failed"),
        ContextStrategyState::LeftOut => ("badge", "Left out"),
    })
}

/// The state of the breaker now, which may have changed since the answer.
fn breaker(strategy: &ContextStrategy, around: &Around<'_>) -> Markup {
    let info = around.strategies.iter().find(|info| info.id == strategy.id);
    let found = info.and_then(|info| around.breakers.iter().find(|breaker| breaker.id == info.breaker));
    let word = found.map_or(BreakerState::Closed, |breaker| breaker.state);
    html! {
        @if let Some(info) = info {
            @let word = breakers::label(word);
            a href="/breakers" aria-label={ "Breaker: " (word) " (" (info.breaker) ")" } {
                span class="narrow-only" { "Breaker: " } (word)
            }
        }
    }
}

fn nothing(outcome: ContextOutcome) -> Markup {
    html! {
        @match outcome {
            ContextOutcome::Found => {},
            ContextOutcome::NothingFits => {
                div class="card empty" {
                    h2 { "Nothing fits" }
                    p { "The budget is too small for any result. Increase it." }
                }
            },
            ContextOutcome::NothingMatched => {
                div class="card empty" {
                    h2 { "Nothing matched" }
                    p { "Try other words, or name a related file. The table above shows what each strategy did." }
                }
            },
        }
    }
}

fn piece(place: usize, fragment: &ContextFragment) -> Markup {
    html! {
        details class="card piece" open data-piece=(exact_words(&fragment.path)) {
            summary {
                h2 { code { (exact(&fragment.path)) ":" (fragment.first_line) "–" (fragment.last_line) } }
                @if let Some(symbol) = &fragment.symbol { span { (exact(symbol)) } }
                span class="more" {
                    (depth(fragment.depth)) ", " (counted(fragment.tokens, "token", "tokens")) ", score "
                    (score(fragment.score))
                }
            }
            ul class="plain-list parts" aria-label="Why it was included" {
                @for part in &fragment.parts {
                    li {
                        strong { (part.strategy) } " #" (part.rank) " adds " (score(part.adds)) ": " (exact(&part.why))
                    }
                }
            }
            pre tabindex="0" aria-label={ "Piece " (place + 1) } {
                code { @for line in fragment.text.lines() { (exact(line)) "\n" } }
            }
        }
    }
}

fn depth(depth: ContextDepth) -> &'static str {
    match depth {
        ContextDepth::Body => "whole",
        ContextDepth::Signature => "signature only",
        ContextDepth::Name => "names only",
    }
}

fn left_out(answer: &ContextAnswer) -> Markup {
    let total = answer.left_out_total;
    let shown = answer.left_out.len() as u64;
    html! {
        section class="card table" aria-labelledby="context-left-out" {
            div class="context-summary" {
                h2 id="context-left-out" { "Left out to stay within the budget: " (counted(total, "piece", "pieces")) }
                @if shown < total { p { "Showing the best " (shown) "." } }
            }
            (table(&[Text("Piece"), Count("Tokens"), Count("Score")], answer.left_out.iter().map(left_out_row)))
        }
    }
}

fn left_out_row(left_out: &ContextLeftOut) -> Markup {
    html! {
        tr {
            th scope="row" { code { (exact(&left_out.path)) ":" (left_out.first_line) "–" (left_out.last_line) } }
            (count("Tokens", left_out.tokens))
            (count("Score", score(left_out.score)))
        }
    }
}

fn score(score: f64) -> String {
    format!("{score:.4}")
}

fn milliseconds(milliseconds: f64) -> String {
    if milliseconds < 10.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < 1000.0 {
        format!("{milliseconds:.0} ms")
    } else {
        format!("{:.1} s", milliseconds / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use protocol::{ContextIndex, ContextScorePart};

    use super::*;
    use crate::page::parts::text::tests::assert_parts;

    const HOSTILE: &str = "</code><script>alert(1)</script>\u{202e}";

    fn strategy(state: ContextStrategyState) -> ContextStrategy {
        ContextStrategy {
            id: "keyword".to_owned(),
            state,
            took_ms: 5.0,
            hits: 3,
            why: None,
            retry_after_ms: None,
        }
    }

    fn answer() -> ContextAnswer {
        ContextAnswer {
            root: format!("/home/{HOSTILE}"),
            plan: None,
            outcome: ContextOutcome::Found,
            fragments: vec![ContextFragment {
                path: format!("src/{HOSTILE}"),
                first_line: 3,
                last_line: 9,
                depth: ContextDepth::Signature,
                symbol: Some(HOSTILE.to_owned()),
                text: format!("fn a() {{\n{HOSTILE}\n}}\n"),
                tokens: 12,
                score: 0.03,
                parts: vec![ContextScorePart {
                    strategy: "keyword".to_owned(),
                    rank: 1,
                    adds: 0.0164,
                    why: HOSTILE.to_owned(),
                }],
            }],
            text: String::new(),
            tokens: 12,
            budget_tokens: 100,
            strategies: vec![ContextStrategy {
                why: Some(HOSTILE.to_owned()),
                ..strategy(ContextStrategyState::Failed)
            }],
            left_out: vec![ContextLeftOut {
                path: HOSTILE.to_owned(),
                first_line: 1,
                last_line: 2,
                score: 0.01,
                tokens: 500,
            }],
            left_out_total: 3,
            took_ms: 20.0,
            index: ContextIndex {
                root: String::new(),
                state: ContextIndexState::Failed,
                why: Some(HOSTILE.to_owned()),
                files: 0,
                source_bytes: 0,
                index_bytes: 0,
                used_at: String::new(),
            },
        }
    }

    fn rendered(answer: &ContextAnswer) -> String {
        let around = Around {
            strategies: &[ContextStrategyInfo {
                id: "keyword".to_owned(),
                breaker: "context/keyword".to_owned(),
                enabled: true,
                timeout_ms: 1,
            }],
            breakers: &[],
        };
        show(answer, &around).into_string()
    }

    #[test]
    fn nothing_of_a_file_is_taken_for_markup() {
        let page = rendered(&answer());
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains('\u{202e}'), "{page}");
        assert_eq!(page.matches("&lt;script&gt;").count(), 9, "{page}");
    }

    #[test]
    fn a_piece_has_its_place_its_reasons_and_its_text() {
        let page = rendered(&answer());
        assert_parts(
            &page,
            &[
                "1 piece of 1 file, 12 of 100 tokens, 20 ms</h2>",
                ":3–9</code></h2>",
                "signature only, 12 tokens, score 0.0300",
                "<strong>keyword</strong> #1 adds 0.0164: ",
                "<code>fn a() {\n&lt;/code&gt;",
                "\n}\n</code></pre>",
                "Left out to stay within the budget: 3 pieces</h2><p>Showing the best 1.</p>",
                "<a href=\"/breakers\" aria-label=\"Breaker: Closed (context/keyword)\">\
             <span class=\"narrow-only\">Breaker: </span>Closed</a>",
            ],
        );
    }

    #[test]
    fn every_state_has_a_word_and_only_who_was_asked_has_a_bar() {
        use ContextStrategyState::{Failed, LeftOut, NotApplicable, Open, OutOfTime, Ran, TimedOut};
        for (state, word, has_bar) in [
            (Ran, ">Ran<", true),
            (NotApplicable, ">Not applicable<", true),
            (TimedOut, ">Timed out<", true),
            (OutOfTime, ">Out of time<", true),
            (Open, ">Open<", false),
            (Failed, ">Failed<", true),
            (LeftOut, ">Left out<", false),
        ] {
            let answer = ContextAnswer {
                strategies: vec![strategy(state)],
                ..answer()
            };
            let page = rendered(&answer);
            assert!(page.contains(word), "{word}: {page}");
            let bar =
                "<progress max=\"20.000\" value=\"5.000\" aria-label=\"Time of keyword\">5.0 ms</progress>";
            assert_eq!(page.contains(bar), has_bar, "{state:?}: {page}");
        }
    }

    #[test]
    fn nothing_found_and_nothing_fits_are_two_things() {
        for (outcome, expected) in [
            (ContextOutcome::NothingMatched, "Nothing matched"),
            (ContextOutcome::NothingFits, "Nothing fits"),
        ] {
            let answer = ContextAnswer {
                fragments: Vec::new(),
                outcome,
                ..answer()
            };
            let page = rendered(&answer);
            assert!(page.contains(&format!("<h2>{expected}</h2>")), "{page}");
        }
    }
}
