//! What a build in a fresh sandbox recompiles.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::service::Service;
use super::{git, scratch, settle};
use crate::jobs::runtime;
use crate::report::{BarVerdict, Table};

/// Crates of the workspace: the last one depends on all others.
const CRATES: usize = 8;
const FUNCTIONS: usize = 200;
const BUILD: &[&str] = &["cargo", "build", "--quiet", "--offline", "--message-format=json"];

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "Plans: the first build in a sandbox",
        "A workspace of eight crates without dependencies has been built; `target` is ignored by git. `cargo build` then runs \
         in a fresh sandbox of each of several plans that begin at the same state, and in a fresh worktree of git. The count is that of the \
         crates that cargo did not find fresh. Each was run once.",
        &["where", "crates compiled", "seconds", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let scratch = scratch()?;
    let root = scratch.join("project");
    make(&root)?;
    row(table, "the workspace, the first time", &built_in(&root)?, None);
    row(table, "the workspace again", &built_in(&root)?, None);
    let worktree = scratch.join("worktree");
    let tree = worktree.to_str().context("a path that is not UTF-8")?;
    git::run(&root, &["worktree", "add", "--quiet", "--detach", tree])?;
    row(table, "a worktree of git", &built_in(&worktree)?, None);
    git::run(&root, &["worktree", "remove", "--force", tree])?;

    let data = scratch.join("data");
    fs::create_dir(&data)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let service = Service::open(tidelock, &data).await?;
        let last = CRATES - 1;
        let change = format!("echo 'pub fn one_more() -> u64 {{ 1 }}' >> crate{last}/src/lib.rs");
        for (what, change, bar) in [
            ("a sandbox, nothing changed", None, 0),
            ("a second sandbox, one file changed", Some(change.as_str()), 1),
            ("a third sandbox, nothing changed", None, 0),
        ] {
            let plan = service.plan(&root).await?;
            if let Some(change) = change {
                service.shell(plan, change).await?;
            }
            settle();
            let began = Instant::now();
            let said = service.run(plan, BUILD).await?;
            let built = Built::of(&said, began)?;
            row(table, what, &built, Some(bar));
            service.discard(plan).await?;
        }
        row(table, "the workspace in the end", &built_in(&root)?, Some(0));
        service.collect().await?;
        service.close().await;
        Ok(())
    })
}

struct Built {
    compiled: usize,
    seconds: f64,
}

impl Built {
    fn of(messages: &[u8], began: Instant) -> Result<Self> {
        let seconds = began.elapsed().as_secs_f64();
        let mut counts = [0; 2];
        for line in messages
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let message: Value = serde_json::from_slice(line).context("cargo does not speak JSON")?;
            if message["reason"] == "compiler-artifact" {
                counts[usize::from(message["fresh"] == true)] += 1;
            }
        }
        let [compiled, fresh] = counts;
        ensure!(
            compiled + fresh == CRATES,
            "cargo speaks of {} crates",
            compiled + fresh
        );
        Ok(Self { compiled, seconds })
    }
}

fn row(table: &mut Table, what: &str, built: &Built, bar: Option<usize>) {
    let verdict = bar.map_or(BarVerdict::NotAsked, |bar| {
        BarVerdict::from(built.compiled == bar)
    });
    let cells = vec![
        what.to_owned(),
        built.compiled.to_string(),
        format!("{:.2}", built.seconds),
        bar.map(|bar| bar.to_string()).unwrap_or_default(),
    ];
    table.judged_row(cells, verdict);
}

fn built_in(directory: &Path) -> Result<Built> {
    settle();
    let began = Instant::now();
    let output = Command::new(BUILD[0])
        .args(&BUILD[1..])
        .current_dir(directory)
        .env_clear()
        .envs(super::service::environment())
        .output()
        .context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "the build failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Built::of(&output.stdout, began)
}

fn make(root: &Path) -> Result<()> {
    fs::create_dir(root)?;
    fs::write(
        root.join("Cargo.toml"),
        "[workspace]\nresolver = \"3\"\nmembers = [\"crate*\"]\n",
    )?;
    fs::write(root.join(".gitignore"), "/target\n")?;
    for number in 0..CRATES {
        let directory = root.join(format!("crate{number}"));
        fs::create_dir_all(directory.join("src"))?;
        let mut manifest = format!(
            "[package]\nname = \"crate{number}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n"
        );
        if number == CRATES - 1 {
            for other in 0..number {
                manifest.push_str(&format!("crate{other} = {{ path = \"../crate{other}\" }}\n"));
            }
        }
        fs::write(directory.join("Cargo.toml"), manifest)?;
        let functions: String = (0..FUNCTIONS)
            .map(|function| {
                format!(
                    "pub fn function{function}(of: u64) -> String {{ format!(\"{{}}\", of + {function}) }}\n"
                )
            })
            .collect();
        fs::write(directory.join("src/lib.rs"), functions)?;
    }
    git::run(root, &["init", "--quiet", "--initial-branch=main"])?;
    Command::new("cargo")
        .args(["generate-lockfile", "--quiet", "--offline"])
        .current_dir(root)
        .status()?;
    git::run(root, &["add", "--all"])?;
    git::run(root, &["commit", "--quiet", "--message", "first"])?;
    Ok(())
}
