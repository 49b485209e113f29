//! What machines do while everything between them fails: jobs, prompts and plans, each until it is acknowledged, and readers
//! of what comes of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use daemon::Home;
use serde_json::{Value, json};

use crate::crash_rounds::Numbers;
use crate::machine_faults::now_ms;
use crate::machine_stage::{MACHINE_VARIABLE, Machine};
use crate::requests::{Answer, send};
use crate::session_fold::Has;
use crate::session_reader::{Adventures, COME_BACK_AFTER, Log, PATIENCE, Reader, Stream};

/// How many deeds of one machine may be under way. More is not done, so that nothing waits for want of room.
const UNDER_WAY: usize = 5;
/// How often it is asked whether something has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// All that a talking agent says.
pub(crate) const WORDS: &str = "one two three four five six seven eight nine ten ";

/// Something that was to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A job that may run once.
    Once,
    /// A job that may be repeated, on any machine.
    Anywhere,
    /// A job that may be repeated, and only one of its kind may run.
    InLane,
    /// A command in a plan that is applied.
    Plan,
    /// A prompt; the agent talks.
    Talk,
    /// A prompt; the agent talks and runs a command.
    Act,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] = [
        Kind::Once,
        Kind::Anywhere,
        Kind::InLane,
        Kind::Plan,
        Kind::Talk,
        Kind::Act,
    ];

    /// How many of a kind one machine may have under way. Two plans that change the same file would be a conflict.
    fn at_once(self) -> usize {
        match self {
            Kind::InLane | Kind::Plan => 1,
            _ => UNDER_WAY,
        }
    }
}

/// Something that was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) kind: Kind,
    /// What it is called in all files.
    pub(crate) name: String,
    /// The machine that must do it.
    pub(crate) machine: usize,
    /// When it was acknowledged.
    pub(crate) at: u64,
    /// How many lines it says.
    pub(crate) lines: u64,
    /// The job or the turn.
    pub(crate) id: String,
    /// The plan or the session, and the job that deals with the end of the first one.
    pub(crate) of: Option<String>,
    pub(crate) followed_by: Option<String>,
}

/// A session, and the machine that it belongs to.
#[derive(Debug)]
pub(crate) struct Talks {
    pub(crate) session: String,
    pub(crate) machine: usize,
}

/// What somebody has read of a turn, or of the output of a job.
#[derive(Debug)]
pub(crate) enum Read {
    Turn(Deed, Has),
    Output(Deed, Output),
}

/// What a reader has of the output of a job: every piece after a place, by its number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) after: u64,
    pub(crate) pieces: BTreeMap<u64, String>,
}

/// What all machines share.
pub(crate) struct Work<'a> {
    pub(crate) machines: &'a [Machine],
    /// The project of each machine.
    pub(crate) projects: Vec<PathBuf>,
    /// Where all commands write down what they do.
    pub(crate) diaries: PathBuf,
    pub(crate) talks: Vec<Talks>,
    pub(crate) over: AtomicBool,
    /// What must not be. All threads write it.
    pub(crate) findings: Mutex<Vec<String>>,
}

impl Work<'_> {
    pub(crate) fn finding(&self, what: String) {
        println!("{} FINDING: {what}", now_ms());
        self.findings.lock().unwrap().push(what);
    }

    pub(crate) fn home(&self, machine: usize) -> Home {
        self.machines[machine].world.home()
    }

    /// Asks once. Nothing is known if there is no answer, or that the log is away.
    pub(crate) fn ask(&self, machine: usize, method: &str, path: &str, body: &str) -> Option<Answer> {
        match send(&self.home(machine), method, path, body) {
            Ok(Answer { status: 503, .. }) | Err(_) => None,
            Ok(answer) => Some(answer),
        }
    }

    /// Asks until there is an answer.
    pub(crate) fn ask_on(&self, machine: usize, method: &str, path: &str, body: &str) -> Option<Answer> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let answer = self.ask(machine, method, path, body);
            if answer.is_some() {
                return answer;
            }
            thread::sleep(LOOK_EVERY); // tidy: what is away is being healed
        }
        self.finding(format!("machine {machine} does not answer {method} {path}"));
        None
    }

    pub(crate) fn diary(&self, name: &str) -> PathBuf {
        self.diaries.join(name)
    }

    /// What asks for a deed.
    fn request(&self, kind: Kind, name: &str, machine: usize, lines: u64) -> Value {
        let diary = self.diary(name);
        let mark = format!(
            "m() {{ echo $1 ${MACHINE_VARIABLE} $$ $(date +%s%3N) $PWD >> {}; }}",
            diary.display()
        );
        let line = format!(
            "{mark}; m begin; i=1; while [ $i -le {lines} ]; do echo line $i; m mark; i=$((i+1)); sleep 0.05; done; m end"
        );
        let directory = &self.projects[machine];
        let mut request = json!({ "idempotency_key": name, "title": name });
        let shell = |line: &str| json!({ "shell": line, "directory": directory });
        match kind {
            Kind::Once => request["command"] = shell(&line),
            Kind::Anywhere => {
                request["command"] = json!({ "shell": line, "directory": self.diaries });
                request["anywhere"] = json!(true);
                request["if_interrupted"] = json!("repeat");
            }
            Kind::InLane => {
                request["command"] = shell(&line);
                request["lane"] = json!({ "name": "narrow", "limit": 1 });
                request["if_interrupted"] = json!("repeat");
            }
            Kind::Plan => {
                let line =
                    format!("echo {name} > {name}.txt; echo {name} >> journal; {mark}; m begin; m end");
                request["command"] = shell(&line);
                request["open"] = json!({ "directory": directory, "title": name });
                request["finish"] = json!({ "then": "apply" });
            }
            Kind::Talk => {
                let script = format!("steps: [say: {{text: '{WORDS}', every: 40ms}}]");
                return prompt(name, &script);
            }
            Kind::Act => {
                let script = format!(
                    "steps:\n- say: {{text: '{WORDS}', every: 10ms}}\n- shell: '{mark}; m begin; sleep 0.3; m end'\n- say: {{text: '{WORDS}', every: 10ms}}\n"
                );
                return prompt(name, &script);
            }
        }
        request
    }

    /// Asks for something until it is acknowledged.
    fn begin(&self, machine: usize, kind: Kind, name: String, numbers: &mut Numbers) -> Option<Deed> {
        let lines = if numbers.below(4) == 0 { 40 } else { 8 };
        let talks = &self.talks[usize::try_from(numbers.below(self.talks.len() as u64)).unwrap()];
        let is_prompt = matches!(kind, Kind::Talk | Kind::Act);
        let path = match is_prompt {
            true => format!("/v1/sessions/{}/turns", talks.session),
            false => "/v1/jobs".to_owned(),
        };
        let body = self.request(kind, &name, machine, lines).to_string();
        let answer = self.ask_on(machine, "POST", &path, &body)?;
        if ![200, 201, 202].contains(&answer.status) {
            self.finding(format!("{name} {kind:?} is refused by {machine}: {answer:?}"));
            return None;
        }
        let body = &answer.body;
        let id = |value: &Value| value.as_str().map(str::to_owned);
        Some(Deed {
            kind,
            name,
            machine: if is_prompt { talks.machine } else { machine },
            at: now_ms(),
            lines,
            id: id(&body[if is_prompt { "turn" } else { "job" }]["id"]).unwrap(),
            of: if is_prompt {
                Some(talks.session.clone())
            } else {
                id(&body["plan"]["id"])
            },
            followed_by: id(&body["job"]["followed_by"]),
        })
    }

    /// Whether it has ended, as one machine tells it. It may not know.
    pub(crate) fn has_ended(&self, asked: usize, deed: &Deed) -> bool {
        let path = match (&deed.of, deed.kind) {
            (Some(session), Kind::Talk | Kind::Act) => format!("/v1/sessions/{session}/turns/{}", deed.id),
            _ => format!("/v1/jobs/{}", deed.followed_by.as_ref().unwrap_or(&deed.id)),
        };
        let Some(answer) = self.ask(asked, "GET", &path, "") else {
            return false;
        };
        if answer.status != 200 {
            self.finding(format!("machine {asked} does not know {deed:?}: {answer:?}"));
            return true;
        }
        answer.body["ended_at"].is_string()
    }

    /// One machine works until it is told that it is over, and has done one of each kind.
    pub(crate) fn work(
        &self,
        machine: usize,
        mut numbers: Numbers,
        readers: &[SyncSender<Deed>],
    ) -> Vec<Deed> {
        let (mut done, mut under_way): (Vec<Deed>, Vec<Deed>) = (Vec::new(), Vec::new());
        for number in 0.. {
            let is_over = |number: usize| self.over.load(Ordering::Relaxed) && number >= Kind::ALL.len();
            let drawn = Kind::ALL[usize::try_from(numbers.below(Kind::ALL.len() as u64)).unwrap()];
            let kind = Kind::ALL.get(number).copied().unwrap_or(drawn);
            let begun = Instant::now();
            loop {
                let of_kind = under_way.iter().filter(|deed| deed.kind == kind).count();
                if is_over(number) {
                    return done;
                }
                if under_way.len() < UNDER_WAY && of_kind < kind.at_once() {
                    break;
                }
                if begun.elapsed() > PATIENCE {
                    self.finding(format!("nothing ends any more on {machine}: {under_way:?}"));
                    return done;
                }
                thread::sleep(LOOK_EVERY);
                under_way.retain(|deed| !self.has_ended(machine, deed));
            }
            let name = format!("d{machine}-{number}");
            let Some(deed) = self.begin(machine, kind, name, &mut numbers) else {
                continue;
            };
            // A reader that has something to read already takes no more.
            readers
                .iter()
                .for_each(|reader| drop(reader.try_send(deed.clone())));
            under_way.push(deed.clone());
            done.push(deed);
        }
        unreachable!("it is over sooner or later")
    }

    /// Reads one thing after the other on a machine, each to its end, in many visits.
    pub(crate) fn read(&self, machine: usize, seed: u64, deeds: &Receiver<Deed>) -> (Vec<Read>, Adventures) {
        let mut numbers = Numbers(seed);
        let (mut read, mut adventures) = (Vec::new(), Adventures::default());
        for deed in deeds {
            match deed.kind {
                Kind::Plan => {}
                Kind::Talk | Kind::Act => {
                    let mut reader = Reader {
                        log: Log::MayRewind,
                        home: self.home(machine),
                        session: deed.of.clone().unwrap(),
                        numbers: Numbers(numbers.below(1 << 30)),
                        adventures,
                    };
                    let has = reader.read(&deed.id);
                    adventures = reader.adventures;
                    read.push(Read::Turn(deed, has));
                }
                Kind::Once | Kind::Anywhere | Kind::InLane => {
                    let output = self.follow(machine, &deed, &mut adventures);
                    read.push(Read::Output(deed, output));
                }
            }
        }
        (read, adventures)
    }

    /// Reads the output of a job to its end.
    fn follow(&self, machine: usize, deed: &Deed, adventures: &mut Adventures) -> Output {
        let path = format!("/v1/jobs/{}/logs", deed.id);
        let (mut output, mut place, mut id) = (Output::default(), 0, None::<String>);
        let give_up_at = Instant::now() + PATIENCE;
        loop {
            assert!(
                Instant::now() < give_up_at,
                "it does not end: {deed:?} {output:?}"
            );
            let Ok(mut stream) = Stream::open(&self.home(machine), &path, id.as_deref()) else {
                thread::sleep(COME_BACK_AFTER); // tidy: the daemon is being started again
                continue;
            };
            adventures.visits += 1;
            while let Some((kind, data)) = stream.next_event(give_up_at) {
                let data: Value = serde_json::from_str(&data).unwrap();
                match kind.as_str() {
                    "output" => {
                        let number = data["sequence"].as_u64().unwrap();
                        assert!(number > place, "again after {place}: {data} of {deed:?}");
                        place = number;
                        output
                            .pieces
                            .insert(number, data["text"].as_str().unwrap().to_owned());
                    }
                    "resync" => {
                        adventures.resyncs += 1;
                        place = data["after"].as_u64().unwrap();
                        output = Output {
                            after: place,
                            ..Output::default()
                        };
                    }
                    "end" => return output,
                    _ => {}
                }
                id = stream.id.clone().or(id);
            }
            adventures.cut_off += 1;
        }
    }
}

fn prompt(name: &str, script: &str) -> Value {
    let agent = json!({ "name": "rehearsal", "script": script });
    json!({ "idempotency_key": name, "prompt": name, "agent": agent })
}
