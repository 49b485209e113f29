//! When a request is retried. Pure.

use std::time::Duration;

/// The pause before the first retry. It doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// If a server asks for a pause of this length or longer, its circuit opens and all turns wait. Shorter pauses are
/// routine rate limiting, and concern only the turn that got the reply.
const LONG_WISH: Duration = Duration::from_secs(10);

/// How long to wait before the next attempt. `fraction` is a random number from 0 up to 1, so that turns that failed
/// together don't retry together. A pause that the server asks for is only ever lengthened.
pub(super) fn pause(repetition: u32, wish: Option<Duration>, fraction: f64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(repetition).unwrap_or(u32::MAX));
    let usual = doubled.min(LONGEST_PAUSE);
    match wish {
        Some(wish) => wish.saturating_add(FIRST_PAUSE.mul_f64(fraction)),
        None => usual.mul_f64(0.5 + fraction / 2.0),
    }
}

/// Whether a pause that the server asks for applies to all turns.
pub(super) fn is_for_all(wish: Duration) -> bool {
    wish >= LONG_WISH
}

/// A random number from 0 up to 1. If no randomness is available, the middle will do.
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
