//! How fast a tree is searched: with an index, without one, and what the index costs.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::context_daemon::{ContextDaemon, files, keyword, names, ripgrep, search, sources};
use crate::measure::Measured;
use crate::memory::number;
use crate::report::{Bar, BarVerdict, Table};
use crate::statistics::{nanoseconds, short};

/// How many different texts to search for, and how often each.
const NEEDLES: usize = 20;
const TIMES: usize = 5;
/// How often to search the tree without an index.
const UNINDEXED: usize = 7;
const BAR_WARM_MS: f64 = 20.0;
const BAR_UNINDEXED: f64 = 1.3;
/// The figures of a comparable daemon: the size of its index relative to the source, and its memory, which is 250 MB.
const BAR_SIZE: f64 = 0.7;
const BAR_MIB: f64 = 238.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::of_ratios(
        "Context: searching a large tree",
        "The sources that cargo has unpacked on this machine. Selective: names that few files have, one question to the strategy `keyword` of the warm daemon, from the \
         request to the ranked and packed answer, beside `rg` that prints the matching lines, in turns. Every file that `rg` finds for a name has to be in the answer \
         where that fits. Without an index: the first question about a tree, whose index is thrown away before each. The index: from the first question until it is ready; \
         tgrep, which was measured before on a machine like this one, took 36 s, 0.7 of the source and 250 MB.",
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let root = sources()?;
    let all = files(&root)?;
    let needles = names(&all, NEEDLES);
    ensure!(!needles.is_empty(), "there are no names to search for");
    let ripgrep = ripgrep(tidelock)?;
    let daemon = ContextDaemon::start(tidelock)?;
    // Warm up the page cache, which both sides use.
    search(&ripgrep, &root, &needles[0])?;
    unindexed(table, &daemon, &ripgrep, &root, &needles)?;
    index(table, &daemon, &root, &needles[0])?;
    warm(table, &daemon, &ripgrep, &root, &needles)
}

fn unindexed(
    table: &mut Table,
    daemon: &ContextDaemon,
    ripgrep: &Path,
    root: &Path,
    needles: &[String],
) -> Result<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for place in 0..UNINDEXED {
        let needle = &needles[place % needles.len()];
        daemon.forget(root)?;
        let mut question = keyword(root, needle);
        // Read the whole tree, however long that takes.
        question["deadline_ms"] = 60_000.into();
        let (took, answer) = daemon.ask(&question)?;
        ensure!(
            answer["index"]["state"] == "building",
            "there is an index: {}",
            answer["index"]
        );
        ours.push(nanoseconds(took));
        daemon.forget(root)?;
        theirs.push(nanoseconds(search(ripgrep, root, needle)?.0));
    }
    daemon.forget(root)?;
    let measured = |name, samples| Measured { name, samples };
    table.compare(
        "a selective search without an index",
        &measured("tidelock", ours),
        &measured("rg", theirs),
        Bar::WithinTimes(BAR_UNINDEXED),
    );
    Ok(())
}

fn index(table: &mut Table, daemon: &ContextDaemon, root: &Path, needle: &str) -> Result<()> {
    daemon.forget(root)?;
    daemon.ask(&keyword(root, needle))?;
    let began = Instant::now();
    let index = daemon.indexed(root)?;
    let took = began.elapsed();
    let mib = |key: &str| index[key].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
    let (source, size) = (mib("source_bytes"), mib("index_bytes"));
    let note = |table: &mut Table, what: &str, figure: String| {
        let empty = String::new;
        table.row(vec![
            what.to_owned(),
            empty(),
            figure,
            empty(),
            empty(),
            empty(),
            empty(),
        ]);
    };
    note(
        table,
        "the index is made",
        format!(
            "{} files, {} MiB in {} s, {} MiB/s",
            index["files"],
            short(source),
            short(took.as_secs_f64()),
            short(source / took.as_secs_f64())
        ),
    );
    let empty = String::new;
    let part = size / source;
    let figure = format!("{} MiB, {} of the source", short(size), short(part));
    let bar = format!("under {BAR_SIZE}");
    table.judged_row(
        vec![
            "its size".to_owned(),
            "tgrep".to_owned(),
            figure,
            "0.7".to_owned(),
            empty(),
            bar,
        ],
        BarVerdict::from(part < BAR_SIZE),
    );
    let peak = peak_mib(daemon.pid)?;
    let bar = format!("under {BAR_MIB} MiB");
    table.judged_row(
        vec![
            "the most memory of the daemon meanwhile".to_owned(),
            "tgrep".to_owned(),
            format!("{} MiB", short(peak)),
            "250 MB".to_owned(),
            empty(),
            bar,
        ],
        BarVerdict::from(peak < BAR_MIB),
    );
    Ok(())
}

fn warm(
    table: &mut Table,
    daemon: &ContextDaemon,
    ripgrep: &Path,
    root: &Path,
    needles: &[String],
) -> Result<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=TIMES {
        for needle in needles {
            let (took, answer) = daemon.ask(&keyword(root, needle))?;
            let (their, lines) = search(ripgrep, root, needle)?;
            agree(root, needle, &answer, &lines)?;
            if round > 0 {
                ours.push(nanoseconds(took));
                theirs.push(nanoseconds(their));
            }
        }
    }
    let ours = Measured {
        name: "tidelock",
        samples: ours,
    };
    let theirs = Measured {
        name: "rg",
        samples: theirs,
    };
    table.compare("a selective search, warm", &ours, &theirs, Bar::Faster);
    table.under("the same by itself", &ours, BAR_WARM_MS);
    Ok(())
}

/// The most files that are certain to fit into one answer.
const FEW_FILES: usize = 10;

/// Everything that is shown contains the name in any spelling (`parse_config`, `ParseConfig`), in its text or in its
/// path. And everything that `rg` finds is shown, unless something was left out.
fn agree(root: &Path, needle: &str, answer: &Value, lines: &str) -> Result<()> {
    let prefix = format!("{}/", root.display());
    let expected: BTreeSet<&str> = lines
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix)?.split(':').next())
        .collect();
    let fragments = answer["fragments"].as_array().cloned().unwrap_or_default();
    let shown: BTreeSet<&str> = fragments
        .iter()
        .filter_map(|fragment| fragment["path"].as_str())
        .collect();
    ensure!(!shown.is_empty(), "nothing is found for `{needle}`");
    let strange: Vec<_> = shown
        .difference(&expected)
        .filter(|path| {
            let text = std::fs::read(root.join(path)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).to_lowercase();
            let written = [needle.to_lowercase(), needle.to_lowercase().replace('_', "")];
            let path = path.to_lowercase();
            !written
                .iter()
                .any(|name| text.contains(name) || path.contains(name))
        })
        .collect();
    ensure!(strange.is_empty(), "`{needle}` is not in {strange:?}");
    if answer["left_out_total"] == 0 && expected.len().max(shown.len()) <= FEW_FILES {
        let missing: Vec<_> = expected.difference(&shown).collect();
        ensure!(missing.is_empty(), "`{needle}` is in {missing:?}, too");
    }
    Ok(())
}

fn peak_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(number(&status, "VmHWM") as f64 / 1024.0)
}
