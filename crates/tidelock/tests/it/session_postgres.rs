//! Sessions of two daemons that share a database, as on two machines.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{World, finish, wait_for, wait_for_within};
use crate::tools::skip;

/// The server to test with. `cargo xtask test` starts one.
const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";
/// A lease of 15 seconds, and some looks.
const LEASE_IS_OVER: Duration = Duration::from_secs(60);

/// Stands still until somebody answers.
const HELD: &str = "steps: [{say: begun}, {ask: may I go on?}, {say: ended}]";
const SHORT: &str = "steps: [{say: done}]";

/// Two homes, and the database that they share.
struct Pair {
    url: String,
    one: World,
    other: World,
}

impl Pair {
    fn new() -> Option<Pair> {
        let Ok(url) = std::env::var(URL_VARIABLE) else {
            skip(&format!("{URL_VARIABLE} names no server"));
            return None;
        };
        let pair = Pair {
            url,
            one: World::new(),
            other: World::new(),
        };
        for world in [&pair.one, &pair.other] {
            pair.run(world, &["up"]);
        }
        Some(pair)
    }

    fn command(&self, world: &World, arguments: &[&str]) -> Command {
        let mut command = world.command(arguments);
        command.env("TIDELOCK_DATABASE_URL", &self.url);
        command
    }

    fn run(&self, world: &World, arguments: &[&str]) -> String {
        finish(self.command(world, arguments)).expect(0).stdout
    }

    fn json(&self, world: &World, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        finish(self.command(world, &arguments)).expect(0).json()
    }

    /// Sends a prompt and does not stay; says the session and the turn.
    fn send(&self, world: &World, how: &[&str], script: &str) -> (String, String) {
        let path = world.path().join("script.yaml");
        std::fs::write(&path, script).unwrap();
        let rest = ["--detach", "--script", path.to_str().unwrap(), "do it"];
        let sent = [how, &rest, &["--json"]].concat();
        let sent = finish(self.command(world, &sent)).expect(0).stdout;
        let told: Value = serde_json::from_str(sent.lines().last().unwrap()).unwrap();
        let id = |what: &str| told[what]["id"].as_str().unwrap().to_owned();
        (id("session"), id("turn"))
    }

    fn session(&self, world: &World, id: &str) -> Value {
        self.json(world, &["session", "show", id])
    }

    /// What needs a person about a session.
    fn need(&self, world: &World, id: &str) -> Option<Value> {
        let needs = self.json(world, &["needs"]);
        let list = needs["needs"].as_array().unwrap();
        list.iter().find(|need| need["id"] == id).cloned()
    }
}

#[test]
fn a_prompt_runs_on_the_machine_of_its_session_or_waits_for_it() {
    let Some(pair) = Pair::new() else { return };
    let (one, other) = (&pair.one, &pair.other);
    let (session, _) = pair.send(one, &["run"], HELD);
    wait_for("it to ask", || pair.session(one, &session)["state"] == "asking");
    let home = pair.session(one, &session)["machine"]["home"].clone();
    // Sent from the other machine, it waits behind the turn that runs, and is not run there.
    let (_, waits) = pair.send(other, &["session", "send", &session], SHORT);
    one.kill();
    wait_for_within("the prompt to be shown", LEASE_IS_OVER, || {
        pair.need(other, &session)
            .is_some_and(|need| need["kind"] == "waiting")
    });
    let need = pair.need(other, &session).unwrap();
    let text = need["text"].as_str().unwrap();
    assert!(
        text.contains(home.as_str().unwrap()) && text.contains("isn't running"),
        "{text}"
    );
    // A daemon that starts leaves it alone.
    pair.run(other, &["down"]);
    pair.run(other, &["up"]);
    wait_for("it to be shown again", || pair.need(other, &session).is_some());
    let shown = pair.session(other, &session);
    assert_eq!(
        (
            &shown["state"],
            &shown["waits_for"]["running"],
            &shown["waiting"][0]["id"]
        ),
        (&json!("waiting"), &json!(false), &json!(waits)),
        "{shown}"
    );
    let told = pair.run(other, &["session", "show", &session]);
    assert!(told.contains("which isn't running"), "{told}");
    // Its machine comes back, and finds its prompt.
    pair.run(one, &["up"]);
    let ended = |id: &str| {
        let session = pair.session(other, &session);
        let turns = session["turns"].as_array().unwrap();
        turns
            .iter()
            .any(|turn| turn["id"] == id && turn["state"] == "done")
    };
    wait_for("it to be done", || ended(&waits));
    assert_eq!(pair.need(other, &session), None);
    // Live too: whoever sends, it runs there.
    pair.send(other, &["session", "send", &session], HELD);
    wait_for("it to ask", || pair.session(other, &session)["state"] == "asking");
    assert_eq!(pair.session(other, &session)["active"]["home"], home);
    pair.run(other, &["session", "cancel", &session]);
    // Until the user says otherwise.
    pair.run(one, &["down"]);
    let (_, moved) = pair.send(other, &["session", "send", &session], SHORT);
    wait_for("it to be shown", || pair.need(other, &session).is_some());
    pair.run(other, &["session", "queue", &session, "here"]);
    wait_for("it to be done", || ended(&moved));
    assert_ne!(pair.session(other, &session)["machine"]["home"], home);
    // And it can be taken away from anywhere.
    pair.run(one, &["up"]);
    pair.run(other, &["down"]);
    let (_, unwanted) = pair.send(one, &["session", "send", &session], SHORT);
    pair.run(one, &["session", "queue", &session, "rm", &unwanted]);
    assert_eq!(pair.session(one, &session)["state"], "idle");
    let (_, back) = pair.send(one, &["session", "send", &session, "--here"], SHORT);
    wait_for("it to be done", || {
        let session = pair.session(one, &session);
        session["turns"][0]["id"] == back && session["turns"][0]["state"] == "done"
    });
    assert_eq!(pair.session(one, &session)["machine"]["home"], home);
}
