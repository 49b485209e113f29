//! Agents that people use, joined by `tidelock join`, with a scripted model behind them. They change one repository at once,
//! each in a plan of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::finish_within;
use crate::mcp_clients_model::{DONE, Model, Task};
use crate::mcp_clients_stage::{UserHome, installed};
use crate::plan_stage::{Project, files};

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")];

/// They are large programs, and a busy machine takes its time to start them for the first time in a home.
const PATIENCE: Duration = Duration::from_secs(240);

/// What an agent is asked to do: a word of its prompt, and an edit that it makes and applies.
fn task(word: &'static str, find: &str, replace: &str) -> Task {
    Task {
        word,
        calls: vec![
            ("plan_open", json!({ "title": word })),
            (
                "plan_edit",
                json!({ "path": "a.txt", "find": find, "replace": replace }),
            ),
            ("plan_diff", json!({})),
            ("plan_apply", json!({})),
        ],
    }
}

/// opencode, as a user who has just joined it runs it.
fn opencode(project: &Project, user: &UserHome, script: &Path, model: &Model) -> Option<Command> {
    let packages = script.parent()?.parent()?;
    // What is installed first is a script that looks for the program of this machine, and finds it only after an install script
    // has run. We run none, so it is looked for here.
    let machines = ["linux-x64-baseline", "linux-x64", "linux-arm64"];
    let programs = machines.map(|machine| packages.join(format!("opencode-{machine}/bin/opencode")));
    let program: PathBuf = programs.into_iter().find(|program| program.is_file())?;
    let settings = json!({
        "model": "own/scripted",
        "small_model": "own/scripted",
        "autoupdate": false,
        "snapshot": false,
        "share": "disabled",
        "provider": { "own": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": { "baseURL": model.url(), "apiKey": "none" },
            "models": { "scripted": {
                "name": "Scripted", "tool_call": true, "limit": { "context": 100_000, "output": 8_000 },
            } },
        } },
    });
    user.write("config/opencode/opencode.json", &format!("{settings:#}\n"));
    user.tidelock(project, &["join", "opencode", "--write", "--allow-apply"])
        .expect(0);
    let mut command = user.dress(Command::new(program), project);
    for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        command.env(format!("OPENCODE_DISABLE_{name}"), "1");
    }
    command.arg("run");
    Some(command)
}

/// codex, as a user who has just joined it runs it.
fn codex(project: &Project, user: &UserHome, program: &Path, model: &Model) -> Command {
    let settings = format!(
        "# Mine.\nmodel = \"scripted\"\nmodel_provider = \"own\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\n\n[model_providers.own]\nname = \"own\"\nbase_url = \"{}\"\n\
         wire_api = \"responses\"\n",
        model.url()
    );
    let file = user.write(".codex/config.toml", &settings);
    user.tidelock(project, &["join", "codex", "--write", "--allow-apply"])
        .expect(0);
    let joined = std::fs::read_to_string(file).unwrap();
    assert!(
        joined.starts_with(&settings),
        "what was there is as it was: {joined}"
    );
    let mut command = user.dress(Command::new(program), project);
    // It does not wait for its servers before the first turn otherwise.
    command.args([
        "exec",
        "--skip-git-repo-check",
        "-c",
        "mcp_servers.tidelock.required=true",
    ]);
    command
}

/// Runs an agent, which must come to the end of its task.
#[track_caller]
fn comes_to_its_end(agent: Command, model: &Model) {
    let outcome = finish_within(agent, PATIENCE);
    assert_eq!(outcome.code, Some(0), "{outcome:?}\n{}", model.last_request());
    assert!(
        outcome.stdout.contains(DONE),
        "{outcome:?}\n{}",
        model.last_request()
    );
}

/// The plans of a repository, by their titles, with their states and who opened them.
fn plans(project: &Project) -> Vec<(String, String, String, String)> {
    let listed = project.run(&["plan", "list", "--all", "--json"]).expect(0).json();
    let word = |plan: &Value, name: &str| plan[name].as_str().unwrap().to_owned();
    let plans = listed["plans"].as_array().unwrap().iter();
    let mut found: Vec<_> = plans
        .map(|plan| {
            (
                word(plan, "title"),
                word(plan, "state"),
                word(plan, "opened_by"),
                word(plan, "id"),
            )
        })
        .collect();
    found.sort();
    found
}

/// Both agents work at once; both plans are there and applied; one is taken back.
#[track_caller]
fn both_land(project: &Project, model: &Model, first: Command, second: Command) {
    thread::scope(|scope| {
        let first = scope.spawn(|| comes_to_its_end(first, model));
        let second = scope.spawn(|| comes_to_its_end(second, model));
        for agent in [first, second] {
            agent.join().expect("both come to their end");
        }
    });
    let found = plans(project);
    let states: Vec<(&str, &str)> = found
        .iter()
        .map(|plan| (plan.0.as_str(), plan.1.as_str()))
        .collect();
    assert_eq!(states, [("task-one", "applied"), ("task-two", "applied")]);
    assert_ne!(found[0].2, found[1].2, "each is an actor of its own");
    assert_eq!(project.tree(), files(&[("a.txt", "1\ntwo\n3\n"), BEFORE[1]]));
    project.run(&["plan", "undo", &found[0].3]).expect(0);
    assert_eq!(project.tree(), files(&[("a.txt", "one\ntwo\n3\n"), BEFORE[1]]));
    let states: Vec<String> = plans(project).into_iter().map(|plan| plan.1).collect();
    assert_eq!(states, ["undone", "applied"]);
}

fn tasks() -> Vec<Task> {
    vec![task("task-one", "one", "1"), task("task-two", "three", "3")]
}

#[test]
fn two_of_opencode_change_one_repository_through_plans() {
    let Some(script) = installed("opencode") else {
        return;
    };
    let project = Project::with_git(&BEFORE);
    project.run(&["up"]).expect(0);
    let model = Model::start(tasks());
    let agents = ["task-one", "task-two"].map(|word| {
        let user = UserHome::new(&project, word);
        let mut command = opencode(&project, &user, &script, &model).expect("the program of this machine");
        command.arg(format!("Please do {word}."));
        command
    });
    let [first, second] = agents;
    both_land(&project, &model, first, second);
}

#[test]
fn codex_and_opencode_change_one_repository_through_plans() {
    let (Some(program), Some(script)) = (installed("codex"), installed("opencode")) else {
        return;
    };
    let project = Project::with_git(&BEFORE);
    project.run(&["up"]).expect(0);
    let model = Model::start(tasks());
    let users = ["codex", "opencode"].map(|name| UserHome::new(&project, name));
    let mut first = codex(&project, &users[0], &program, &model);
    first.arg("Please do task-one.");
    let mut second = opencode(&project, &users[1], &script, &model).expect("the program of this machine");
    second.arg("Please do task-two.");
    both_land(&project, &model, first, second);
}
