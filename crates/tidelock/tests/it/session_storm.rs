//! Many sessions at once with readers that come and go, and a daemon that is killed at random: each prompt that was
//! accepted ends once, answered or interrupted, and what every reader has in the end is what the log has.
//!
//! `TIDELOCK_SESSIONS` says how many sessions there are (200 take a minute on two busy cores), and `TIDELOCK_SESSIONS_SEED`
//! plays a run again as far as chance is ours.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use daemon::Home;
use protocol::{
    Session, SessionList, SessionState, TurnAccepted, TurnEventBody, TurnEventList, TurnList, TurnState,
    TurnTranscript,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::crash_rounds::Numbers;
use crate::harness::{World, processes_of};
use crate::job_stage::Beside;
use crate::requests::{Answer, send};
use crate::session_fold::Has;
use crate::session_reader::{Adventures, COME_BACK_AFTER, Log, PATIENCE, Reader, exported_turns};

/// How many sessions there are, unless `TIDELOCK_SESSIONS` says so.
const USUAL_SESSIONS: usize = 60;
/// How many prompts each session gets.
const PROMPTS: usize = 6;
/// How many of them may be on their way before the oldest is read to its end.
const AHEAD: usize = 2;
/// How often the daemon is killed.
const KILLS: usize = 5;
/// How many sessions are watched by our own client, too.
const WATCHED: usize = 3;

/// What the agent does with a prompt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// It thinks and says something.
    Plain,
    /// It says the same again and again.
    Long,
    /// It wants to be answered.
    Asking,
    /// It gives up.
    Failing,
    /// It runs a command.
    Working,
}

impl Kind {
    fn draw(numbers: &mut Numbers) -> Kind {
        match numbers.below(20) {
            0..8 => Kind::Plain,
            8..13 => Kind::Long,
            13..16 => Kind::Asking,
            16..19 => Kind::Failing,
            _ => Kind::Working,
        }
    }

    fn script(self) -> &'static str {
        match self {
            Kind::Plain => {
                "steps:
- think: {text: 'What is {{prompt}}? ', every: 2ms}
- say: {text: \"You said: {{prompt}}.\\none two three four \", every: 10ms}
- think: and what now
- say: {text: \"fünf 😀 \\n\\nseven \", every: 10ms}
"
            }
            Kind::Long => {
                "steps: [repeat: {times: 20, steps: [say: {text: 'more {{prompt}} '}, sleep: 4ms]}]"
            }
            Kind::Asking => {
                "steps: [say: {text: 'May I, please? ', every: 10ms}, ask: may I?, say: {text: '{{answer}}, then. '}]"
            }
            Kind::Failing => "steps: [say: {text: 'I try and try ', every: 20ms}, fail: it cannot be done]",
            Kind::Working => {
                "steps: [say: {text: 'before '}, shell: 'echo begun; sleep 0.2 & wait', say: {text: 'after '}]"
            }
        }
    }

    /// All that it says, if nobody is killed meanwhile.
    fn text(self, prompt: &str) -> String {
        match self {
            Kind::Plain => format!("You said: {prompt}.\none two three four fünf 😀 \n\nseven "),
            Kind::Long => format!("more {prompt} ").repeat(20),
            Kind::Asking => {
                "May I, please? a client over unix has answered: allow.\nallow, then. ".to_owned()
            }
            Kind::Failing => "I try and try ".to_owned(),
            Kind::Working => "before after ".to_owned(),
        }
    }
}

/// A prompt that was accepted, and what all readers of its turn have in the end.
struct Prompt {
    kind: Kind,
    text: String,
    key: String,
    turn: String,
    readers: Vec<Has>,
}

impl Prompt {
    fn body(&self) -> String {
        let agent = json!({ "name": "rehearsal", "script": self.kind.script() });
        json!({ "prompt": self.text, "agent": agent, "idempotency_key": self.key }).to_string()
    }
}

/// How far all of it is.
#[derive(Debug, Default)]
struct Progress {
    /// Turns that were read to the end, and were not interrupted.
    by_themselves: usize,
    /// Turns that were read to the end.
    ended: usize,
}

/// What all sessions share.
struct Storm<'a> {
    world: &'a World,
    home: Home,
    seed: u64,
    /// Guards the count; all sessions write it.
    progress: Mutex<Progress>,
}

impl Storm<'_> {
    /// Asks until there is an answer. Asking again does no harm, whatever became of the question.
    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let begun = Instant::now();
        loop {
            match send(&self.home, method, path, body) {
                Ok(Answer { status: 503, .. }) | Err(_) => {}
                Ok(answer) => return answer,
            }
            assert!(begun.elapsed() < PATIENCE, "nobody answers {method} {path}");
            thread::sleep(COME_BACK_AFTER); // tidy: the daemon is being started again
        }
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let answer = self.ask("GET", path, "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        serde_json::from_value(answer.body).unwrap()
    }

    /// A session from its first prompt to the end of the last one, with a second reader beside.
    fn session(&self, number: usize) -> (String, Vec<Prompt>, Adventures) {
        let mut numbers = Numbers(self.seed.wrapping_add(number as u64 * 7919));
        let directory = self.world.path().display().to_string();
        // If the answer is lost, there is one more that nobody knows of. It never gets a prompt.
        let opened = self.ask(
            "POST",
            "/v1/sessions",
            &json!({ "directory": directory }).to_string(),
        );
        assert_eq!(opened.status, 201, "{opened:?}");
        let session = opened.body["id"].as_str().unwrap().to_owned();
        let watching = (number < WATCHED).then(|| {
            let command = self
                .world
                .command(&["session", "attach", &session, "--follow", "--json"]);
            Beside::start(self.world, command)
        });
        let reader = |seed: u64| Reader {
            log: Log::KeepsAll,
            home: self.home.clone(),
            session: session.clone(),
            numbers: Numbers(seed),
            adventures: Adventures::default(),
        };
        let (mut one, mut other) = (reader(numbers.below(1 << 30)), reader(numbers.below(1 << 30)));
        let other_reader = &mut other;
        let (mut prompts, other_has) = thread::scope(|scope| {
            let (tell, told) = mpsc::channel::<String>();
            let beside = scope.spawn(move || {
                let turns = told.into_iter();
                turns.map(|turn| other_reader.read(&turn)).collect::<Vec<_>>()
            });
            let prompts = self.talk(&session, &mut numbers, &mut one, &tell);
            drop(tell);
            (prompts, beside.join().unwrap())
        });
        for (prompt, has) in prompts.iter_mut().zip(other_has) {
            prompt.readers.push(has);
        }
        if let Some(watching) = watching {
            // It begins with the turn that runs when it comes, and tells of all that follow.
            let told = watched(&watching, &prompts[PROMPTS - 1].text);
            for (prompt, has) in prompts[PROMPTS - told.len()..].iter_mut().zip(told) {
                prompt.readers.push(has);
            }
        }
        let (one, other) = (one.adventures, other.adventures);
        let adventures = Adventures {
            visits: one.visits + other.visits,
            cut_off: one.cut_off + other.cut_off,
            resyncs: one.resyncs + other.resyncs,
        };
        (session, prompts, adventures)
    }

    /// Sends all prompts, and reads what comes of them.
    fn talk(
        &self,
        session: &str,
        numbers: &mut Numbers,
        reader: &mut Reader,
        tell: &mpsc::Sender<String>,
    ) -> Vec<Prompt> {
        let (mut sent, mut read) = (VecDeque::new(), Vec::new());
        for number in 0..=PROMPTS + AHEAD {
            if number < PROMPTS {
                let prompt = self.prompt(session, number, numbers);
                tell.send(prompt.turn.clone()).unwrap();
                sent.push_back(prompt);
            }
            let is_full = sent.len() > AHEAD || number >= PROMPTS;
            if let Some(mut prompt) = is_full.then(|| sent.pop_front()).flatten() {
                let has = reader.read(&prompt.turn);
                let mut progress = self.progress.lock().unwrap();
                progress.ended += 1;
                progress.by_themselves += usize::from(has.turn.state != Some(TurnState::Interrupted));
                drop(progress);
                prompt.readers.push(has);
                read.push(prompt);
            }
        }
        read
    }

    /// Sends a prompt until it is accepted, and sometimes more often than that.
    fn prompt(&self, session: &str, number: usize, numbers: &mut Numbers) -> Prompt {
        let mut prompt = Prompt {
            kind: Kind::draw(numbers),
            text: format!("{number} of {}", numbers.below(1000)),
            key: format!("key of {number}"),
            turn: String::new(),
            readers: Vec::new(),
        };
        let (path, body) = (format!("/v1/sessions/{session}/turns"), prompt.body());
        let manner = numbers.below(4);
        if manner == 0 {
            // The client goes away before it has its answer. Nobody knows what becomes of the prompt.
            drop(ask_and_leave(&self.home, &path, &body));
        }
        let first = self.ask("POST", &path, &body);
        prompt.turn = turn_of(&first);
        if manner == 1 {
            let again = self.ask("POST", &path, &body);
            assert_eq!((again.status, turn_of(&again)), (200, prompt.turn.clone()));
        }
        prompt
    }

    /// Kills the daemon when so many turns have ended by themselves, at some moment, and starts another one.
    fn kill(&self, after: usize, turns: usize, moment: Duration) {
        let begun = Instant::now();
        loop {
            let progress = self.progress.lock().unwrap();
            if progress.by_themselves >= after || progress.ended == turns {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "nothing ends any more: {progress:?}");
            drop(progress);
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(moment); // tidy: the moment of the kill is the point
        self.world.kill();
        self.world.run(&["up"]).expect(0);
    }

    /// Whether a turn is what it must be, and whether all who have read it have the same.
    fn check(&self, session: &str, prompt: &Prompt, exported: &Value) -> TurnState {
        let path = format!("/v1/sessions/{session}/turns/{}", prompt.turn);
        let log: TurnEventList = self.get(&format!("{path}/events?limit=10000"));
        let mut whole = Has::default();
        log.events.iter().for_each(|event| whole.hear(event));
        let transcript: TurnTranscript = self.get(&format!("{path}/transcript"));
        let about = format!("{:?} {:?} {path}", prompt.kind, prompt.text);
        assert_eq!(whole.turn, transcript, "{about}");
        assert_eq!(json!(transcript.items), exported["items"], "{about}");
        for (reader, has) in prompt.readers.iter().enumerate() {
            assert_eq!(*has, whole, "reader {reader} of {about}");
        }
        assert_eq!(whole.troubles(), [""; 0], "{about}");
        // It was accepted once, has begun at most once, and ended once.
        let states = log.events.iter().filter_map(|event| match &event.data {
            TurnEventBody::Accepted { .. } => Some(TurnState::Queued),
            TurnEventBody::State { state, .. } => Some(*state),
            _ => None,
        });
        let mut states: Vec<TurnState> = states.collect();
        states.dedup();
        let state = transcript.state.unwrap();
        let expected = vec![TurnState::Queued, TurnState::Running, state];
        assert_eq!(states, expected, "{about}");
        let (said, all) = (whole.text(), prompt.kind.text(&prompt.text));
        let code = transcript.error.map(|error| error.code);
        match (state, prompt.kind, code.as_deref()) {
            (TurnState::Interrupted, _, Some("daemon_gone")) => {
                assert!(all.starts_with(&said), "{about}: {said:?} of {all:?}");
            }
            (TurnState::Failed, Kind::Failing, Some("rehearsal_failed")) => assert_eq!(said, all, "{about}"),
            (TurnState::Done, Kind::Plain | Kind::Long | Kind::Asking | Kind::Working, None) => {
                assert_eq!(said, all, "{about}");
            }
            _ => panic!("{about} must not end so: {state:?} {code:?}"),
        }
        state
    }

    /// All sessions that there are.
    fn sessions(&self) -> Vec<Session> {
        let (mut all, mut before) = (Vec::new(), String::new());
        loop {
            let page: SessionList = self.get(&format!("/v1/sessions?limit=100{before}"));
            all.extend(page.sessions);
            match page.next {
                Some(next) => before = format!("&before={next}"),
                None => return all,
            }
        }
    }
}

#[track_caller]
fn turn_of(answer: &Answer) -> String {
    assert!([200, 202].contains(&answer.status), "{answer:?}");
    let accepted: TurnAccepted = serde_json::from_value(answer.body.clone()).unwrap();
    accepted.turn.id
}

fn ask_and_leave(home: &Home, path: &str, body: &str) -> std::io::Result<()> {
    let token = fs::read_to_string(home.token_file())?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len(),
    );
    UnixStream::connect(home.socket())?.write_all(request.as_bytes())
}

/// What our own client has told of each turn, when it has told of the last one.
fn watched(client: &Beside, last: &str) -> Vec<Has> {
    let is_all = |told: &str| {
        let (_, of_the_last) = told.split_once(&format!("{{\"text\":\"{last}\"}}"))?;
        of_the_last.contains("\n{\"end\"").then_some(())
    };
    let begun = Instant::now();
    while is_all(&client.said().0).is_none() {
        assert!(begun.elapsed() < PATIENCE, "not all is told: {:?}", client.said());
        thread::sleep(COME_BACK_AFTER);
    }
    let (mut all, mut has) = (Vec::new(), Has::default());
    for line in client.said().0.lines() {
        let told: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        for (kind, value) in told {
            match kind.as_str() {
                "event" => has.hear(&serde_json::from_value(value).unwrap()),
                "resync" => has.resync(serde_json::from_value(value).unwrap()),
                "end" => all.push(std::mem::take(&mut has)),
                _ => panic!("{kind} of {line}"),
            }
        }
    }
    all
}

#[test]
fn every_prompt_ends_once_and_every_reader_has_what_the_log_has() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let count = number("TIDELOCK_SESSIONS").map_or(USUAL_SESSIONS, |count| usize::try_from(count).unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("TIDELOCK_SESSIONS_SEED").unwrap_or(now.as_secs());
    println!("the seed is {seed}");
    let world = World::new();
    let storm = Storm {
        home: world.home(),
        world: &world,
        seed,
        progress: Mutex::default(),
    };
    let turns = count * PROMPTS;
    let begun = Instant::now();
    world.run(&["up"]).expect(0);
    let sessions: Vec<_> = thread::scope(|scope| {
        let storm = &storm;
        let sessions = (0..count).map(|number| scope.spawn(move || storm.session(number)));
        let sessions: Vec<_> = sessions.collect();
        let mut numbers = Numbers(seed);
        for kill in 0..KILLS {
            // A kill interrupts a turn of every session, so the last one comes well before the end.
            let moment = Duration::from_millis(numbers.below(150));
            storm.kill(kill * turns / (KILLS * 4), turns, moment);
        }
        sessions
            .into_iter()
            .map(|session| session.join().unwrap())
            .collect()
    });
    let ended = begun.elapsed();

    let (mut tally, mut adventures) = (BTreeMap::<String, usize>::new(), Adventures::default());
    for (session, prompts, of_its_readers) in &sessions {
        let listed: TurnList = storm.get(&format!("/v1/sessions/{session}/turns?limit=200"));
        let mut listed: Vec<&str> = listed.turns.iter().map(|turn| turn.id.as_str()).collect();
        listed.reverse();
        let accepted: Vec<&str> = prompts.iter().map(|prompt| prompt.turn.as_str()).collect();
        assert_eq!(listed, accepted, "lost, doubled or out of order in {session}");
        let (path, last) = (format!("/v1/sessions/{session}/turns"), &prompts[PROMPTS - 1]);
        let again = storm.ask("POST", &path, &last.body());
        assert_eq!((again.status, turn_of(&again)), (200, last.turn.clone()));
        let exported = exported_turns(&storm.home, session);
        assert_eq!(exported.len(), prompts.len(), "{session}");
        for (prompt, exported) in prompts.iter().zip(&exported) {
            let state = storm.check(session, prompt, exported);
            *tally.entry(format!("{state:?}")).or_default() += 1;
        }
        adventures.visits += of_its_readers.visits;
        adventures.cut_off += of_its_readers.cut_off;
        adventures.resyncs += of_its_readers.resyncs;
    }
    let all = storm.sessions();
    for session in &all {
        assert_eq!(
            (session.state, session.queue.len()),
            (SessionState::Idle, 0),
            "{session:?}"
        );
        let is_known = sessions.iter().any(|(known, ..)| *known == session.id);
        assert_eq!(
            session.prompts,
            if is_known { PROMPTS as u64 } else { 0 },
            "{session:?}"
        );
    }
    println!(
        "{count} sessions, {KILLS} kills, ended after {ended:?}, looked at after {:?}; {tally:?}, {adventures:?}, {} \
         sessions that nobody knows",
        begun.elapsed(),
        all.len() - count,
    );
    for state in ["Done", "Failed", "Interrupted"] {
        assert!(tally.contains_key(state), "no turn is {state}: nothing was shown");
    }
    assert!(adventures.cut_off > 0 && adventures.resyncs > 0, "{adventures:?}");
    assert_eq!(processes_of(&world), [world.pid()], "something is left");
    let doctor = world.run(&["doctor", "--deep", "--json"]).expect(0).json();
    assert_ne!(doctor["state"], "failed", "{doctor}");
}
