//! The lengths of files: a report to read, and one limit that fails.

use std::fmt;
use std::path::PathBuf;

use super::Finding;
use super::files::Tree;

/// A file over this many lines is reported.
const LONG: usize = 500;
/// A file over this many lines fails.
const TOO_LONG: usize = 800;
/// How many of the largest files the report shows.
const SHOWN: usize = 10;

#[derive(Debug)]
pub(super) struct Report {
    files: Vec<(usize, PathBuf)>,
}

impl Report {
    pub(super) fn new(tree: &Tree) -> Self {
        let mut files: Vec<_> = tree
            .sources()
            .map(|(path, source)| (source.line_count(), path.to_owned()))
            .collect();
        files.sort_by(|(length, path), (other_length, other)| other_length.cmp(length).then(path.cmp(other)));
        Self { files }
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let too_long = self.files.iter().filter(|(length, _)| *length > TOO_LONG);
        too_long
            .map(|(length, path)| {
                Finding::in_file(
                    path,
                    format!("has {length} lines; a file over {TOO_LONG} has to be split"),
                )
            })
            .collect()
    }

    /// The length that the given percentage of all files does not exceed.
    fn percentile(&self, percent: usize) -> usize {
        let count = self.files.len();
        // The nearest rank, counted from the short end.
        let rank = (count * percent).div_ceil(100).max(1);
        self.files
            .get(count.saturating_sub(rank))
            .map_or(0, |(length, _)| *length)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, high) = (self.percentile(50), self.percentile(90));
        writeln!(
            f,
            "{} Rust files: median {median} lines, 90 % have at most {high}",
            self.files.len()
        )?;
        for (length, path) in self.files.iter().take(SHOWN) {
            let mark = if *length > LONG {
                "  long: does it have one subject?"
            } else {
                ""
            };
            writeln!(f, "{length:6}  {}{mark}", path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_shows_the_spread_and_only_the_longest_fail() {
        let lengths = [100, 200, 501, 801];
        let texts: Vec<(String, String)> = lengths
            .iter()
            .map(|length| (format!("{length}.rs"), "x\n".repeat(*length)))
            .collect();
        let files: Vec<(&str, &str)> = texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let report = Report::new(&Tree::of(&files));
        let expected = "\
4 Rust files: median 200 lines, 90 % have at most 801
   801  801.rs  long: does it have one subject?
   501  501.rs  long: does it have one subject?
   200  200.rs
   100  100.rs
";
        assert_eq!(report.to_string(), expected);
        let findings: Vec<_> = report
            .findings()
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        assert_eq!(findings, [PathBuf::from("801.rs")]);
    }
}
