//! Lines of a file.

use std::fmt;

/// Lines of a file, counted from 1, both ends included. There is always at least one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Lines {
    first: u32,
    last: u32,
}

impl Lines {
    /// From one line to another; `None` if that range is empty.
    #[must_use]
    pub fn new(first: u32, last: u32) -> Option<Self> {
        (first >= 1 && first <= last).then_some(Self { first, last })
    }

    #[must_use]
    pub fn one(line: u32) -> Option<Self> {
        Self::new(line, line)
    }

    #[must_use]
    pub fn first(self) -> u32 {
        self.first
    }

    #[must_use]
    pub fn last(self) -> u32 {
        self.last
    }

    #[must_use]
    pub fn count(self) -> u32 {
        self.last - self.first + 1
    }

    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether these lines contain all lines of the other.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// From the first line of either to the last line of either.
    #[must_use]
    pub fn span(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(formatter, "{}", self.first)
        } else {
            write!(formatter, "{}-{}", self.first, self.last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn lines_are_compared_by_what_they_have_in_common() {
        let lines = |first, last| Lines::new(first, last).unwrap();
        assert_eq!(
            (Lines::new(0, 1), Lines::new(2, 1), Lines::one(0)),
            (None, None, None)
        );
        for (one, other, overlaps, contains, span) in [
            (lines(1, 3), lines(3, 5), true, false, lines(1, 5)),
            (lines(1, 3), lines(4, 5), false, false, lines(1, 5)),
            (lines(2, 9), lines(3, 3), true, true, lines(2, 9)),
            (lines(3, 3), lines(2, 9), true, false, lines(2, 9)),
        ] {
            let found = (one.overlaps(other), one.contains(other), one.span(other));
            assert_eq!(found, (overlaps, contains, span), "{one} {other}");
            assert_eq!(one.overlaps(other), other.overlaps(one));
        }
        assert_eq!(
            (lines(2, 9).count(), lines(2, 2).to_string()),
            (8, "2".to_owned())
        );
    }
}
