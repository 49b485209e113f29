//! The tables of BENCHMARKS.md.

use std::fmt;

use crate::measure::Measured;
use crate::statistics::{Figure, ratio, short};

const METHOD: &str = "\
All contenders of a table run in one process, in turns (A B C, B C A, ...), through the same loop, after a \
warm-up. A figure is the median over the rounds, with the 10th and the 90th percentile in brackets. A ratio is the \
median over the rounds of *peer / ours* within a round, so that a disturbance of the machine, which hits both, \
drops out: above 1 we are faster. Two threads start together, a turn in which they did not work at the same time is taken again, and the figure is the time per operation as one \
thread sees it. Ours and the peers that are linked with it are built with `--profile dist`, as published binaries are. Run it again \
with `cargo xtask bench`.";

#[derive(Debug)]
pub(crate) struct Report {
    machine: Vec<(&'static str, String)>,
    tables: Vec<Table>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// Shown, not judged.
    None,
    Faster,
    NoSlower,
    TimesFaster(f64),
    /// We may take at most this many times as long.
    WithinTimes(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarVerdict {
    Met,
    Missed,
    NotAsked,
}

#[derive(Debug)]
pub(crate) struct Table {
    title: &'static str,
    note: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    verdicts: Vec<BarVerdict>,
}

impl From<bool> for BarVerdict {
    fn from(is_met: bool) -> Self {
        if is_met { Self::Met } else { Self::Missed }
    }
}

impl fmt::Display for BarVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "yes",
            Self::Missed => "**no**",
            Self::NotAsked => "",
        })
    }
}

impl Bar {
    fn judge(self, ratio: f64) -> BarVerdict {
        match self {
            Self::None => BarVerdict::NotAsked,
            Self::Faster => BarVerdict::from(ratio > 1.0),
            Self::NoSlower => BarVerdict::from(ratio >= 1.0),
            Self::TimesFaster(times) => BarVerdict::from(ratio >= times),
            Self::WithinTimes(times) => BarVerdict::from(ratio * times >= 1.0),
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Faster => write!(f, "faster"),
            Self::NoSlower => write!(f, "no slower"),
            Self::TimesFaster(times) => write!(f, "{times} × faster"),
            Self::WithinTimes(times) => write!(f, "within {times} ×"),
        }
    }
}

impl Table {
    pub(crate) fn of_ratios(title: &'static str, note: &'static str) -> Self {
        Self::with_columns(
            title,
            note,
            &["what", "peer", "tidelock", "the peer", "ratio", "bar", "met"],
        )
    }

    pub(crate) fn with_columns(title: &'static str, note: &'static str, columns: &[&'static str]) -> Self {
        Self {
            title,
            note,
            columns: columns.to_vec(),
            rows: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    pub(crate) fn compare(&mut self, what: &str, ours: &Measured, peer: &Measured, bar: Bar) {
        let show = |samples: &[f64]| Figure::of(samples).nanoseconds();
        self.compare_as(show, what, ours, peer, bar);
    }

    pub(crate) fn compare_rates(&mut self, what: &str, ours: &Measured, peer: &Measured, bar: Bar) {
        let show = |samples: &[f64]| {
            let rates: Vec<f64> = samples.iter().map(|nanoseconds| 1e9 / nanoseconds).collect();
            Figure::of(&rates).per_second()
        };
        self.compare_as(show, what, ours, peer, bar);
    }

    /// The same for samples of nanoseconds per mebibyte, shown as mebibytes per second.
    pub(crate) fn compare_throughput(&mut self, what: &str, ours: &Measured, peer: &Measured, bar: Bar) {
        let show = |samples: &[f64]| {
            let rates: Vec<f64> = samples.iter().map(|nanoseconds| 1e9 / nanoseconds).collect();
            Figure::of(&rates).mebibytes_per_second()
        };
        self.compare_as(show, what, ours, peer, bar);
    }

    fn compare_as(
        &mut self,
        show: impl Fn(&[f64]) -> String,
        what: &str,
        ours: &Measured,
        peer: &Measured,
        bar: Bar,
    ) {
        let ratio = ratio(&ours.samples, &peer.samples);
        let verdict = bar.judge(ratio);
        self.row(vec![
            what.to_owned(),
            peer.name.to_owned(),
            show(&ours.samples),
            show(&peer.samples),
            short(ratio),
            bar.to_string(),
            verdict.to_string(),
        ]);
        self.judge(verdict);
    }

    /// Adds a row of ours that has to stay under a number of milliseconds, whatever the peers do.
    pub(crate) fn under(&mut self, what: &str, ours: &Measured, limit_ms: f64) {
        let figure = Figure::of(&ours.samples);
        let verdict = BarVerdict::from(figure.median < limit_ms * 1e6);
        let nobody = String::new;
        self.row(vec![
            what.to_owned(),
            nobody(),
            figure.nanoseconds(),
            nobody(),
            nobody(),
            format!("under {limit_ms} ms"),
            verdict.to_string(),
        ]);
        self.judge(verdict);
    }

    /// Fills the table. If that fails, its last row says why.
    pub(crate) fn filled(mut self, fill: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> Self {
        if let Err(error) = fill(&mut self) {
            self.not_measured(&format!("{error:#}"));
        }
        self
    }

    /// Adds a row that says why there is no figure, which counts as a missed bar.
    pub(crate) fn not_measured(&mut self, why: &str) {
        let mut cells = vec![String::new(); self.columns.len()];
        cells[0] = format!("not measured: {why}").replace('\n', " ");
        if let Some(last) = cells.last_mut() {
            *last = BarVerdict::Missed.to_string();
        }
        self.row(cells);
        self.judge(BarVerdict::Missed);
    }

    /// Adds a row that says what was left out. It is not judged: optional tools may be missing.
    pub(crate) fn skipped(&mut self, why: &str) {
        let mut cells = vec![String::new(); self.columns.len()];
        cells[0] = format!("left out: {why}").replace('\n', " ");
        self.row(cells);
    }

    pub(crate) fn judged_row(&mut self, mut cells: Vec<String>, verdict: BarVerdict) {
        cells.push(verdict.to_string());
        self.row(cells);
        self.judge(verdict);
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell per column");
        self.rows.push(cells);
    }

    pub(crate) fn judge(&mut self, verdict: BarVerdict) {
        self.verdicts.push(verdict);
    }
}

impl Report {
    pub(crate) fn new(machine: Vec<(&'static str, String)>) -> Self {
        Self {
            machine,
            tables: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, table: Table) {
        self.tables.push(table);
    }

    fn count(&self, verdict: BarVerdict) -> usize {
        self.tables
            .iter()
            .flat_map(|table| &table.verdicts)
            .filter(|given| **given == verdict)
            .count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (met, missed) = (self.count(BarVerdict::Met), self.count(BarVerdict::Missed));
        writeln!(
            f,
            "# Benchmarks\n\nWritten by `cargo xtask bench`. {met} of {} bars are met.\n",
            met + missed
        )?;
        writeln!(f, "| machine | |\n|---|---|")?;
        for (name, value) in &self.machine {
            writeln!(f, "| {name} | {value} |")?;
        }
        writeln!(f, "\n{METHOD}")?;
        for table in &self.tables {
            write!(f, "\n{table}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n\n{}\n", self.title, self.note)?;
        writeln!(f, "| {} |", self.columns.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.columns.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_judged_by_the_ratio() {
        let cases = [
            (Bar::None, 0.1, BarVerdict::NotAsked),
            (Bar::Faster, 1.0, BarVerdict::Missed),
            (Bar::Faster, 1.01, BarVerdict::Met),
            (Bar::NoSlower, 1.0, BarVerdict::Met),
            (Bar::NoSlower, 0.99, BarVerdict::Missed),
            (Bar::TimesFaster(5.0), 4.9, BarVerdict::Missed),
            (Bar::TimesFaster(5.0), 5.0, BarVerdict::Met),
            (Bar::WithinTimes(2.0), 0.5, BarVerdict::Met),
            (Bar::WithinTimes(2.0), 0.49, BarVerdict::Missed),
        ];
        for (bar, ratio, expected) in cases {
            assert_eq!(bar.judge(ratio), expected, "{bar:?} at {ratio}");
        }
    }

    #[test]
    fn a_table_reads_as_markdown() {
        let mut table = Table::of_ratios("Checks", "A note.");
        let ours = Measured {
            name: "tidelock",
            samples: vec![1.0, 1.0, 2.0],
        };
        let peer = Measured {
            name: "peer",
            samples: vec![6.0, 6.0, 6.0],
        };
        table.compare("check", &ours, &peer, Bar::TimesFaster(5.0));
        table.compare_rates("check", &ours, &peer, Bar::None);
        table.compare_throughput("read", &ours, &peer, Bar::Faster);
        table.under("open", &ours, 0.5);
        table.under("open", &peer, 0.000_006);
        table.not_measured("no\nroom");
        table.skipped("no peer");
        let mut report = Report::new(vec![("cores", "2".to_owned())]);
        report.add(table);
        let text = report.to_string();
        let expected = "\
## Checks

A note.

| what | peer | tidelock | the peer | ratio | bar | met |
|---|---|---|---|---|---|---|
| check | peer | 1.00 ns (1.00–2.00) | 6.00 ns (6.00–6.00) | 6.00 | 5 × faster | yes |
| check | peer | 1,000,000,000 /s (500,000,000–1,000,000,000) | 166,666,667 /s (166,666,667–166,666,667) | 6.00 |  |  |
| read | peer | 1,000,000,000 MiB/s (500,000,000–1,000,000,000) | 166,666,667 MiB/s (166,666,667–166,666,667) | 6.00 | faster | yes |
| open |  | 1.00 ns (1.00–2.00) |  |  | under 0.5 ms | yes |
| open |  | 6.00 ns (6.00–6.00) |  |  | under 0.000006 ms | **no** |
| not measured: no room |  |  |  |  |  | **no** |
| left out: no peer |  |  |  |  |  |  |
";
        assert!(text.ends_with(expected), "{text}");
        assert!(text.contains("3 of 5 bars are met"), "{text}");
        assert!(text.contains("| cores | 2 |"), "{text}");
    }
}
