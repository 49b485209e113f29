//! A workspace in a world of its own, for tests of plans.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Outcome, World, finish};

/// A directory with some files, in a world.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) world: World,
    pub(crate) root: PathBuf,
}

impl Project {
    /// A directory with these files, without git.
    pub(crate) fn new(files: &[(&str, &str)]) -> Project {
        Project::in_world(World::new(), files)
    }

    /// The same in a world that is there already.
    pub(crate) fn in_world(world: World, files: &[(&str, &str)]) -> Project {
        let root = world.path().join("project");
        fs::create_dir(&root).unwrap();
        let root = root.canonicalize().unwrap();
        let project = Project { world, root };
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    /// Another directory with these files in the same world.
    pub(crate) fn in_world_at(world: &World, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = world.path().join(name);
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        root.canonicalize().unwrap()
    }

    /// The same as a git repository with one commit.
    pub(crate) fn with_git(files: &[(&str, &str)]) -> Project {
        Project::new(files).and_git()
    }

    /// Makes it a git repository with one commit.
    pub(crate) fn and_git(self) -> Project {
        let project = self;
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        project.git(&["add", "--all"]);
        project.git(&["commit", "--quiet", "--message=first"]);
        project
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=test", "-c", "user.email=test@example.com"])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .current_dir(&self.root);
        finish(command).expect(0).stdout
    }

    /// The program with these arguments, in the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command(arguments);
        command
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        finish(self.command(arguments))
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Every file and its text; what git keeps is left out.
    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(&self.root, &self.root, &mut files);
        files
    }

    /// Opens a plan, and returns its id.
    #[track_caller]
    pub(crate) fn open(&self, options: &[&str]) -> String {
        let mut arguments = vec!["plan", "new", "--json"];
        arguments.extend(options);
        let plan = self.run(&arguments).expect(0).json();
        plan["id"].as_str().unwrap().to_owned()
    }

    /// Runs a line of the shell in a plan.
    #[track_caller]
    pub(crate) fn work(&self, plan: &str, line: &str) {
        self.run(&["plan", "exec", plan, "--", "sh", "-c", line])
            .expect(0);
    }

    /// A plan as `plan show --json` tells it.
    #[track_caller]
    pub(crate) fn shown(&self, plan: &str) -> Value {
        self.run(&["plan", "show", plan, "--json"]).expect(0).json()
    }
}

/// The last of several lines, each of which is an object.
#[track_caller]
pub(crate) fn last_object(outcome: &Outcome) -> Value {
    let line = outcome.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

/// A tree as it is written down in a test.
pub(crate) fn files(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pair = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    expected.iter().map(pair).collect()
}

fn collect(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if name == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            collect(root, &path, files);
        } else {
            files.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}
