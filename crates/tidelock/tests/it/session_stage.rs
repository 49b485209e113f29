//! Sessions in a project: scripts for the rehearsal agent, and what clients were told.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::harness::Outcome;
use crate::job_stage::Beside;
use crate::plan_stage::Project;

pub(crate) const BEFORE: [(&str, &str); 2] = [("a.txt", "one\ntwo\n"), ("b.txt", "b\n")];

impl Project {
    /// Writes a script beside the project, and returns its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let path = self.world.path().join(format!("{name}.yaml"));
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// `tidelock run` with a script.
    pub(crate) fn talk(&self, script: &str, options: &[&str]) -> Command {
        let path = self.script("script", script);
        let mut command = self.command(&["run", "--script", &path]);
        command.args(options).arg("do it");
        command
    }

    /// The same beside the test.
    pub(crate) fn talk_beside(&self, script: &str, options: &[&str]) -> Beside {
        Beside::start(&self.world, self.talk(script, options))
    }

    /// A session as `session show --json` tells it.
    #[track_caller]
    pub(crate) fn session(&self, session: &str) -> Value {
        self.run(&["session", "show", session, "--json"]).expect(0).json()
    }
}

/// All objects that were written, one a line.
#[track_caller]
pub(crate) fn objects(outcome: &Outcome) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    outcome.stdout.lines().map(read).collect()
}

/// The numbers of the events that were told.
pub(crate) fn sequences(objects: &[Value]) -> Vec<u64> {
    let events = objects.iter().filter_map(|object| object.get("event"));
    events.map(|event| event["sequence"].as_u64().unwrap()).collect()
}

/// What the agent said in them.
pub(crate) fn text(objects: &[Value]) -> String {
    let events = objects.iter().filter_map(|object| object.get("event"));
    let texts = events.filter(|event| event["data"]["kind"] == "text");
    texts
        .map(|event| event["data"]["delta"].as_str().unwrap())
        .collect()
}
