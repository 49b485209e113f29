//! What plans leave behind: places for sandboxes, and contents that somebody wants gone.

use std::fs;
use std::path::Path;

use crate::harness::World;
use crate::plan_stage::{Project, last_object};

/// A project whose daemon has this configuration.
fn configured(text: &str) -> Project {
    let world = World::new();
    let home = world.path().join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), text).unwrap();
    Project::in_world(world, &[("a.txt", "one\n")])
}

#[test]
fn commands_that_change_nothing_leave_no_sandboxes_and_the_limit_is_on_what_is_open() {
    let project = configured("[plans]\nmax_sandboxes = 2\n");
    for _ in 0..4 {
        let done = project.run(&["exec", "--", "true"]).expect(0);
        assert!(done.stderr.contains("It changed nothing"), "{}", done.stderr);
    }
    let sandboxes = project.world.home().state.join("plans/sandboxes");
    assert_eq!(fs::read_dir(sandboxes).unwrap().count(), 0);
    // Applied ones make room for the next by themselves.
    for number in 0..4 {
        let line = format!("echo {number} > a.txt");
        project
            .run(&["exec", "--apply", "--", "sh", "-c", &line])
            .expect(0);
    }
    let open: Vec<String> = (0..2).map(|_| project.open(&[])).collect();
    let refused = project.run(&["plan", "new"]);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("2 plans are open") && refused.stderr.contains("tidelock plan list"),
        "{}",
        refused.stderr
    );
    project.run(&["plan", "discard", &open[0]]).expect(0);
    project.run(&["plan", "new"]).expect(0);
}

/// Whether some bytes stand in a file below a directory.
fn is_below(directory: &Path, wanted: &[u8]) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        let Ok(about) = fs::symlink_metadata(&path) else {
            return false;
        };
        if about.is_dir() {
            return is_below(&path, wanted);
        }
        let content = if about.is_file() {
            fs::read(&path)
        } else {
            Ok(Vec::new())
        };
        content.is_ok_and(|content| content.windows(wanted.len()).any(|part| part == wanted))
    })
}

#[test]
fn nothing_of_a_forgotten_plan_is_found_in_the_home() {
    let project = Project::with_git(&[("a.txt", "one\n")]);
    // Noise, which does not compress: it would be found wherever it is.
    let secret = {
        let mut state = 1u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as u8
        };
        std::iter::repeat_with(next).take(4000).collect::<Vec<u8>>()
    };
    let outside = project.world.path().join("secret");
    fs::write(&outside, &secret).unwrap();
    let home = project.world.path().join("home");
    let copy = format!("cp {} secret.bin", outside.display());
    let done = project.run(&["exec", "--json", "--apply", "--", "sh", "-c", &copy]);
    let plan = last_object(&done.expect(0))["plan"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // A sandbox of somebody else begins with it, so that it is in an image of the workspace as well.
    project.run(&["exec", "--", "true"]).expect(0);
    fs::remove_file(project.root.join("secret.bin")).unwrap();
    let part = &secret[1000..1100];
    assert!(is_below(&home, part));

    let kept = project.open(&[]);
    project.work(&kept, "echo two > a.txt");
    let refused = project.run(&["plan", "forget", &kept]);
    assert!(
        refused
            .stderr
            .contains("apply or discard it before you forget it"),
        "{}",
        refused.stderr
    );

    let forgotten = project.run(&["plan", "forget", &plan]).expect(0).stdout;
    assert!(forgotten.starts_with(&format!("Forgot {plan}: ")), "{forgotten}");
    assert!(!is_below(&home, part), "it is still in the home");
    assert_ne!(project.run(&["plan", "show", &plan]).code, Some(0));
    // What others did is as it was.
    project.run(&["plan", "apply", &kept]).expect(0);
    assert_eq!(fs::read_to_string(project.root.join("a.txt")).unwrap(), "two\n");
    assert!(!project.root.join("secret.bin").exists());
}
