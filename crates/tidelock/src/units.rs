//! Parses and formats durations and sizes.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Parses `500ms`, `30s`, `5m` or `1h`.
///
/// # Errors
/// A sentence for the user if the text has none of these forms.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let explanation =
        || format!("`{text}` is not a duration; write a whole number and ms, s, m or h, such as 30s");
    let digits = text
        .find(|character: char| !character.is_ascii_digit())
        .ok_or_else(explanation)?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS
        .into_iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(explanation)?;
    let count: u64 = number.parse().map_err(|_| explanation())?;
    count
        .checked_mul(factor)
        .map(Duration::from_millis)
        .ok_or_else(explanation)
}

const SIZES: [(&str, u64); 7] = [
    ("", 1),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
];

/// Parses `512`, `64K`, `64KiB`, `16M` or `2G`; K is 1024 bytes.
///
/// # Errors
/// A sentence for the user if the text has none of these forms.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let explanation = || format!("`{text}` is not a size; write a whole number and K, M or G, such as 16M");
    let digits = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = SIZES
        .into_iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(explanation)?;
    let count: u64 = number.parse().map_err(|_| explanation())?;
    count.checked_mul(factor).ok_or_else(explanation)
}

/// Formats a duration with at most two units: `350 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`.
pub(crate) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    };
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// Formats a count: `0 calls`, `1 call`, `2 calls`.
pub(crate) fn format_count(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// Formats a size with one decimal: `512 B`, `1.5 KiB`, `12.0 MiB`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    let (unit_size, unit) = match bytes {
        0..KIB => return format!("{bytes} B"),
        KIB..MIB => (KIB, "KiB"),
        MIB..GIB => (MIB, "MiB"),
        GIB.. => (GIB, "GiB"),
    };
    format!(
        "{}.{} {unit}",
        bytes / unit_size,
        bytes % unit_size * 10 / unit_size
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, expected_ms) in [
            ("0s", Some(0)),
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("1 s", None),
            ("1d", None),
            ("99999999999999999999s", None),
            ("18446744073709551615h", None),
        ] {
            assert_eq!(
                parse_duration(text).ok(),
                expected_ms.map(Duration::from_millis),
                "{text}"
            );
        }
    }

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("0", Some(0)),
            ("512", Some(512)),
            ("64K", Some(64 << 10)),
            ("64KiB", Some(64 << 10)),
            ("16M", Some(16 << 20)),
            ("2GiB", Some(2 << 30)),
            ("", None),
            ("K", None),
            ("1.5M", None),
            ("1 M", None),
            ("-1", None),
            ("1T", None),
            ("18446744073709551615G", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_written_with_at_most_two_units() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_999, "1 s"),
            (60_000, "1 min"),
            (200_000, "3 min 20 s"),
            (7_500_000, "2 h 5 min"),
            (356_400_000, "4 d 3 h"),
        ] {
            assert_eq!(format_duration(Duration::from_millis(ms)), expected, "{ms}");
        }
    }

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!(
            [0, 1, 2].map(|count| format_count(count, "call")),
            ["0 calls", "1 call", "2 calls"]
        );
    }

    #[test]
    fn sizes_are_written_with_one_decimal() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_536, "1.5 KiB"),
            (12 << 20, "12.0 MiB"),
            ((1 << 30) - 1, "1023.9 MiB"),
            (5 << 40, "5120.0 GiB"),
        ] {
            assert_eq!(format_bytes(bytes), expected, "{bytes}");
        }
    }
}
