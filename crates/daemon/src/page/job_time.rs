//! Times of jobs for people: how long ago, how long it took.

use std::time::Duration;

use super::layout::human_duration;
use crate::times::parse;

/// A duration for people, with parts of a second where they matter.
pub(super) fn short(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => human_duration(Duration::from_millis(ms)),
    }
}

/// How long ago something was, to the second. Nothing if the time cannot be read.
pub(super) fn ago(rfc3339: &str, now_ms: u64) -> Option<String> {
    let passed = now_ms.saturating_sub(parse(rfc3339)?);
    Some(human_duration(Duration::from_millis(passed)))
}

/// How long it is from one time to another. Nothing if a time cannot be read.
pub(super) fn between(from: &str, to: &str) -> Option<String> {
    Some(short(parse(to)?.saturating_sub(parse(from)?)))
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
}
