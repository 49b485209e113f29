//! Formats an answer as text.

use std::collections::BTreeSet;
use std::time::Duration;

use protocol::{ContextAnswer, ContextDepth, ContextOutcome, ContextStrategy, ContextStrategyState};

use crate::output::{Cell, Palette, Tone};
use crate::printable::{cut, one_line};
use crate::units::{format_count, format_duration};

const ABOVE: &str = "## ";
const REASON_CHARACTERS: usize = 200;

/// The text for a terminal, with the line above each piece highlighted.
pub(super) fn painted(palette: Palette, answer: &ContextAnswer) -> String {
    let mut fragments = answer.fragments.iter().peekable();
    let mut text = String::with_capacity(answer.text.len());
    for line in answer.text.split_inclusive('\n') {
        let (words, end) = match line.strip_suffix('\n') {
            Some(words) => (words, "\n"),
            None => (line, ""),
        };
        // Only the next piece's own line counts: files contain lines that look like it.
        let place = words.strip_prefix(ABOVE);
        let is_above = |path: &str| place.is_some_and(|place| place.starts_with(path));
        if fragments.next_if(|fragment| is_above(&fragment.path)).is_some() {
            text.push_str(&palette.paint(words, Tone::Good));
        } else {
            text.push_str(words);
        }
        text.push_str(end);
    }
    text
}

/// The remarks next to the text: its size, and the strategies that failed.
pub(super) fn aside(palette: Palette, answer: &ContextAnswer) -> String {
    let mut text = format!("{}\n", palette.paint(&summary(answer), Tone::Quiet));
    for strategy in &answer.strategies {
        if let Some(trouble) = trouble(strategy) {
            text.push_str(&format!("note: {trouble}\n"));
        }
    }
    if let Some(why) = &answer.index.why {
        let why = cut(why, REASON_CHARACTERS);
        text.push_str(&format!("note: there is no index of {}: {why}\n", answer.root));
    }
    text
}

/// `12 pieces of 7 files, 7,812 of 8,000 tokens, 84 ms`.
pub(super) fn summary(answer: &ContextAnswer) -> String {
    let files: BTreeSet<&str> = answer
        .fragments
        .iter()
        .map(|fragment| fragment.path.as_str())
        .collect();
    let found = match answer.outcome {
        ContextOutcome::NothingFits => "nothing fits".to_owned(),
        ContextOutcome::NothingMatched => "nothing matched".to_owned(),
        ContextOutcome::Found => format!(
            "{} of {}",
            format_count(answer.fragments.len() as u64, "piece"),
            format_count(files.len() as u64, "file")
        ),
    };
    let tokens = format!(
        "{} of {} tokens",
        grouped(answer.tokens),
        grouped(answer.budget_tokens)
    );
    format!("{found}, {tokens}, {}", took(answer.took_ms))
}

/// Why a strategy did not help although it should have; `None` if it did, or was not asked to.
fn trouble(strategy: &ContextStrategy) -> Option<String> {
    let id = one_line(&strategy.id);
    let after = took(strategy.took_ms);
    let because = |text: String| match &strategy.why {
        Some(why) => format!("{text}: {}", cut(why, REASON_CHARACTERS)),
        None => text,
    };
    Some(match strategy.state {
        ContextStrategyState::Ran | ContextStrategyState::NotApplicable | ContextStrategyState::LeftOut => {
            return None;
        }
        ContextStrategyState::Failed => because(format!("`{id}` failed after {after}")),
        ContextStrategyState::TimedOut => {
            because(format!("`{id}` was too slow and was stopped after {after}"))
        }
        ContextStrategyState::OutOfTime => because(format!("`{id}` didn't finish in time")),
        ContextStrategyState::Open => {
            let held = || format!("`{id}` is held open manually until you run `tidelock breaker reset`");
            because(strategy.retry_after_ms.map_or_else(held, |ms| {
                let again = format_duration(Duration::from_millis(ms));
                format!("`{id}` has failed too often; retrying in {again}")
            }))
        }
    })
}

pub(super) fn state(strategy: &ContextStrategy) -> Cell {
    let (word, tone) = match strategy.state {
        ContextStrategyState::Ran => ("ran", Tone::Good),
        ContextStrategyState::NotApplicable => ("nothing to say", Tone::Quiet),
        ContextStrategyState::TimedOut => ("timed out", Tone::Bad),
        ContextStrategyState::OutOfTime => ("out of time", Tone::Warning),
        ContextStrategyState::Open => ("open", Tone::Bad),
        ContextStrategyState::Failed => ("failed", Tone::Bad),
        ContextStrategyState::LeftOut => ("left out", Tone::Quiet),
    };
    match strategy.retry_after_ms {
        Some(ms) => {
            let again = format_duration(Duration::from_millis(ms));
            Cell::toned(format!("{word}, tried again in {again}"), tone)
        }
        None => Cell::toned(word, tone),
    }
}

pub(super) fn depth(depth: ContextDepth) -> &'static str {
    match depth {
        ContextDepth::Body => "body",
        ContextDepth::Signature => "signature",
        ContextDepth::Name => "name",
    }
}

/// A short time: `0.4 ms`, `84 ms`, `1.2 s`.
pub(super) fn took(milliseconds: f64) -> String {
    match milliseconds {
        short if short < 9.95 => format!("{short:.1} ms"),
        middle if middle < 999.5 => format!("{middle:.0} ms"),
        long => format!("{:.1} s", long / 1000.0),
    }
}

/// A large number as people read it: `7,812`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::samples::{answer, empty, strategy};
    use super::*;

    #[test]
    fn what_is_said_beside_the_text() {
        insta::assert_snapshot!(aside(Palette::Plain, &answer()));
        insta::assert_snapshot!(aside(Palette::Plain, &empty()));
    }

    #[test]
    fn nothing_fits_is_not_nothing_found() {
        let tight = ContextAnswer {
            outcome: ContextOutcome::NothingFits,
            left_out_total: 3,
            ..empty()
        };
        assert_eq!(summary(&tight), "nothing fits, 0 of 8,000 tokens, 12 ms");
        let none = ContextAnswer {
            outcome: ContextOutcome::NothingFits,
            budget_tokens: 0,
            ..empty()
        };
        assert_eq!(summary(&none), "nothing fits, 0 of 0 tokens, 12 ms");
        assert_eq!(summary(&empty()), "nothing matched, 0 of 8,000 tokens, 12 ms");
    }

    #[test]
    fn the_lines_above_pieces_are_painted_and_no_others() {
        let answer = answer();
        assert_eq!(painted(Palette::Plain, &answer), answer.text);
        let painted = painted(Palette::Coloured, &answer);
        let marked: Vec<&str> = painted
            .lines()
            .filter_map(|line| line.strip_prefix("\u{1b}[32m"))
            .collect();
        assert_eq!(
            marked,
            [
                "## src/retry.rs:12-40 (function back_off)\u{1b}[0m",
                "## docs/retry.md:1-9\u{1b}[0m"
            ]
        );
        // A line of a file that looks like one of ours stays as it is.
        assert!(painted.contains("\n## docs are code\n"), "{painted}");
    }

    #[test]
    fn every_state_has_a_word_and_those_that_hurt_have_a_sentence() {
        use ContextStrategyState::{Failed, LeftOut, NotApplicable, Open, OutOfTime, Ran, TimedOut};
        let told: Vec<Option<String>> = [Ran, NotApplicable, LeftOut, TimedOut, OutOfTime, Open, Failed]
            .map(|state| trouble(&strategy("keyword", state)))
            .into();
        let expected = [
            None,
            None,
            None,
            Some("`keyword` was too slow and was stopped after 2.5 ms: why it is so"),
            Some("`keyword` didn't finish in time: why it is so"),
            Some("`keyword` has failed too often; retrying in 28 s: why it is so"),
            Some("`keyword` failed after 2.5 ms: why it is so"),
        ];
        assert_eq!(told, expected.map(|text| text.map(str::to_owned)));
        let held = ContextStrategy {
            retry_after_ms: None,
            why: None,
            ..strategy("keyword", Open)
        };
        assert_eq!(
            trouble(&held).as_deref(),
            Some("`keyword` is held open manually until you run `tidelock breaker reset`")
        );
    }

    #[test]
    fn numbers_and_times_are_short() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (7812, "7,812"),
            (1_000_000, "1,000,000"),
        ] {
            assert_eq!(grouped(number), expected);
        }
        for (milliseconds, expected) in [
            (0.04, "0.0 ms"),
            (0.44, "0.4 ms"),
            (9.96, "10 ms"),
            (84.2, "84 ms"),
            (999.6, "1.0 s"),
            (12_345.0, "12.3 s"),
        ] {
            assert_eq!(took(milliseconds), expected);
        }
    }
}
