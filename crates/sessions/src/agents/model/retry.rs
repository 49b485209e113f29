//! When a request is tried again. Pure.

use std::time::Duration;

/// How long it is waited before the first repetition, twice as long before the second, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause that is not a wish of the server.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// A server that wants to be left alone for this long or longer is not asked by anybody meanwhile: its circuit opens. A
/// shorter wish is the daily business of rate limits, and concerns whoever was told.
const LONG_WISH: Duration = Duration::from_secs(10);

/// How long to wait before the next attempt. `fraction` is a random number from 0 up to 1: turns that failed together shall
/// not come back together. A wish of the server is only ever lengthened.
pub(super) fn pause(repetition: u32, wish: Option<Duration>, fraction: f64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(repetition).unwrap_or(u32::MAX));
    let usual = doubled.min(LONGEST_PAUSE);
    match wish {
        Some(wish) => wish.saturating_add(FIRST_PAUSE.mul_f64(fraction)),
        None => usual.mul_f64(0.5 + fraction / 2.0),
    }
}

/// Whether a wish of the server is for everybody.
pub(super) fn is_for_all(wish: Duration) -> bool {
    wish >= LONG_WISH
}

/// A random number from 0 up to 1. Without randomness, the middle is as good as any.
pub(super) fn fraction() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let millis = Duration::from_millis;
        let cases = [
            (0, None, 0.0, millis(250)),
            (0, None, 1.0, millis(500)),
            (1, None, 1.0, millis(1_000)),
            (4, None, 1.0, millis(8_000)),
            (5, None, 1.0, LONGEST_PAUSE),
            (u32::MAX, None, 1.0, LONGEST_PAUSE),
            (0, Some(millis(7_000)), 0.0, millis(7_000)),
            (3, Some(millis(0)), 1.0, millis(500)),
            (0, Some(Duration::MAX), 1.0, Duration::MAX),
        ];
        for (repetition, wish, fraction, expected) in cases {
            assert_eq!(
                pause(repetition, wish, fraction),
                expected,
                "{repetition} {wish:?} {fraction}"
            );
        }
        assert!((0.0..1.0).contains(&fraction()));
    }
}
