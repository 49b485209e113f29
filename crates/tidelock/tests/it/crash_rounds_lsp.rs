//! Servers, clients and the daemon are killed at random while questions are asked. Afterwards nothing is left over.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::crash_rounds::Numbers;
use crate::harness::{Running, halt, signal, wait_for};
use crate::lsp_stage::{Player, Stage, lives, players_of, usual_hover};

/// Enough to meet each kind of death a few times; `TIDELOCK_LSP_ROUNDS` says how many instead.
const USUAL_ROUNDS: u64 = 12;
const CLIENTS: usize = 3;
const SERVERS: [&str; 3] = ["alpha", "beta", "gamma"];
/// A server that crashes more often within minutes is given up, which is another test's business.
const KILLS_BETWEEN_RESTARTS: u64 = 4;

/// Who dies in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Server,
    Client,
    Daemon,
    /// The daemon, and those who would have cleaned up after it.
    DaemonAndKeepers,
}

/// What became of the questions.
#[derive(Debug, Default)]
struct Tally {
    answered: u64,
    refused: BTreeMap<String, u64>,
    cut_off: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.answered += other.answered;
        self.cut_off += other.cut_off;
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
    }
}

fn players() -> Vec<Player> {
    let silent = json!({ "textDocument/definition": { "fault": "silence" } });
    vec![
        Player::new("alpha", json!({ "grandchild": "own_session", "on": silent })),
        Player::new(
            "beta",
            json!({ "grandchild": "orphan", "trap_term": true, "on": silent }),
        )
        .flags(&["--shim"]),
        Player::new(
            "gamma",
            json!({ "ignore_exit": true, "ignore_shutdown": true, "on": silent }),
        ),
    ]
}

/// Asks until the time is over or the daemon is gone. Whatever is answered must be right.
fn ask_for(stage: &Stage, time: Duration, first: usize) -> Tally {
    let end = Instant::now() + time;
    let mut tally = Tally::default();
    for turn in first.. {
        if Instant::now() >= end {
            break;
        }
        let name = SERVERS[turn % SERVERS.len()];
        let Ok(answer) = stage.post("/v1/lsp/hover", &stage.query(name, &json!({}))) else {
            tally.cut_off += 1;
            break;
        };
        if answer.status == 200 {
            let text = answer.body["text"].as_str().unwrap_or_default();
            assert!(text.ends_with(&usual_hover()), "{answer:?}");
            tally.answered += 1;
        } else {
            let code = answer.body["code"].clone();
            let known: Result<protocol::ErrorCode, _> = serde_json::from_value(code.clone());
            assert!(known.is_ok(), "not a stable code: {answer:?}");
            let code = code.as_str().unwrap_or_default().to_owned();
            *tally.refused.entry(code).or_default() += 1;
        }
    }
    tally
}

/// A process that cannot be mistaken for a later one of the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    pid: u32,
    started: String,
    parent: u32,
}

impl Found {
    /// The process of this id.
    fn look(pid: u32) -> Option<Found> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, after) = stat.rsplit_once(") ")?;
        let words: Vec<&str> = after.split(' ').collect();
        Some(Found {
            pid,
            started: (*words.get(19)?).to_owned(),
            parent: words.get(1)?.parse().ok()?,
        })
    }

    fn is_there(&self) -> bool {
        lives(self.pid) && Found::look(self.pid).is_some_and(|found| found.started == self.started)
    }
}

/// Everything below a process: keepers, shims, servers, and what these have left to the keepers.
fn descendants(of: u32) -> Vec<Found> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        all.extend(pid.and_then(Found::look));
    }
    let mut below = vec![of];
    let mut found = Vec::new();
    while let Some(pid) = below.pop() {
        for child in all.iter().filter(|process| process.parent == pid) {
            below.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// Kills a process of a server: the server itself, the shim before it, or what it has started.
fn kill_a_server(stage: &Stage, numbers: &mut Numbers) {
    let name = SERVERS[usize::try_from(numbers.below(3)).unwrap()];
    let shown = stage.server(name)["pid"].as_u64();
    let of_role = |role: &str| stage.pids(name, role).last().copied();
    let pid = match numbers.below(4) {
        0 => shown.and_then(|pid| u32::try_from(pid).ok()),
        1 => of_role("grandchild"),
        _ => of_role("server"),
    };
    // The ids in the file are those of processes that may be long gone.
    if let Some(pid) = pid.filter(|pid| players_of(&stage.world).contains(pid)) {
        signal(pid, Signal::KILL);
    }
}

/// Kills a client in the middle of a question, and waits until the server was told.
fn kill_a_client(stage: &Stage, numbers: &mut Numbers) {
    let name = SERVERS[usize::try_from(numbers.below(3)).unwrap()];
    let before = stage.server(name)["generation"].clone();
    let asked_before = stage.sent(name, "textDocument/definition").len();
    let cancelled_before = stage.sent(name, "$/cancelRequest").len();
    let place = format!("{}:1:1", stage.file(name).display());
    let mut command = stage.world.command(&["lsp", "definition", &place]);
    let client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let client = Running(client.unwrap());
    stage.wait_for_sent(name, "textDocument/definition", asked_before + 1);
    signal(client.0.id(), Signal::KILL);
    wait_for("the server to be told", || {
        let cancelled = stage.sent(name, "$/cancelRequest");
        let asked = stage.sent(name, "textDocument/definition");
        // Ids begin anew with each process, so the last one counts only if it is a new one.
        let is_told = cancelled.len() > cancelled_before
            && cancelled.last().map(|message| &message["params"]["id"])
                == asked.last().map(|message| &message["id"]);
        // A process that has gone, after a kill in the round before, need not be told any more.
        let server = stage.server(name);
        is_told || (server["generation"] != before && server["leases"] == 0)
    });
}

/// Nobody asks, so nothing is in use; and what is open is what the server says is open.
fn check_at_rest(stage: &Stage) {
    for name in SERVERS {
        let answer = stage.hover(name);
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        let at_rest = |server: &Value| server["leases"] == 0 && server["pending_requests"] == 0;
        wait_for("nobody to use the server", || at_rest(&stage.server(name)));
        let state = stage.steer(name, "fault/state", &json!({}));
        let open = state["documents"].as_object().unwrap();
        assert_eq!(open.len(), 1, "{name}: {open:?}");
        assert_eq!(stage.server(name)["open_documents"], 1);
    }
}

/// Kills the daemon, and returns what it had started.
fn kill_the_daemon(stage: &Stage, victim: Victim) -> Vec<Found> {
    let daemon = stage.world.pid();
    let below = descendants(daemon);
    if victim == Victim::DaemonAndKeepers {
        // The daemon is stopped first, so that it cannot see its keepers die and act on it.
        halt(daemon);
        let keepers = below.iter().filter(|found| found.parent == daemon);
        keepers.for_each(|keeper| signal(keeper.pid, Signal::KILL));
    }
    stage.world.kill();
    below
}

/// Nothing that a killed daemon had started outlives it for long. Returns how long that took.
fn check_nothing_is_left(stage: &Stage, below: &[Found], victim: Victim) -> Duration {
    let began = Instant::now();
    if victim == Victim::DaemonAndKeepers {
        // Nobody is left to do it but the next daemon.
        stage.world.run(&["up"]).expect(0);
        let status = stage.world.run(&["status", "--json"]).expect(0).json();
        let reclaimed = &status["processes"]["reclaimed"];
        assert!(
            reclaimed.as_u64().is_some_and(|count| count > 0),
            "it does not say so: {status}"
        );
    }
    wait_for("everything of the daemon to be gone", || {
        below.iter().all(|found| !found.is_there())
    });
    let left = players_of(&stage.world);
    assert!(left.is_empty(), "{left:?} were left by {victim:?}");
    began.elapsed()
}

#[test]
fn nothing_is_left_over_however_often_servers_clients_and_the_daemon_are_killed() {
    let rounds = match std::env::var("TIDELOCK_LSP_ROUNDS") {
        Ok(rounds) => rounds.parse().unwrap(),
        Err(_) => USUAL_ROUNDS,
    };
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    println!("the seed is {seed}");
    let mut numbers = Numbers(seed);
    let stage = Stage::without_daemon(&players());
    let (mut kills_of_servers, mut longest) = (0, Duration::ZERO);
    let (mut tally, mut deaths) = (Tally::default(), BTreeMap::<Victim, u64>::new());
    for round in 0..rounds {
        stage.world.run(&["up"]).expect(0);
        check_at_rest(&stage);
        // Each of them at least once, and those that nothing outlives less often than those that are survived.
        let drawn = numbers.below(10);
        let victim = match if round < 4 { 3 * round } else { drawn } {
            0..3 => Victim::Server,
            3..6 => Victim::Client,
            6..9 => Victim::Daemon,
            _ => Victim::DaemonAndKeepers,
        };
        let time = Duration::from_millis(100 + numbers.below(200));
        let moment = Duration::from_millis(numbers.below(120));
        let stage = &stage;
        let (of_round, below) = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| scope.spawn(move || ask_for(stage, time, client)))
                .collect();
            thread::sleep(moment); // tidy: the moment of the kill is the point
            let below = match victim {
                Victim::Server => {
                    kills_of_servers += 1;
                    kill_a_server(stage, &mut numbers);
                    Vec::new()
                }
                Victim::Client => {
                    kill_a_client(stage, &mut numbers);
                    Vec::new()
                }
                Victim::Daemon | Victim::DaemonAndKeepers => kill_the_daemon(stage, victim),
            };
            let mut of_round = Tally::default();
            for client in clients {
                of_round.add(client.join().unwrap());
            }
            (of_round, below)
        });
        if matches!(victim, Victim::Server | Victim::Client) {
            // One death of a server is nothing that anybody notices.
            assert_eq!(
                (&of_round.refused, of_round.cut_off),
                (&BTreeMap::new(), 0),
                "{victim:?}"
            );
            check_at_rest(stage);
        } else {
            longest = longest.max(check_nothing_is_left(stage, &below, victim));
        }
        if kills_of_servers == KILLS_BETWEEN_RESTARTS {
            kills_of_servers = 0;
            for name in SERVERS {
                stage.world.run(&["up"]).expect(0);
                stage.hover(name);
                stage.restart(name);
            }
        }
        tally.add(of_round);
        *deaths.entry(victim).or_default() += 1;
    }
    println!("{rounds} rounds, {deaths:?}: {tally:?}, at most {longest:?} until all was gone");
    assert!(tally.answered > rounds, "next to nothing was answered: {tally:?}");

    stage.world.run(&["up"]).expect(0);
    check_at_rest(&stage);
    let below = descendants(stage.world.pid());
    assert!(!below.is_empty());
    stage.world.run(&["lsp", "stop", "--all"]).expect(0);
    for name in SERVERS {
        let server = stage.server(name);
        assert_eq!(
            (&server["state"], &server["open_documents"], &server["leases"]),
            (&json!("stopped"), &json!(0), &json!(0)),
            "{server}"
        );
    }
    assert_eq!(players_of(&stage.world), [0; 0]);
    wait_for("the keepers to be gone", || {
        below.iter().all(|found| !found.is_there())
    });
    let processes = stage.world.run(&["ps", "--json"]).expect(0).json();
    assert_eq!(processes, json!({ "processes": [] }));
}
