//! Medians and spreads, and how they are formatted.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) p10: f64,
    pub(crate) p90: f64,
}

impl Figure {
    /// Summarises samples; there must be at least one.
    pub(crate) fn of(samples: &[f64]) -> Self {
        let [p10, median, p90] = percentiles(samples, [10, 50, 90]);
        Self { median, p10, p90 }
    }

    /// `0.61 ns (0.60–0.72)`.
    pub(crate) fn nanoseconds(self) -> String {
        let (divisor, unit) = match self.median {
            median if median < 1e3 => (1.0, "ns"),
            median if median < 1e6 => (1e3, "µs"),
            _ => (1e6, "ms"),
        };
        let short = |value: f64| short(value / divisor);
        format!(
            "{} {unit} ({}–{})",
            short(self.median),
            short(self.p10),
            short(self.p90)
        )
    }

    /// `4,321 /s (4,000–4,500)`.
    pub(crate) fn per_second(self) -> String {
        self.whole("/s")
    }

    /// `4,321 MiB/s (4,000–4,500)`.
    pub(crate) fn mebibytes_per_second(self) -> String {
        self.whole("MiB/s")
    }

    fn whole(self, unit: &str) -> String {
        let whole = |value: f64| grouped(value.round() as u64);
        format!(
            "{} {unit} ({}–{})",
            whole(self.median),
            whole(self.p10),
            whole(self.p90)
        )
    }
}

/// The samples that the given percentages of all samples do not exceed; there must be at least one.
pub(crate) fn percentiles<const N: usize>(samples: &[f64], percents: [usize; N]) -> [f64; N] {
    assert!(!samples.is_empty(), "a figure needs a sample");
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    percents.map(|percent| sorted[((sorted.len() - 1) * percent + 50) / 100])
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The median of how many times longer the other took, round by round.
///
/// The two samples of a round were taken right after each other, so what disturbs one disturbs both.
pub(crate) fn ratio(ours: &[f64], other: &[f64]) -> f64 {
    let by_round: Vec<f64> = ours.iter().zip(other).map(|(ours, other)| other / ours).collect();
    Figure::of(&by_round).median
}

pub(crate) fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_middle_and_the_spread() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(
            Figure::of(&samples),
            Figure {
                median: 50.0,
                p10: 10.0,
                p90: 90.0
            }
        );
        assert_eq!(
            Figure::of(&[7.0]),
            Figure {
                median: 7.0,
                p10: 7.0,
                p90: 7.0
            }
        );
    }

    #[test]
    fn figures_are_written_in_a_fitting_unit() {
        let cases = [
            ((0.612, 0.6, 0.7), "0.61 ns (0.60–0.70)"),
            ((1234.0, 1000.0, 12_000.0), "1.23 µs (1.00–12.0)"),
            ((3.4e6, 3e6, 5e8), "3.40 ms (3.00–500)"),
        ];
        for ((median, p10, p90), expected) in cases {
            assert_eq!(Figure { median, p10, p90 }.nanoseconds(), expected);
        }
    }

    #[test]
    fn rates_are_written_in_groups_of_three_digits() {
        let cases = [
            ((0.4, 0.0, 7.0), "0 /s (0–7)"),
            ((999.6, 999.4, 12_345.0), "1,000 /s (999–12,345)"),
            (
                (1_234_567.0, 100_000.0, 1e9),
                "1,234,567 /s (100,000–1,000,000,000)",
            ),
        ];
        for ((median, p10, p90), expected) in cases {
            assert_eq!(Figure { median, p10, p90 }.per_second(), expected);
        }
    }

    #[test]
    fn the_ratio_is_taken_round_by_round() {
        // The second round was disturbed for both, which the ratio ignores.
        assert_eq!(ratio(&[1.0, 10.0, 1.0], &[5.0, 50.0, 5.0]), 5.0);
    }
}
