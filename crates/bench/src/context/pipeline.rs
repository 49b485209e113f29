//! How fast a whole answer is on 50,000 files, alone and under load, and after a file has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::context_daemon::{ContextDaemon, files, keyword, names, sources};
use crate::measure::Measured;
use crate::report::{BarVerdict, Table};
use crate::statistics::{nanoseconds, percentiles, short};
use crate::turns::scratch;

const FILES: usize = 50_000;
const QUESTIONS: usize = 40;
const TIMES: usize = 5;
/// How many callers ask at once, and how often each of them asks.
const CALLERS: usize = 16;
const EACH: usize = 10;
const CHANGES: usize = 50;
const BAR_MS: f64 = 150.0;
/// The default deadline of an answer.
const DEADLINE_MS: f64 = 3000.0;
const BAR_UPDATE_MS: f64 = 20.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "Context: whole answers",
        "A tree of 50,000 files, a copy of the sources that cargo has unpacked; all strategies, a budget of 8,000 tokens, questions of a name and some words. From the request to \
         the answer. `At once`: 16 callers; the bar is that they get as many answers in a second together as one alone. `After a change`: a file is written, and a name that \
         was not there before is asked for at once; it has to be found, and the bar is what that takes longer than without a change.",
        &["what", "figure", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let (scratch, sources) = (scratch()?, sources()?);
    let root = scratch.path().canonicalize()?.join("tree");
    let copied = copy(&files(&sources)?, &sources, &root)?;
    commit(&root)?;
    let questions: Vec<Value> = names(&copied, QUESTIONS)
        .iter()
        .map(|name| {
            let words = name.replace('_', " ");
            json!({ "directory": root, "query": format!("where is {name} used, and what does {words} do?"), "budget_tokens": 8000 })
        })
        .collect();
    ensure!(!questions.is_empty(), "there is nothing to ask");
    let daemon = ContextDaemon::start(tidelock)?;
    daemon.ask(&questions[0])?;
    daemon.indexed(&root)?;
    let one = alone(table, &daemon, &questions)?;
    at_once(table, &daemon, &questions, one)?;
    after_a_change(table, &daemon, &root)
}

/// Makes the tree a repository with a history: otherwise the one that contains this program would be asked about.
fn commit(root: &Path) -> Result<()> {
    let author = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "--all", "--force"],
        &["commit", "--quiet", "--message", "all of it"],
    ] {
        let mut git = Command::new("git");
        git.current_dir(root).args(["-c", "gc.auto=0"]).args(author);
        let ended = git.args(arguments).stdin(Stdio::null()).status()?;
        ensure!(ended.success(), "git {} ended with {ended}", arguments[0]);
    }
    Ok(())
}

/// Copies files, and starts over until there are enough.
fn copy(from: &[PathBuf], sources: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let mut copied = Vec::with_capacity(FILES);
    'rounds: for round in 0.. {
        for path in from {
            if copied.len() == FILES {
                break 'rounds;
            }
            let to = root.join(round.to_string()).join(path.strip_prefix(sources)?);
            fs::create_dir_all(to.parent().context("a file without a directory")?)?;
            fs::copy(path, &to)?;
            copied.push(to);
        }
        ensure!(!from.is_empty(), "there is nothing to copy");
    }
    Ok(copied)
}

/// One caller; returns the number of answers per second.
fn alone(table: &mut Table, daemon: &ContextDaemon, questions: &[Value]) -> Result<f64> {
    let mut samples = Vec::new();
    let mut counted = Duration::ZERO;
    for round in 0..=TIMES {
        for question in questions {
            let (took, answer) = daemon.ask(question)?;
            let tokens = answer["tokens"].as_u64().unwrap_or(u64::MAX);
            ensure!(tokens <= 8000, "an answer has {tokens} tokens");
            if round > 0 {
                samples.push(nanoseconds(took));
                counted += took;
            }
        }
    }
    let milliseconds: Vec<f64> = samples.iter().map(|nanoseconds| nanoseconds / 1e6).collect();
    let [p50, p99] = percentiles(&milliseconds, [50, 99]);
    let bar = |limit: f64| format!("under {limit} ms");
    let row = |what: &str, value: f64, limit: f64| {
        vec![what.to_owned(), format!("{} ms", short(value)), bar(limit)]
    };
    table.judged_row(row("an answer, p50", p50, BAR_MS), BarVerdict::from(p50 < BAR_MS));
    table.judged_row(
        row("an answer, p99", p99, DEADLINE_MS),
        BarVerdict::from(p99 < DEADLINE_MS),
    );
    Ok(samples.len() as f64 / counted.as_secs_f64())
}

fn at_once(table: &mut Table, daemon: &ContextDaemon, questions: &[Value], alone: f64) -> Result<()> {
    let began = Instant::now();
    std::thread::scope(|threads| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                threads.spawn(move || {
                    for turn in 0..EACH {
                        let question = &questions[(caller * EACH + turn) % questions.len()];
                        daemon.ask(question)?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for caller in callers {
            caller
                .join()
                .map_err(|_| anyhow::anyhow!("a caller panicked"))??;
        }
        anyhow::Ok(())
    })?;
    let rate = (CALLERS * EACH) as f64 / began.elapsed().as_secs_f64();
    let cells = vec![
        format!("{CALLERS} at once"),
        format!("{} answers/s (one alone {})", short(rate), short(alone)),
        "not below one alone".to_owned(),
    ];
    table.judged_row(cells, BarVerdict::from(rate >= alone));
    Ok(())
}

fn after_a_change(table: &mut Table, daemon: &ContextDaemon, root: &Path) -> Result<()> {
    let file = root.join("0/changed_by_the_benchmark.rs");
    let (mut changed, mut still) = (Vec::new(), Vec::new());
    for round in 0..CHANGES {
        let name = format!("benchmark_changes_this_{round:04}");
        fs::write(&file, format!("/// Says so.\npub fn {name}() {{}}\n"))?;
        let question = keyword(root, &name);
        let (took, answer) = daemon.ask(&question)?;
        ensure!(
            answer["text"].as_str().is_some_and(|text| text.contains(&name)),
            "what was just written is not found: {}",
            answer["strategies"]
        );
        changed.push(nanoseconds(took));
        still.push(nanoseconds(daemon.ask(&question)?.0));
    }
    let (changed, still) = (
        Measured {
            name: "changed",
            samples: changed,
        },
        Measured {
            name: "still",
            samples: still,
        },
    );
    let median = |measured: &Measured| percentiles(&measured.samples, [50])[0] / 1e6;
    let more = median(&changed) - median(&still);
    let cells = vec![
        "an answer after a change".to_owned(),
        format!(
            "{} ms; {} ms without one",
            short(median(&changed)),
            short(median(&still))
        ),
        format!("under {BAR_UPDATE_MS} ms more"),
    ];
    table.judged_row(cells, BarVerdict::from(more < BAR_UPDATE_MS));
    Ok(())
}
