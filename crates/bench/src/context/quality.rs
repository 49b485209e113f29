//! Whether the results include the file that a question is about, at two budgets.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use context::{Tokenizer, TokenizerName};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::context_daemon::{ContextDaemon, ripgrep};
use super::floor::Order;
use super::tasks::{Kind, Task, tasks_of};
use super::{floor, history};
use crate::report::{BarVerdict, Table};

/// Public crates of medium size that the product depends on, so every machine that builds it has them.
const CRATES: &[&str] = &[
    "aho-corasick",
    "axum",
    "bstr",
    "clap_builder",
    "gix-index",
    "hyper",
    "ignore",
    "notify",
    "regex-automata",
    "rusqlite",
    "serde_json",
    "tokio-util",
];
/// Tasks of each kind from each crate.
const TASKS_OF_CRATE: usize = 10;
/// Tasks from the history. Each has its own tree.
const COMMITS: usize = 30;
const BUDGETS: [usize; 2] = [2000, 8000];
/// If set to any value, every missed file is named on standard error.
const SHOW_VARIABLE: &str = "TIDELOCK_BENCH_SHOW_MISSED";

struct Tree {
    root: PathBuf,
    tasks: Vec<(usize, Task)>,
}

/// How much was found for the tasks of one row, for each budget: by us, and by the floors.
#[derive(Clone, Copy, Debug, Default)]
struct FoundFiles {
    tasks: usize,
    ours: [f64; BUDGETS.len()],
    floors: [[f64; BUDGETS.len()]; FLOORS.len()],
}

/// The floors: search for the words of the question, and read the results.
const FLOORS: [Order; 2] = [Order::Path, Order::Words];

const ROWS: [&str; 3] = [
    "a sentence of a comment → the file",
    "a name, or its words → the file",
    "what a commit says → the files it changed",
];

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "Context: is it found",
        "Tasks with a known answer, made from twelve public crates: the first sentence of the comment of something public, without its name; its name, split into \
         words in half of the cases; and from the history of this repository, on the tree before each commit. The figure is the part of the files asked for that \
         is among the fragments, within a budget of tokens. The others search for the words of the question with `rg`, without those that say nothing, and read \
         what it prints, with two lines around each match, until the budget is used up: in its own order (`--sort path`), and with the files first that hold most \
         of the words.",
        &[
            "what",
            "tasks",
            "budget",
            "tidelock",
            "rg by path",
            "rg by words",
            "bar",
            "met",
        ],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let trees = trees(&directory)?;
    let asked = Asked {
        daemon: ContextDaemon::start(tidelock)?,
        ripgrep: ripgrep(tidelock)?,
        tokenizer: Tokenizer::load(TokenizerName::O200k)?,
    };
    let mut found = [FoundFiles::default(); ROWS.len()];
    for tree in &trees {
        asked.index(&tree.root)?;
        for (row, task) in &tree.tasks {
            asked.task(&tree.root, task, &mut found[*row])?;
        }
    }
    for (what, found) in ROWS.iter().zip(found) {
        if found.tasks == 0 {
            table.skipped(&format!("{what}: there are no tasks, as there is no history"));
            continue;
        }
        for (place, budget) in BUDGETS.iter().enumerate() {
            let part = |sums: [f64; BUDGETS.len()]| sums[place] / found.tasks as f64;
            let (ours, floors) = (part(found.ours), found.floors.map(part));
            let percent = |part: f64| format!("{:.0} %", part * 100.0);
            let cells = vec![
                (*what).to_owned(),
                found.tasks.to_string(),
                budget.to_string(),
                percent(ours),
                percent(floors[0]),
                percent(floors[1]),
                "more than both".to_owned(),
            ];
            table.judged_row(cells, BarVerdict::from(floors.iter().all(|floor| ours > *floor)));
        }
    }
    Ok(())
}

/// Copies of the trees to ask about, with nothing else next to them.
fn trees(directory: &TempDir) -> Result<Vec<Tree>> {
    let mut trees = Vec::new();
    // The daemon refers to trees by their canonical paths.
    let directory = directory.path().canonicalize()?;
    for (name, from) in crates()? {
        let root = directory.join(&name);
        copy(&from, &root)?;
        let mut tasks = Vec::new();
        for (row, kind) in [Kind::Sentence, Kind::Name].into_iter().enumerate() {
            let of_kind = tasks_of(&root, kind, TASKS_OF_CRATE)?;
            tasks.extend(of_kind.into_iter().map(|task| (row, task)));
        }
        trees.push(Tree { root, tasks });
    }
    for commit in history::commits(COMMITS) {
        let root = directory.join(&commit.parent);
        if !root.exists() {
            history::check_out(&commit.parent, &root)?;
        }
        trees.push(Tree {
            root,
            tasks: vec![(2, commit.task)],
        });
    }
    Ok(trees)
}

fn crates() -> Result<Vec<(String, PathBuf)>> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--offline"])
        .output()?;
    ensure!(
        output.status.success(),
        "cargo metadata ended with {}",
        output.status
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let place = |name: &&str| {
        let package = packages.iter().find(|package| package["name"] == **name);
        let manifest = package.and_then(|package| package["manifest_path"].as_str());
        let manifest = Path::new(manifest.with_context(|| format!("there is no crate {name}"))?);
        let root = manifest.parent().context("a manifest in no directory")?;
        Ok(((*name).to_owned(), root.to_owned()))
    };
    CRATES.iter().map(place).collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

struct Asked {
    daemon: ContextDaemon,
    ripgrep: PathBuf,
    tokenizer: &'static Tokenizer,
}

impl Asked {
    fn ask(&self, root: &Path, query: &str, budget: usize) -> Result<Value> {
        let question = json!({"directory": root, "query": query, "budget_tokens": budget});
        Ok(self.daemon.ask(&question)?.1)
    }

    /// Waits until a tree is indexed. The first question starts that.
    fn index(&self, root: &Path) -> Result<()> {
        self.ask(root, "anything", 100)?;
        self.daemon.indexed(root)?;
        Ok(())
    }

    fn task(&self, root: &Path, task: &Task, found: &mut FoundFiles) -> Result<()> {
        found.tasks += 1;
        for (place, budget) in BUDGETS.into_iter().enumerate() {
            let answer = self.ask(root, &task.query, budget)?;
            let tokens = answer["tokens"].as_u64().unwrap_or(u64::MAX);
            ensure!(
                tokens <= budget as u64,
                "an answer of {tokens} tokens for a budget of {budget}"
            );
            let fragments = answer["fragments"]
                .as_array()
                .context("an answer without fragments")?;
            let shown = fragments.iter().filter_map(|fragment| fragment["path"].as_str());
            let ours: BTreeSet<String> = shown.map(str::to_owned).collect();
            found.ours[place] += part(&task.files, &ours);
            for (sums, order) in found.floors.iter_mut().zip(FLOORS) {
                let room = (budget, self.tokenizer);
                let read = floor::files(&self.ripgrep, root, &task.query, order, room)?;
                sums[place] += part(&task.files, &read);
            }
            if std::env::var_os(SHOW_VARIABLE).is_some() && part(&task.files, &ours) < 1.0 {
                eprintln!(
                    "missed at {budget} in {}: {task:?}; shown: {ours:?}",
                    root.display()
                );
            }
        }
        Ok(())
    }
}

fn part(wanted: &[String], shown: &BTreeSet<String>) -> f64 {
    let found = wanted.iter().filter(|file| shown.contains(*file)).count();
    found as f64 / wanted.len().max(1) as f64
}
