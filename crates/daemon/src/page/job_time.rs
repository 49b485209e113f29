//! Times of jobs for people: how long ago, how long it took.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::layout::human_duration;

/// Milliseconds since 1970 now.
pub(super) fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a time as the daemon writes it, `2026-01-31T09:30:00Z` or with milliseconds, as milliseconds since 1970.
pub(super) fn parse(rfc3339: &str) -> Option<u64> {
    let (date, time) = rfc3339.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let fraction_ms: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = days_since_epoch(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1000 + fraction_ms)
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text
        .split(separator)
        .map(|part| part.parse::<u16>().ok().map(u64::from));
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// The inverse of what the daemon does to write a date. Years are counted from March, as there.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date {
        return None;
    }
    let (year, months_since_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    Some((year * 365 + year / 4 - year / 100 + year / 400 + day_of_year).saturating_sub(719_468))
}

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
    use crate::system::{rfc3339, rfc3339_ms};

    #[test]
    fn what_the_daemon_writes_is_read_back() {
        for ms in [
            0_u64,
            951_782_399_000,
            951_782_400_007,
            951_868_800_120,
            1_735_689_599_999,
            4_107_542_400_000,
        ] {
            assert_eq!(parse(&rfc3339_ms(ms as i64)), Some(ms));
            let whole_seconds = rfc3339(UNIX_EPOCH + Duration::from_millis(ms));
            assert_eq!(parse(&whole_seconds), Some(ms / 1000 * 1000));
        }
        for bad in [
            "",
            "yesterday",
            "2026-01-31",
            "2026-13-31T09:30:00Z",
            "2026-01-31T09:30Z",
            "2026-01-31T09:30:00",
            "1-1-1T1:1:1Z",
            "2026-01-31T09:30:00.üZ",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

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
