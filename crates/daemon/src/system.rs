//! Small questions to the machine: what time is it in writing, how much memory do we use, where are we reached.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// The resident memory of this process, where the system tells it.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Where somebody on this machine reaches an address that we listen on.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
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
    fn we_know_how_much_memory_we_use() {
        let bytes = resident_bytes().unwrap();
        assert!((100_000..100_000_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn an_unspecified_address_is_reached_over_loopback() {
        for (address, expected) in [
            ("127.0.0.1:7180", "127.0.0.1:7180"),
            ("0.0.0.0:7180", "127.0.0.1:7180"),
            ("[::]:7180", "[::1]:7180"),
            ("192.0.2.7:80", "192.0.2.7:80"),
        ] {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), expected);
        }
    }
}
