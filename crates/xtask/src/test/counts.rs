//! How many tests passed, failed and were skipped, read from the runners' own summary lines.

use std::fmt;
use std::ops::AddAssign;

/// The program that prints the summary. Each format is only parsed for its own runner: nextest shows the output of
/// failed tests, which contains the other format as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    Nextest,
    Libtest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Counts {
    /// The numbers in one line of output: zero unless it is a summary line.
    pub(super) fn read(runner: Runner, line: &str) -> Self {
        let line = without_colours(line);
        match runner {
            Runner::Nextest => read_nextest(&line),
            Runner::Libtest => read_libtest(&line),
        }
    }

    /// A test that reports a skip has passed as far as its runner knows.
    pub(super) fn with_reported_skips(self, tests: usize, steps: usize) -> Self {
        Self {
            passed: self.passed.saturating_sub(tests),
            failed: self.failed,
            skipped: self.skipped + tests + steps,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Parses `Summary [ 1.2s] 9/10 tests run: 7 passed (1 slow), 1 failed, 1 timed out, 2 skipped`.
fn read_nextest(line: &str) -> Counts {
    let Some(summary) = line.trim_start().strip_prefix("Summary [") else {
        return Counts::default();
    };
    let Some((_, parts)) = summary.split_once(" run: ") else {
        return Counts::default();
    };
    let mut counts = Counts::default();
    for part in without_parentheses(parts).split(',') {
        let Some((number, word)) = part.trim().split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<usize>() else {
            continue;
        };
        match word.trim() {
            "passed" => counts.passed += number,
            "skipped" => counts.skipped += number,
            // Failed, timed out, or could not be started.
            _ => counts.failed += number,
        }
    }
    counts
}

/// Parses `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
fn read_libtest(line: &str) -> Counts {
    let Some((_, parts)) = line
        .strip_prefix("test result: ")
        .and_then(|rest| rest.split_once(". "))
    else {
        return Counts::default();
    };
    let number = |wanted: &str| {
        let part = parts.split(';').find_map(|part| part.trim().strip_suffix(wanted));
        part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    Counts {
        passed: number("passed"),
        failed: number("failed"),
        skipped: number("ignored"),
    }
}

/// Removes the escape sequences that color a terminal: ESC, bracket, parameters, and a letter.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // The search itself moves past the final letter.
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|character| {
            match character {
                '(' => depth += 1,
                ')' => {
                    depth = depth.saturating_sub(1);
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: usize, failed: usize, skipped: usize) -> Counts {
        Counts {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn summary_lines_are_read_each_in_their_own_way() {
        let nextest = Runner::Nextest;
        let libtest = Runner::Libtest;
        let libtest_line =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s";
        let cases = [
            (
                nextest,
                "     Summary [   0.011s] 1 test run: 1 passed, 0 skipped",
                counts(1, 0, 0),
            ),
            (
                nextest,
                "     Summary [   5.034s] 12 tests run: 11 passed, 1 failed, 3 skipped",
                counts(11, 1, 3),
            ),
            (
                nextest,
                "     Summary [   9.1s] 9/10 tests run: 6 passed (1 slow, 2 leaky), 1 failed, 2 timed out, 4 skipped",
                counts(6, 3, 4),
            ),
            (
                nextest,
                "\u{1b}[32;1m     Summary\u{1b}[0m [ 1.0s] \u{1b}[1m2\u{1b}[0m tests run: \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped",
                counts(2, 0, 0),
            ),
            (nextest, libtest_line, counts(0, 0, 0)),
            (
                nextest,
                "        PASS [   0.004s] xtask counts::tests",
                counts(0, 0, 0),
            ),
            (libtest, libtest_line, counts(3, 0, 1)),
            (
                libtest,
                "test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
                counts(2, 5, 0),
            ),
            (
                libtest,
                "test result: \u{1b}[32mok\u{1b}[m. 4 passed; 0 failed; 0 ignored; 0 measured",
                counts(4, 0, 0),
            ),
            (libtest, "running 4 tests", counts(0, 0, 0)),
        ];
        for (runner, line, expected) in cases {
            assert_eq!(Counts::read(runner, line), expected, "{runner:?} {line}");
        }
    }

    #[test]
    fn a_reported_skip_is_not_a_pass() {
        assert_eq!(counts(10, 1, 2).with_reported_skips(3, 1), counts(7, 1, 6));
    }

    #[test]
    fn the_last_line_is_plain() {
        assert_eq!(counts(7, 1, 6).to_string(), "7 passed, 1 failed, 6 skipped");
    }
}
