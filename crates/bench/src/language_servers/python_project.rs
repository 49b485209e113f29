//! A small Python project, and a question about each of its files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How many files there are besides the one that all of them import.
const FILES: usize = 4;

const SHAPES: &str = "\
from dataclasses import dataclass


@dataclass
class Point:
    \"\"\"A place on the map.\"\"\"

    x: float
    y: float

    def distance(self, other: \"Point\") -> float:
        return ((self.x - other.x) ** 2 + (self.y - other.y) ** 2) ** 0.5
";

const USER: &str = "\
from shapes import Point

origin = Point(0.0, 0.0)
print(origin.distance(Point(3.0, 4.0)))
";

/// The position to ask about, counted from 1: `distance`.
const LINE: u32 = 4;
const COLUMN: u32 = 14;
/// Part of every correct answer.
const EXPECTED: &str = "distance";

/// A directory with the project; dropping it removes the directory.
#[derive(Debug)]
pub(super) struct PythonProject {
    root: PathBuf,
    _directory: TempDir,
}

impl PythonProject {
    pub(super) fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let root = directory.path().canonicalize()?;
        fs::write(root.join("pyproject.toml"), "[project]\nname = \"bench\"\n")?;
        fs::write(root.join("shapes.py"), SHAPES)?;
        for number in 0..FILES {
            fs::write(root.join(format!("user_{number}.py")), USER)?;
        }
        Ok(Self {
            root,
            _directory: directory,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn file(&self, number: usize) -> PathBuf {
        self.root.join(format!("user_{}.py", number % FILES))
    }

    pub(super) fn question(&self, number: usize) -> String {
        json!({"path": self.file(number), "line": LINE, "column": COLUMN}).to_string()
    }

    pub(super) fn hover_params(&self, number: usize) -> Result<Value> {
        Ok(json!({
            "textDocument": {"uri": lsp::uri_of_path(&self.file(number))?},
            "position": {"line": LINE - 1, "character": COLUMN - 1},
        }))
    }

    /// What a server needs to know before it can be asked about a file.
    pub(super) fn open_params(&self, number: usize) -> Result<Value> {
        Ok(json!({"textDocument": {
            "uri": lsp::uri_of_path(&self.file(number))?, "languageId": "python", "version": 1, "text": USER,
        }}))
    }
}

/// Rejects an answer without the expected content.
pub(super) fn check_hover(answer: &str) -> Result<()> {
    ensure!(answer.contains(EXPECTED), "a hover without an answer: {answer}");
    Ok(())
}
