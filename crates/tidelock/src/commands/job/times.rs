//! Times as the daemon writes them, and how long ago they are.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::units::format_duration;

/// How long ago a moment was; nothing if it cannot be read.
pub(in crate::commands) fn age(written: &str) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(now.saturating_sub(since_epoch(written)?))
}

/// How long it was from one moment to another.
pub(in crate::commands) fn between(earlier: &str, later: &str) -> Option<Duration> {
    since_epoch(later)?.checked_sub(since_epoch(earlier)?)
}

/// A moment with its distance, such as `2026-01-31T09:30:00.000Z, 3 min ago`.
pub(in crate::commands) fn with_age(written: &str) -> String {
    match age(written) {
        Some(age) => format!("{written}, {} ago", format_duration(age)),
        None => written.to_owned(),
    }
}

/// Reads a time in RFC 3339 and UTC, as the daemon writes it: `2026-01-31T09:30:00.000Z`.
fn since_epoch(written: &str) -> Option<Duration> {
    let (date, time) = written.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let in_range = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let fraction_ms: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    in_range.then(|| {
        let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        Duration::from_millis(seconds * 1_000 + fraction_ms)
    })
}

/// How many days a date is after 1970-01-01. Years are counted from March, so that the leap day is the last one.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    (year * 365 + year / 4 - year / 100 + year / 400 + day_of_year).saturating_sub(719_468)
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
}
