//! Times as people read them: local, and how long ago.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::units::format_duration;

/// How long ago a time was; `None` if it can't be parsed.
pub(in crate::commands) fn age(written: &str) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(now.saturating_sub(since_epoch(written)?))
}

pub(in crate::commands) fn between(earlier: &str, later: &str) -> Option<Duration> {
    since_epoch(later)?.checked_sub(since_epoch(earlier)?)
}

/// A time with its age, such as `2026-01-31 10:30:00.000, 3 min ago`.
pub(in crate::commands) fn with_age(written: &str) -> String {
    match age(written) {
        Some(age) => format!("{}, {} ago", local(written), format_duration(age)),
        None => written.to_owned(),
    }
}

/// A time in the local time zone, such as `2026-01-31 10:30:00.000`. What can't be parsed is returned unchanged.
pub(in crate::commands) fn local(written: &str) -> String {
    // Keep test output independent of the local time zone.
    let zone = if cfg!(test) {
        TimeZone::UTC
    } else {
        TimeZone::system()
    };
    local_in(zone, written)
}

/// Keeps the precision: with milliseconds if the input has them.
fn local_in(zone: TimeZone, written: &str) -> String {
    let format = if written.contains('.') {
        "%F %T%.3f"
    } else {
        "%F %T"
    };
    match timestamp(written) {
        Some(time) => time.to_zoned(zone).strftime(format).to_string(),
        None => written.to_owned(),
    }
}

fn since_epoch(written: &str) -> Option<Duration> {
    let ms = timestamp(written)?.as_millisecond();
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// Parses a time in RFC 3339 and UTC, as the daemon writes it: `2026-01-31T09:30:00.000Z`.
fn timestamp(written: &str) -> Option<Timestamp> {
    let time = DateTime::strptime("%Y-%m-%dT%H:%M:%S%.fZ", written).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        // What `date -u -d TIME +%s` prints.
        for (written, expected_ms) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-28T23:59:59.250Z", Some(951_782_399_250)),
            ("2000-02-29T00:00:00.007Z", Some(951_782_400_007)),
            ("2024-12-31T23:59:59.5Z", Some(1_735_689_599_500)),
            ("2100-03-01T00:00:00.000Z", Some(4_107_542_400_000)),
            ("2026-01-31T09:30:00+01:00", None),
            ("2026-13-31T09:30:00Z", None),
            ("2026-01-31", None),
            ("", None),
        ] {
            let found = since_epoch(written).map(|duration| duration.as_millis());
            assert_eq!(found, expected_ms, "{written}");
        }
    }

    #[test]
    fn people_read_the_time_of_their_place() {
        for (zone, written, expected) in [
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2026-01-31T09:30:00.120Z",
                "2026-01-31 10:30:00.120",
            ),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2026-07-31T22:30:00Z",
                "2026-08-01 00:30:00",
            ),
            ("EST5", "2026-01-01T00:00:00Z", "2025-12-31 19:00:00"),
            ("UTC0", "2026-01-31T09:30:00.000Z", "2026-01-31 09:30:00.000"),
            ("UTC0", "long ago", "long ago"),
        ] {
            let zone = TimeZone::posix(zone).unwrap();
            assert_eq!(local_in(zone, written), expected);
        }
    }
}
