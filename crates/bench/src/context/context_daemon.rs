//! A daemon of our own, a tree to ask about, and the questions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::own_daemon::Daemon;
use crate::programs::{find_peer, finish, peers_directory};

/// How long indexing the largest tree may take.
const INDEXED_WITHIN: Duration = Duration::from_secs(600);
/// The minimum length of a name, so that few files contain it.
const LONG_NAME: usize = 14;
/// Larger files are not source code.
const LARGEST_BYTES: u64 = 1024 * 1024;

pub(super) struct ContextDaemon {
    _daemon: Daemon,
    pub(super) pid: u32,
    socket: PathBuf,
    token: String,
}

impl ContextDaemon {
    pub(super) fn start(tidelock: &Path) -> Result<Self> {
        let daemon = Daemon::start(tidelock, |_| Ok(()))?;
        Ok(Self {
            pid: daemon.pid()?,
            socket: daemon.socket()?,
            token: daemon.token()?,
            _daemon: daemon,
        })
    }

    pub(super) fn client(&self) -> Result<HttpClient> {
        HttpClient::unix(&self.socket, &self.token)
    }

    pub(super) fn ask(&self, question: &Value) -> Result<(Duration, Value)> {
        let mut client = self.client()?;
        let began = Instant::now();
        let answer = client.post_json("/v1/context", question)?;
        Ok((began.elapsed(), answer))
    }

    /// Waits until the index covers the whole tree, and returns its details.
    pub(super) fn indexed(&self, root: &Path) -> Result<Value> {
        let began = Instant::now();
        loop {
            let list = self.client()?.get_json("/v1/context/indexes")?;
            let indexes = list["indexes"].as_array().context("a list without indexes")?;
            let index = indexes
                .iter()
                .find(|index| index["root"].as_str() == root.to_str());
            // A question opens it before the answer arrives.
            ensure!(index.is_some(), "there is no index of {}: {list}", root.display());
            match index.and_then(|index| index["state"].as_str()) {
                Some("ready") => return Ok(index.cloned().unwrap_or_default()),
                Some("failed") => bail!("the index failed: {index:?}"),
                _ => {}
            }
            ensure!(began.elapsed() < INDEXED_WITHIN, "the index is not made");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn forget(&self, root: &Path) -> Result<()> {
        let order = json!({ "directory": root });
        self.client()?.post_json("/v1/context/indexes/remove", &order)?;
        Ok(())
    }
}

pub(super) fn keyword(root: &Path, query: &str) -> Value {
    json!({ "directory": root, "query": query, "only": ["keyword"], "budget_tokens": 2000 })
}

pub(super) fn sources() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let unpacked = home.context("there is no home")?.join("registry/src");
    let mut roots: Vec<PathBuf> = fs::read_dir(&unpacked)
        .with_context(|| format!("there is nothing in {}", unpacked.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    // Usually there is only one; the one with the most crates is the most work.
    roots.sort_by_key(|root| fs::read_dir(root).map_or(0, Iterator::count));
    let root = roots.pop().context("cargo has unpacked nothing")?;
    Ok(root.canonicalize()?)
}

/// The files of a tree, in order.
pub(super) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() && entry.metadata()?.len() <= LARGEST_BYTES {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Long names from the sources of a tree, evenly spread and always the same.
pub(super) fn names(files: &[PathBuf], count: usize) -> Vec<String> {
    let sources: Vec<&PathBuf> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    let mut names = Vec::new();
    for place in 0..count * 4 {
        let Some(path) = sources.get(place * sources.len() / (count * 4)) else {
            continue;
        };
        let text = fs::read_to_string(path).unwrap_or_default();
        let found = text
            .split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'))
            .find(|word| {
                word.len() >= LONG_NAME
                    && word.starts_with(|char: char| char.is_ascii_alphabetic())
                    && word.contains('_')
            });
        names.extend(found.map(str::to_owned));
    }
    names.sort();
    names.dedup();
    // Names with the same beginning come from the same crates, so spread the selection.
    let step = (names.len() / count.max(1)).max(1);
    names.into_iter().step_by(step).take(count).collect()
}

/// The program to compare with, built if missing.
pub(super) fn ripgrep(tidelock: &Path) -> Result<PathBuf> {
    if let Some(found) = find_peer("rg") {
        return Ok(found);
    }
    let directory = peers_directory(tidelock)?.join("ripgrep");
    let program = directory.join("bin/rg");
    if !program.is_file() {
        eprintln!("building the peer ripgrep ...");
        let mut install = Command::new("cargo");
        finish(
            install
                .args(["install", "--quiet", "ripgrep", "--root"])
                .arg(&directory),
        )?;
    }
    Ok(program)
}

/// Searches the whole tree and prints the matching lines. Returns the time it took and the output.
pub(super) fn search(ripgrep: &Path, root: &Path, needle: &str) -> Result<(Duration, String)> {
    let began = Instant::now();
    let output = Command::new(ripgrep)
        .args(["--line-number", "--fixed-strings", "--ignore-case", "--hidden"])
        .arg("--")
        .arg(needle)
        .arg(root)
        .stdin(Stdio::null())
        .output()
        .context("ripgrep does not run")?;
    Ok((
        began.elapsed(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    ))
}
