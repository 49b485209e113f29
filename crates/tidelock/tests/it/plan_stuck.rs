//! Applies that are cut off, and what a user does before the next start: nothing is lost, and no workspace stays unusable.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::Value;

use crate::plan_fire::Died;
use crate::plan_stage::Project;

/// A plan that deletes a symlink and changes a line, killed when the symlink is out and the file is not in.
pub(crate) fn cut_off() -> (Project, String) {
    let project = Project::new(&[("edit.txt", "one\ntwo\nthree\n"), ("target/a", "a\n")]);
    symlink("target", project.root.join("link")).unwrap();
    let plan = project.open(&[]);
    project.work(&plan, "rm link; sed -i s/two/2/ edit.txt");
    project.run(&["plan", "seal", &plan]).expect(0);
    let died = project.die_at("Exchanging", &["plan", "apply", &plan]);
    assert!(matches!(died, Died::Yes(_)), "{died:?}");
    assert!(fs::symlink_metadata(project.root.join("link")).is_err());
    (project, plan)
}

fn json(project: &Project, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    project.run(&arguments).json()
}

fn find<'a>(list: &'a Value, key: &str, value: &str) -> Option<&'a Value> {
    list.as_array().unwrap().iter().find(|each| each[key] == value)
}

#[test]
fn a_symlink_that_cannot_go_back_is_kept_told_everywhere_and_restored() {
    let (project, plan) = cut_off();
    // The same line, so that the apply is taken back; and the path of the symlink is taken.
    project.shell("sed -i s/two/zwei/ edit.txt; echo mine > link");
    project.run(&["up"]).expect(0);
    // A daemon recovers while it serves; whoever asks about the workspace waits for that.
    project.run(&["workspace", "repair", "."]).expect(0);
    assert_eq!(project.state_of(&plan), "sealed");
    assert_eq!(fs::read_to_string(project.root.join("link")).unwrap(), "mine\n");
    assert_eq!(
        fs::read_to_string(project.root.join("edit.txt")).unwrap(),
        "one\nzwei\nthree\n"
    );
    project.nothing_is_left("after the recovery");

    let list = json(&project, &["workspace", "rescued"]);
    let [rescued] = list["rescued"].as_array().unwrap().as_slice() else {
        panic!("{list}");
    };
    assert_eq!(
        (&rescued["path"], &rescued["kind"]),
        (&"link".into(), &"symlink".into())
    );
    assert_eq!(rescued["plans"][0], *plan);
    let id = rescued["id"].as_str().unwrap();
    let kept = PathBuf::from(rescued["kept_at"].as_str().unwrap());
    assert_eq!(fs::read_link(&kept).unwrap(), PathBuf::from("target"));

    assert_eq!(project.shown(&plan)["rescued"][0]["id"], id);
    let needs = json(&project, &["needs"]);
    assert_eq!(
        find(&needs["needs"], "kind", "rescued").unwrap()["id"],
        id,
        "{needs}"
    );
    let doctor = json(&project, &["doctor"]);
    let check = find(&doctor["checks"], "id", "rescued").unwrap();
    assert_eq!(check["state"], "warning", "{doctor}");
    let activity = json(&project, &["activity"]);
    assert!(
        activity.to_string().contains("kept content of link"),
        "{activity}"
    );

    // The workspace goes on.
    project.run(&["exec", "--", "touch", "another"]).expect(0);
    let refused = project.run(&["workspace", "rescued", "restore", id]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("--swap"), "{refused:?}");
    project
        .run(&["workspace", "rescued", "restore", id, "--swap"])
        .expect(0);
    assert_eq!(
        fs::read_link(project.root.join("link")).unwrap(),
        PathBuf::from("target")
    );
    let list = json(&project, &["workspace", "rescued"]);
    let mine = &list["rescued"][0];
    assert_eq!(
        fs::read_to_string(mine["kept_at"].as_str().unwrap()).unwrap(),
        "mine\n"
    );
    let mine = mine["id"].as_str().unwrap();
    project
        .run(&["workspace", "rescued", "restore", mine, "--to", "kept/link"])
        .expect(0);
    assert_eq!(
        fs::read_to_string(project.root.join("kept/link")).unwrap(),
        "mine\n"
    );
    let list = json(&project, &["workspace", "rescued"]);
    assert_eq!(list["rescued"], Value::Array(Vec::new()));
    let gone = project.run(&["workspace", "rescued", "drop", mine]);
    assert_eq!(gone.code, Some(4), "{gone:?}");
}

/// An apply that was cut off, and whose notes cannot be read any more.
fn stuck() -> (Project, String) {
    let (project, plan) = cut_off();
    let staging = project.scratch().join("staging");
    for area in fs::read_dir(&staging).unwrap() {
        let area = area.unwrap().path();
        for number in 0..2 {
            fs::write(area.join(format!("{number}.1.effect")), "not a note").unwrap();
        }
    }
    project.run(&["up"]).expect(0);
    let looked = project.run(&["workspace", "repair", "."]);
    assert_eq!(looked.code, Some(1), "it is stuck: {looked:?}");
    (project, plan)
}

#[test]
fn what_can_neither_be_finished_nor_taken_back_is_named_and_set_aside() {
    let (project, plan) = stuck();
    let refused = project.run(&["exec", "--", "true"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(
        refused.stderr.contains("tidelock workspace repair"),
        "{refused:?}"
    );
    let listed = json(&project, &["workspace", "list"]);
    assert_eq!(listed["workspaces"][0]["stuck"]["plans"][0], *plan, "{listed}");
    let needs = json(&project, &["needs"]);
    assert!(find(&needs["needs"], "kind", "stuck").is_some(), "{needs}");
    let doctor = json(&project, &["doctor"]);
    let check = find(&doctor["checks"], "id", "workspaces").unwrap();
    assert_eq!(check["state"], "failed", "{doctor}");

    let looked = project.run(&["workspace", "repair", "."]);
    assert_eq!(looked.code, Some(1), "{looked:?}");
    assert!(looked.stdout.contains("--abort"), "{looked:?}");
    let aside = project
        .run(&["workspace", "repair", ".", "--abort", "--json"])
        .expect(0)
        .json();
    assert_eq!(aside["state"], "set_aside", "{aside}");
    let kept = PathBuf::from(aside["rescued"][0]["kept_at"].as_str().unwrap());
    let links = fs::read_dir(&kept).unwrap().flatten().map(|entry| entry.path());
    let mut targets = links.filter_map(|path| fs::read_link(path).ok());
    assert_eq!(targets.next(), Some(PathBuf::from("target")), "{aside}");

    project.nothing_is_left("after it was set aside");
    assert_eq!(project.state_of(&plan), "sealed");
    project.run(&["exec", "--", "true"]).expect(0);
    project.run(&["plan", "apply", &plan]).expect(0);
    assert_eq!(
        fs::read_to_string(project.root.join("edit.txt")).unwrap(),
        "one\n2\nthree\n"
    );
    let nothing = project.run(&["workspace", "repair", "."]).expect(0);
    assert!(nothing.stdout.contains("Nothing is stuck"), "{nothing:?}");
}

#[test]
fn a_stuck_apply_keeps_nobody_from_discarding_and_forgetting() {
    let (project, plan) = stuck();
    let refused = project.run(&["plan", "discard", &plan]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    project.run(&["plan", "discard", &plan, "--force"]).expect(0);
    assert_eq!(project.state_of(&plan), "discarded");
    let list = json(&project, &["workspace", "rescued"]);
    assert_eq!(list["rescued"].as_array().unwrap().len(), 1, "{list}");
    project.run(&["workspace", "forget", "."]).expect(0);
    // What was rescued outlives the list of workspaces, and a restart.
    project.run(&["down"]).expect(0);
    project.run(&["up"]).expect(0);
    let again = json(&project, &["workspace", "rescued"]);
    assert_eq!(again, list);
}
