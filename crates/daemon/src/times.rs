//! Times as numbers and as text: RFC 3339 in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use eventlog::UnixMs;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Milliseconds since 1970.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The current time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    unix_ms(SystemTime::now())
}

/// A time in RFC 3339, in UTC, to the second.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    format!("{:.0}", timestamp(unix_ms(time)))
}

/// A time in RFC 3339, in UTC, to the millisecond.
pub(crate) fn rfc3339_ms(unix_ms: i64) -> String {
    format!("{:.3}", timestamp(u64::try_from(unix_ms).unwrap_or_default()))
}

/// A timestamp of the log for the wire: the log stores milliseconds, which sort and subtract; the wire has text that
/// people can read.
pub(crate) fn written(moment: UnixMs) -> String {
    rfc3339_ms(i64::try_from(moment.0).unwrap_or(i64::MAX))
}

/// Times after the year 9999 are clamped to its end.
fn timestamp(unix_ms: u64) -> Timestamp {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// Parses a time as the daemon writes it, `2026-01-31T09:30:00Z` or with milliseconds, into milliseconds since 1970.
pub(crate) fn parse(rfc3339: &str) -> Option<u64> {
    let time = DateTime::strptime("%Y-%m-%dT%H:%M:%S%.fZ", rfc3339).ok()?;
    let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    u64::try_from(time.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_written_as_the_standard_says() {
        // Expected values are from `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn milliseconds_follow_the_second() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (-1, "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339_ms(ms), expected);
        }
    }

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
}
