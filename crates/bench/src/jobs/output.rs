//! Large output through a job, next to `cat` to a file.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::commands::CommandJobs;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const MEBIBYTE: usize = 1024 * 1024;
const MEBIBYTES: usize = 100;
const ROUNDS: Rounds = Rounds {
    counted: 5,
    warm_up: 1,
};

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::of_ratios(
        "Jobs: output",
        "100 MiB of text. Ours: `cat` of a file as a job of the shipped daemon, from the submission to the end of the job; by then all of it can be read \
         again, by sequence number, with the time of each piece. The peer: `cat` of the same file to another one on the same disk, with and without \
         a sync at the end. It is shown, and not judged.",
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    // The same directory as the daemons' homes, so that all write to one disk.
    let scratch = tempfile::tempdir()?;
    let source = scratch.path().join("text");
    write_text(&source)?;
    let copy = scratch.path().join("copy");
    let [[ours], [plain], [synced]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("tidelock", |_: &Path| Ok([through_job(tidelock, &source)?])),
            LongContender::new("`cat` to a file", |_: &Path| {
                Ok([through_cat(&source, &copy, AtTheEnd::Nothing)?])
            }),
            LongContender::new("`cat` to a file, synced", |_: &Path| {
                Ok([through_cat(&source, &copy, AtTheEnd::Sync)?])
            }),
        ],
    )?;
    table.compare_throughput("100 MiB of output", &ours, &plain, Bar::None);
    table.compare_throughput("100 MiB of output", &ours, &synced, Bar::None);
    Ok(())
}

/// Lines of text, all different.
fn write_text(path: &Path) -> Result<()> {
    let mut text = Vec::with_capacity(MEBIBYTES * MEBIBYTE + 128);
    let mut number = 0_u64;
    while text.len() < MEBIBYTES * MEBIBYTE {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        writeln!(
            text,
            "{number:>9}: compiled module {mixed:016x} without a warning"
        )?;
        number += 1;
    }
    text.truncate(MEBIBYTES * MEBIBYTE);
    Ok(fs::write(path, text)?)
}

fn through_job(tidelock: &Path, source: &Path) -> Result<f64> {
    let mut jobs = CommandJobs::start(tidelock)?;
    let bytes = fs::metadata(source)?.len();
    let directory = source.parent().unwrap_or(Path::new("/"));
    let began = Instant::now();
    let id = jobs.submit("cat text", directory, &json!({"output_limit_bytes": 2 * bytes}))?;
    let job = jobs.ended(&id)?;
    let took = nanoseconds(began.elapsed());
    let kept = (&job["state"], &job["output_bytes"], &job["cut_bytes"]);
    ensure!(
        kept == (&json!("succeeded"), &json!(bytes), &json!(0)),
        "a job ended as {kept:?}"
    );
    Ok(took / MEBIBYTES as f64)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtTheEnd {
    Nothing,
    Sync,
}

fn through_cat(source: &Path, copy: &Path, at_the_end: AtTheEnd) -> Result<f64> {
    let file = File::create(copy)?;
    let began = Instant::now();
    let ended = Command::new("cat")
        .arg(source)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .status()?;
    if at_the_end == AtTheEnd::Sync {
        file.sync_all()?;
    }
    let took = nanoseconds(began.elapsed());
    ensure!(ended.success(), "`cat` ended with {ended}");
    Ok(took / MEBIBYTES as f64)
}
