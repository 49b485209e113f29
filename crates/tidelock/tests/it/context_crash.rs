//! A daemon that is killed while it makes an index, again and again. The index that the next one finds is whole or is made
//! anew, and no answer is wrong because of it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::World;
use crate::requests::send;

/// How many files the tree has: enough for an index to take longer than a kill.
const FILES: usize = 3000;
/// How long an index may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

fn ask(world: &World, root: &Path, word: &str) -> Value {
    let question = json!({ "directory": root, "query": word, "only": ["keyword"], "deadline_ms": 25_000 });
    let answer = send(&world.home(), "POST", "/v1/context", &question.to_string()).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// A word that is no part of another one, and has no other forms.
fn word(beginning: &str, number: usize) -> String {
    let letter = |digit: usize| char::from(b'a' + (digit % 26) as u8);
    let letters = [letter(number / 676), letter(number / 26), letter(number)];
    format!("{beginning}{}q", String::from_iter(letters))
}

fn files(answer: &Value) -> Vec<&str> {
    let fragments = answer["fragments"].as_array().unwrap().iter();
    fragments
        .map(|fragment| fragment["path"].as_str().unwrap())
        .collect()
}

fn index(world: &World) -> Value {
    let answer = send(&world.home(), "GET", "/v1/context/indexes", "").unwrap();
    answer.body["indexes"][0].clone()
}

#[test]
fn an_index_that_was_cut_off_is_whole_or_made_anew() {
    let (world, tree) = (World::new(), tempfile::tempdir().unwrap());
    let root = tree.path().canonicalize().unwrap();
    for number in 0..FILES {
        let directory = root.join(format!("part{}", number % 50));
        fs::create_dir_all(&directory).unwrap();
        let filling = format!("pub fn filling_{number}_of_many() {{}}\n").repeat(20);
        let text = format!("pub fn {}() {{}}\n{filling}", word("needle", number));
        fs::write(directory.join(format!("f{number}.rs")), text).unwrap();
    }
    let path_of = |number: usize| format!("part{}/f{number}.rs", number % 50);
    // Each life begins an index, and is killed a little later in it than the one before.
    for (round, pause_ms) in [0, 20, 60, 150, 400, 1000].into_iter().enumerate() {
        world.run(&["up"]).expect(0);
        let number = 7 * (round + 1);
        let answer = ask(&world, &root, &word("needle", number));
        assert_eq!(files(&answer), [path_of(number)], "round {round}: {answer}");
        // Nobody waits for anything here: the kill comes wherever the daemon is by then.
        thread::sleep(Duration::from_millis(pause_ms));
        world.kill();
        // Meanwhile the tree changes, and nobody is there to see it.
        let changed = root.join(path_of(round));
        fs::write(changed, format!("pub fn {}() {{}}\n", word("changed", round))).unwrap();
    }
    world.run(&["up"]).expect(0);
    for _ in ["on the way", "ready"] {
        for round in 0..6 {
            let answer = ask(&world, &root, &word("changed", round));
            assert_eq!(files(&answer), [path_of(round)], "{answer}");
            let gone = ask(&world, &root, &word("needle", round));
            assert!(!files(&gone).contains(&path_of(round).as_str()), "{gone}");
        }
        let began = Instant::now();
        while index(&world)["state"] != "ready" {
            assert!(began.elapsed() < PATIENCE, "{}", index(&world));
            thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(index(&world)["files"], FILES, "{}", index(&world));
    world.run(&["down"]).expect(0);
}
