//! What waits for a person, and the commands that are printed for it: they are typed here as they stand.

use serde_json::Value;

use crate::harness::{finish, wait_for};
use crate::plan_stage::Project;
use crate::session_stage::BEFORE;

/// Asks before it changes a file.
const ASKS: &str = "
steps:
  - ask: may I change it?
  - write: {path: a.txt, text: \"one\\n2\\n\"}
";

fn needs(project: &Project) -> Vec<Value> {
    let list = project.run(&["needs", "--json"]).expect(0).json();
    assert_eq!(list["is_partial"], false);
    list["needs"].as_array().unwrap().clone()
}

/// The only thing that waits is of this kind.
fn is_only(needs: &[Value], kind: &str) -> bool {
    matches!(needs, [only] if only["kind"] == kind)
}

/// Types the command that is printed for the only thing that waits.
fn type_what_is_shown(project: &Project) -> String {
    let shown = project.run(&["needs"]).expect(0).stdout;
    let line = shown.lines().last().unwrap().trim();
    let words: Vec<&str> = line.split(' ').collect();
    let [program, arguments @ ..] = words.as_slice() else {
        panic!("{shown}");
    };
    assert_eq!(*program, "tidelock", "{shown}");
    project.run(arguments).expect(0).stdout
}

#[test]
fn a_question_and_then_a_plan_wait_and_the_commands_shown_for_them_work() {
    let project = Project::with_git(&BEFORE);
    assert_eq!(
        project.run(&["needs"]).expect(0).stdout,
        "Nothing needs you: no question, no plan to review, nothing broken.\n"
    );

    finish(project.talk(ASKS, &["--detach", "--json"])).expect(0);
    wait_for("the question", || is_only(&needs(&project), "permission"));
    let question = needs(&project).remove(0);
    assert!(
        question["text"].as_str().unwrap().ends_with("may I change it?"),
        "{question}"
    );
    type_what_is_shown(&project);

    wait_for("the plan", || is_only(&needs(&project), "review"));
    let plan = needs(&project).remove(0);
    assert_eq!(plan["text"], "ready for review · 1 file");
    assert!(type_what_is_shown(&project).contains("+2"));
    project
        .run(&["plan", "apply", plan["id"].as_str().unwrap()])
        .expect(0);
    assert_eq!(needs(&project), [] as [Value; 0]);
}

#[test]
fn what_is_broken_waits_too_and_is_found_again_after_a_restart() {
    let project = Project::with_git(&BEFORE);
    project
        .run(&["job", "run", "--wait", "--", "sh", "-c", "exit 3"])
        .expect(3);
    project.run(&["breaker", "force", "model", "open"]).expect(0);
    let kinds = || -> Vec<Value> { needs(&project).iter().map(|need| need["kind"].clone()).collect() };
    assert_eq!(kinds(), ["job", "breaker"]);
    project.world.kill();
    assert_eq!(kinds(), ["job", "breaker"]);
    assert!(type_what_is_shown(&project).contains("forced"), "the history");
    project.run(&["breaker", "reset", "model"]).expect(0);
    assert_eq!(kinds(), ["job"]);
}
