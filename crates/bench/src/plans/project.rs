//! A tree of text files in a git repository, everything committed.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use super::git;

/// Lines of a file; together about two kilobytes.
const LINES: usize = 40;
const FILES_IN_A_DIRECTORY: usize = 50;
const DIRECTORIES_IN_A_DIRECTORY: usize = 20;

/// What [`append`] adds to a file.
pub(super) const APPENDED: &str = "one line more\n";

/// A tree of text files in a git repository, everything committed.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) root: PathBuf,
    pub(super) files: usize,
}

impl Project {
    /// Creates one in a directory that does not exist yet. The objects are in a pack, as after a clone.
    pub(super) fn make(root: PathBuf, files: usize) -> Result<Self> {
        std::fs::create_dir(&root).with_context(|| format!("cannot make {}", root.display()))?;
        let root = root.canonicalize()?;
        git::run(&root, &["init", "--quiet", "--initial-branch=main"])?;
        let project = Self { root, files };
        project.import("main", None, (0..files).map(|file| (file, content(file))))?;
        git::run(&project.root, &["reset", "--quiet", "--hard"])?;
        git::run(&project.root, &["status"])?;
        Ok(project)
    }

    /// Creates a branch that differs from `main` in some files.
    pub(super) fn branch(&self, name: &str, changed: impl Iterator<Item = (usize, String)>) -> Result<()> {
        self.import(name, Some("main"), changed)
    }

    fn import(
        &self,
        branch: &str,
        from: Option<&str>,
        files: impl Iterator<Item = (usize, String)>,
    ) -> Result<()> {
        let mut command = git::command(&self.root, &["fast-import", "--quiet"]);
        let mut import = command.stdin(Stdio::piped()).spawn().context("cannot run git")?;
        let stdin = import.stdin.take().context("git has no standard input")?;
        let mut stream = BufWriter::new(stdin);
        write!(
            stream,
            "commit refs/heads/{branch}\ncommitter bench <bench@localhost> 1700000000 +0000\ndata 1\n.\n"
        )?;
        if let Some(from) = from {
            writeln!(stream, "from refs/heads/{from}")?;
        }
        for (file, content) in files {
            write!(
                stream,
                "M 100644 inline {}\ndata {}\n{content}\n",
                path(file),
                content.len()
            )?;
        }
        stream.flush()?;
        drop(stream);
        ensure!(import.wait()?.success(), "`git fast-import` of `{branch}` failed");
        Ok(())
    }

    pub(super) fn read(&self, file: usize) -> Result<String> {
        read_in(&self.root, file)
    }
}

pub(super) fn read_in(root: &Path, file: usize) -> Result<String> {
    let path = root.join(path(file));
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

pub(super) fn path(file: usize) -> String {
    let directory = file / FILES_IN_A_DIRECTORY;
    let above = directory / DIRECTORIES_IN_A_DIRECTORY;
    format!("src/part{above:02}/module{directory:04}/file{file:05}.txt")
}

pub(super) fn content(file: usize) -> String {
    (0..LINES)
        .map(|line| format!("line {line} of file {file}, with words that are here to fill it\n"))
        .collect()
}

/// The same with one line replaced, counted from 1.
pub(super) fn edited(file: usize, line: usize, text: &str) -> String {
    let mut edited = String::new();
    for (number, old) in content(file).lines().enumerate() {
        edited.push_str(if number + 1 == line { text } else { old });
        edited.push('\n');
    }
    edited
}

/// A shell command that appends a line to each of some files, in the root of the tree.
pub(super) fn append(files: impl Iterator<Item = usize>) -> String {
    let paths: Vec<String> = files.map(path).collect();
    let text = APPENDED.trim_end();
    format!(
        "for f in {}; do echo '{text}' >> $f || exit 1; done",
        paths.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_committed_and_its_branches_differ_where_they_should() {
        let scratch = tempfile::tempdir().unwrap();
        let project = Project::make(scratch.path().join("project"), 120).unwrap();
        assert_eq!(project.read(119).unwrap(), content(119));
        let status = ["status", "--porcelain"];
        assert_eq!(git::run(&project.root, &status).unwrap(), "");
        let listed = git::run(&project.root, &["ls-files"]).unwrap();
        assert_eq!(listed.lines().count(), project.files);

        project
            .branch("other", [(3, edited(3, 1, "new"))].into_iter())
            .unwrap();
        let differs = git::run(&project.root, &["diff", "--stat", "main", "other"]).unwrap();
        assert!(differs.contains("1 insertion(+), 1 deletion(-)"), "{differs}");

        let done = std::process::Command::new("sh")
            .args(["-c", &append([0, 60].into_iter())])
            .current_dir(&project.root)
            .status();
        assert!(done.unwrap().success());
        assert_eq!(project.read(60).unwrap(), content(60) + APPENDED);
        let status = git::run(&project.root, &status).unwrap();
        assert_eq!(status, format!(" M {}\n M {}\n", path(0), path(60)));
    }
}
