//! Clients that go away, and daemons that do: what the turn does then, and what others see.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{finish, signal, wait_for};
use crate::job_stage::{Beside, NOBODY, left_behind, on_a_terminal};
use crate::plan_stage::Project;
use crate::session_stage::{BEFORE, objects, sequences, text};

/// Says something, and then waits for an answer.
const HELD: &str = "
steps:
  - say: begun
  - write: {path: c.txt, text: half}
  - ask: may I go on?
  - say: ended
";

/// All that it says, if the answer is yes.
const ANSWERED: &str = "begun\nthe test has answered: allow.\nended\n";

const HINT: &str = "answer with `tidelock session answer ";

fn answer(project: &Project, answer: &str) {
    project.run(&["session", "answer", "@", answer]).expect(0);
}

#[test]
fn ctrl_c_cancels_the_turn_and_keeps_what_it_has_done() {
    let project = Project::with_git(&BEFORE);
    let script = "steps: [{say: begun}, {write: {path: c.txt, text: half}}, {shell: sleep 600}]";
    let mut client = project.talk_beside(script, &[]);
    client.wait_for_stderr("* $ sleep 600");
    signal(client.pid(), Signal::INT);
    assert_eq!(client.wait_code(), 130, "{:?}", client.said());
    let (said, besides) = client.said();
    assert_eq!(said, "begun\n");
    for part in [
        "Cancelling the turn. Press Ctrl-C again to detach; it keeps running until it has stopped.",
        "The turn was cancelled. Its messages and changes are kept.",
        "c.txt",
    ] {
        assert!(besides.contains(part), "{part:?} is not in {besides}");
    }
    assert_eq!(left_behind(&project.world), NOBODY);
    let session = project.session("@");
    assert_eq!(
        (&session["state"], &session["last_state"]),
        (&json!("idle"), &json!("cancelled")),
        "{session}"
    );
    // The session takes the next prompt.
    let next = project.script("next", "steps: [{say: fine}]");
    let sent = project
        .run(&["session", "send", "@", "--script", &next, "go on"])
        .expect(0);
    assert_eq!(sent.stdout, "fine\n");
}

#[test]
fn a_second_ctrl_c_leaves_the_turn_to_itself() {
    let project = Project::with_git(&BEFORE);
    // It does not end when it is asked to, so that there is time for a second one.
    let script = "steps: [{shell: \"trap '' TERM INT; echo begun; while :; do sleep 0.05; done\"}]";
    let mut client = project.talk_beside(script, &[]);
    client.wait_for_stderr("    begun");
    signal(client.pid(), Signal::INT);
    client.wait_for_stderr("Press Ctrl-C again to detach");
    signal(client.pid(), Signal::INT);
    assert_eq!(client.wait_code(), 130);
    let (_, besides) = client.said();
    // If the turn was faster, it was seen to end.
    assert!(
        besides.contains("tidelock session attach ") || besides.contains("The turn was cancelled."),
        "{besides}"
    );
    // The wish to stop it stays, and is carried out.
    wait_for("the turn to be stopped", || {
        project.session("@")["state"] == "idle"
    });
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn whoever_leaves_finds_the_turn_again_and_two_see_the_same() {
    let project = Project::with_git(&BEFORE);
    let left = finish(project.talk(HELD, &["--detach", "--json"])).expect(0);
    let begun = objects(&left).pop().unwrap();
    assert_eq!(begun["outcome"]["outcome"], "detached");
    let attach = |options: &[&str]| {
        let mut command = project.command(&["session", "attach"]);
        command.args(options);
        Beside::start(&project.world, command)
    };
    let (mut one, mut other) = (attach(&[]), attach(&["@", "--json"]));
    one.wait_for_stderr(HINT);
    other.wait_for_stdout("permission_asked");
    // One that is killed takes nothing with it.
    let killed = attach(&[]);
    killed.wait_for_stderr(HINT);
    drop(killed);
    answer(&project, "allow");
    assert_eq!((one.wait_code(), other.wait_code()), (0, 0));
    assert_eq!(one.said().0, ANSWERED);
    assert!(one.said().1.contains("> do it\n"), "{:?}", one.said());
    let told: Vec<Value> = other
        .said()
        .0
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let numbers = sequences(&told);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(text(&told), ANSWERED);
    // Later too, and from the end.
    let later = project.run(&["session", "attach", "@"]).expect(0);
    assert_eq!(later.stdout, ANSWERED);
    let tail = project
        .run(&["session", "attach", "@", "--tail", "2", "--json"])
        .expect(0);
    assert_eq!(sequences(&objects(&tail)), numbers[numbers.len() - 2..]);
}

#[test]
fn after_a_crash_of_the_daemon_the_text_is_kept_and_the_session_is_free() {
    let project = Project::with_git(&BEFORE);
    let mut client = project.talk_beside(HELD, &[]);
    client.wait_for_stderr(HINT);
    project.world.kill();
    // The client starts it again, and is told what has become of the turn.
    assert_eq!(client.wait_code(), 1, "{:?}", client.said());
    let (said, besides) = client.said();
    assert_eq!(said, "begun\n", "nothing is told twice");
    for part in ["the daemon has crashed", "The turn was interrupted", "c.txt"] {
        assert!(besides.contains(part), "{part:?} is not in {besides}");
    }
    let session = project.session("@");
    assert_eq!(
        (&session["state"], &session["last_state"]),
        (&json!("idle"), &json!("interrupted")),
        "{session}"
    );
    let again = project.run(&["session", "attach", "@"]).expect(1);
    assert_eq!(again.stdout, "begun\n");
    let next = project.script("next", "steps: [{say: fine}]");
    let sent = project
        .run(&["session", "send", "@", "--refuse", "--script", &next, "go on"])
        .expect(0);
    assert_eq!(sent.stdout, "fine\n");
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn questions_are_answered_from_anywhere_and_no_is_an_answer() {
    let project = Project::with_git(&BEFORE);
    let mut client = project.talk_beside(HELD, &[]);
    client.wait_for_stderr(HINT);
    let asking = project.session("@");
    assert_eq!(asking["state"], "asking");
    answer(&project, "deny");
    client.wait_for_stderr("answered: deny (by the test)");
    client.wait_code();
    let late = project
        .run(&["session", "answer", "@", "allow", "--json"])
        .expect(4)
        .json();
    assert_eq!(late["error"]["code"], "permission_not_found");
}

#[test]
fn on_a_terminal_a_turn_is_one_page() {
    let project = Project::with_git(&BEFORE);
    let script = "steps: [{say: {text: 'no end', every: 1ms}}, {read: a.txt}, {say: more}]";
    let (code, text) = on_a_terminal(project.talk(script, &[]));
    assert_eq!(code, 0, "{text:?}");
    assert!(text.contains("no end\r\n* read a.txt: "), "{text:?}");
    assert!(text.contains("\r\nmore\r\n"), "{text:?}");
}
