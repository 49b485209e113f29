//! Times as numbers and in writing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eventlog::UnixMs;

/// Milliseconds since 1970.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970 now.
pub(crate) fn now_ms() -> u64 {
    unix_ms(SystemTime::now())
}

/// A time in RFC 3339, in UTC, to the second.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A time in RFC 3339, in UTC, to the millisecond.
pub(crate) fn rfc3339_ms(unix_ms: i64) -> String {
    let unix_ms = u64::try_from(unix_ms).unwrap_or_default();
    let seconds = rfc3339(UNIX_EPOCH + Duration::from_millis(unix_ms));
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), unix_ms % 1000)
}

/// A moment of the log for the wire: the log has milliseconds, which sort and subtract, the wire a text that people read.
pub(crate) fn written(moment: UnixMs) -> String {
    rfc3339_ms(i64::try_from(moment.0).unwrap_or(i64::MAX))
}

/// The date of a day that is so many days after 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last one of a year; 400 years have 146,097 days.
fn civil_date(days_since_epoch: u64) -> (u64, u64, u64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days = days_since_epoch + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month = if months_since_march < 10 {
        months_since_march + 3
    } else {
        months_since_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Reads a time as the daemon writes it, `2026-01-31T09:30:00Z` or with milliseconds, as milliseconds since 1970.
pub(crate) fn parse(rfc3339: &str) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_standard_says() {
        // What `date -u -d @SECONDS +%FT%TZ` prints.
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
