//! Times for people: when, how long ago, how long it took, and what happened over time.

use std::time::Duration;

use maud::{Markup, html};

use super::ansi::one_line;
use super::text::or_dash;
use crate::times::parse;

/// `2026-01-31T09:30:00Z` for people.
pub(crate) fn readable(rfc3339: &str) -> String {
    rfc3339.replace('T', " ").replace('Z', " UTC")
}

pub(crate) fn time(at: &str) -> Markup {
    html! { time datetime=(at) { (readable(at)) } }
}

pub(crate) fn time_ago(at: &str, now_ms: u64) -> Markup {
    html! { time datetime=(at) { (words_ago(at, now_ms)) } }
}

/// The same, without the timestamp.
pub(crate) fn words_ago(at: &str, now_ms: u64) -> String {
    or_dash(ago(at, now_ms).map(|ago| format!("{ago} ago")))
}

/// A duration for people: its two largest units.
pub(crate) fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

pub(crate) fn short(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => human_duration(Duration::from_millis(ms)),
    }
}

/// How long ago something was, to the second. `None` if the time can't be parsed.
pub(crate) fn ago(rfc3339: &str, now_ms: u64) -> Option<String> {
    let passed = now_ms.saturating_sub(parse(rfc3339)?);
    Some(human_duration(Duration::from_millis(passed)))
}

/// The time between two timestamps. `None` if either can't be parsed.
pub(crate) fn between(from: &str, to: &str) -> Option<String> {
    Some(short(parse(to)?.saturating_sub(parse(from)?)))
}

#[derive(Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) event: &'a str,
    pub(crate) at: &'a str,
    /// Who did it, or how long it took to get there.
    pub(crate) passed: Option<String>,
    pub(crate) text: &'a str,
}

/// The last `most` moments, oldest first. `words` names an event and chooses its look.
pub(crate) fn timeline<'a>(
    of: &str,
    most: usize,
    words: impl Fn(&'a str) -> (&'a str, &'static str),
    moments: impl ExactSizeIterator<Item = Moment<'a>>,
) -> Markup {
    let left_out = moments.len().saturating_sub(most);
    html! {
        @if moments.len() == 0 { p { "The history of this " (of) " has expired." } }
        @if left_out > 0 {
            p class="more" { (left_out) " earlier events are not shown; " code { "tidelock " (of) " show" } " lists them all." }
        }
        ol class="timeline" {
            @for moment in moments.skip(left_out) {
                @let (word, class) = words(moment.event);
                li class=(class) data-event=(moment.event) {
                    strong { (word) }
                    (time(moment.at))
                    @if let Some(passed) = moment.passed { span class="passed" { (passed) } }
                    @if !moment.text.is_empty() { span class="said" { (one_line(moment.text)) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_exact_as_people_want_them() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min 0 s"),
            (3_600_000, "1 h 0 min"),
        ] {
            assert_eq!(short(ms), expected);
        }
        let (early, late) = ("2026-01-31T09:30:00.250Z", "2026-01-31T09:30:01.500Z");
        assert_eq!(between(early, late).as_deref(), Some("1.2 s"));
        assert_eq!(between(late, early).as_deref(), Some("0 ms"));
        assert_eq!(between(early, "soon"), None);
        assert_eq!(
            ago(early, parse(early).unwrap() + 65_000).as_deref(),
            Some("1 min 5 s")
        );
        assert_eq!(ago(early, 0).as_deref(), Some("0 s"));
    }

    #[test]
    fn durations_have_their_two_largest_units() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (3599, "59 min 59 s"),
            (3600, "1 h 0 min"),
            (86_399, "23 h 59 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(human_duration(Duration::from_secs(seconds)), expected);
        }
    }
}
