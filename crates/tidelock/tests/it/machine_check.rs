//! Whether everything that was acknowledged came to what it must come to, by what the machines tell and by what the commands
//! wrote down themselves.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

use protocol::{TurnEventBody, TurnEventList, TurnState, TurnTranscript};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::machine_faults::{Happenings, now_ms};
use crate::machine_work::{Deed, Kind, Output, Read, WORDS, Work};
use crate::session_fold::Has;
use crate::session_reader;

const TERMINAL: [&str; 3] = ["succeeded", "failed", "cancelled"];

/// A command as it tells of itself: one process of one deed.
#[derive(Clone, Debug)]
struct Ran {
    machine: usize,
    directory: String,
    first: u64,
    last: u64,
    has_ended: bool,
}

/// What all of it came to, counted.
pub(crate) type Tally = BTreeMap<String, usize>;

pub(crate) struct Check<'a> {
    pub(crate) work: &'a Work<'a>,
    pub(crate) happenings: &'a Happenings,
    pub(crate) tally: Tally,
}

impl Check<'_> {
    fn must(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.work.finding(what());
        }
    }

    fn get<T: DeserializeOwned>(&self, machine: usize, path: &str) -> T {
        let answer = self.work.ask_on(machine, "GET", path, "");
        let answer = answer.unwrap_or_else(|| panic!("no answer to {path}"));
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        serde_json::from_value(answer.body).unwrap()
    }

    /// The processes of a deed, in the order in which they began.
    fn ran(&self, deed: &Deed) -> Vec<Ran> {
        let text = fs::read_to_string(self.work.diary(&deed.name)).unwrap_or_default();
        let mut all: BTreeMap<(u64, u64), Ran> = BTreeMap::new();
        for line in text.lines() {
            let [what, machine, process, at, directory] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line:?} of {deed:?}");
            };
            let number =
                |text: &str| -> u64 { text.parse().unwrap_or_else(|_| panic!("{line:?} of {deed:?}")) };
            let (machine, process, at) = (number(machine), number(process), number(at));
            let ran = all.entry((machine, process)).or_insert_with(|| Ran {
                machine: usize::try_from(machine).unwrap(),
                directory: directory.to_owned(),
                first: at,
                last: at,
                has_ended: false,
            });
            (ran.last, ran.has_ended) = (at, what == "end");
        }
        let mut all: Vec<Ran> = all.into_values().collect();
        all.sort_by_key(|ran| ran.first);
        all
    }

    fn count(&mut self, deed: &Deed, how: &str) {
        *self.tally.entry(format!("{:?} {how}", deed.kind)).or_default() += 1;
    }

    /// Whether a deed that ended so may have been interrupted by what we did meanwhile.
    fn is_excused(&self, deed: &Deed, ran: &[Ran], ended: &Value) -> bool {
        let machine = ran.last().map_or(deed.machine, |ran| ran.machine);
        let [from, to] = ["started_at", "ended_at"].map(|what| ended[what].as_str().map(unix_ms));
        let (from, to) = (from.unwrap_or(deed.at), to.unwrap_or_else(now_ms));
        self.happenings.excuse(machine, from, to)
    }

    pub(crate) fn deed(&mut self, deed: &Deed) {
        let ran = self.ran(deed);
        match deed.kind {
            Kind::Talk | Kind::Act => self.prompt(deed, &ran),
            Kind::Plan => {
                self.job(deed, &ran);
                self.plan(deed, &ran);
            }
            Kind::Once | Kind::Anywhere | Kind::InLane => self.job(deed, &ran),
        }
    }

    fn job(&mut self, deed: &Deed, ran: &[Ran]) {
        let path = format!("/v1/jobs/{}", deed.id);
        let jobs: Vec<Value> = (0..self.work.machines.len())
            .map(|machine| self.get(machine, &path))
            .collect();
        let job = &jobs[0];
        let state = job["state"].as_str().unwrap();
        let history: Value = self.get(0, &format!("{path}/history"));
        let moments = history["moments"].as_array().unwrap();
        let events: Vec<&str> = moments
            .iter()
            .map(|moment| moment["event"].as_str().unwrap())
            .collect();
        let about = format!("{deed:?} {ran:?} {events:?} {job}");
        for other in &jobs[1..] {
            self.must(other["state"] == job["state"], || {
                format!("machines differ: {other}, {about}")
            });
        }
        let ends = events.iter().filter(|event| TERMINAL.contains(event)).count();
        self.must(ends == 1 && events.last() == Some(&state), || {
            format!("not one end: {about}")
        });
        let may_repeat = matches!(deed.kind, Kind::Anywhere | Kind::InLane);
        self.must(may_repeat || ran.len() <= 1, || format!("it ran twice: {about}"));
        let is_at_home = |ran: &Ran| deed.kind == Kind::Anywhere || ran.machine == deed.machine;
        self.must(ran.iter().all(is_at_home), || {
            format!("on another machine: {about}")
        });
        for pair in ran.windows(2) {
            let excused = self
                .happenings
                .stood_still(pair[0].machine, pair[1].first, pair[0].last);
            self.must(pair[0].last <= pair[1].first || excused, || {
                format!("twice at once: {about}")
            });
        }
        let reason = job["reason"].as_str().unwrap_or_default();
        self.count(deed, format!("{state} {reason}").trim());
        if state == "succeeded" {
            self.must(ran.iter().any(|ran| ran.has_ended), || {
                format!("it did not: {about}")
            });
            if deed.kind != Kind::Plan {
                self.output(deed, job, &about);
            }
        } else {
            let is_full = job["text"]
                .as_str()
                .is_some_and(|text| text.ends_with("the disk is full"));
            let is_told = reason == "interrupted" || is_full;
            self.must(is_told, || format!("it must not end so: {about}"));
            self.must(self.is_excused(deed, ran, job), || {
                format!("nothing has interrupted it: {about}")
            });
        }
    }

    /// A job that has succeeded has said all of it in its last attempt, unless it is said that it was lost.
    fn output(&mut self, deed: &Deed, job: &Value, about: &str) {
        let said = self.said(deed);
        let expected: String = (1..=deed.lines).map(|line| format!("line {line}\n")).collect();
        let text: String = said
            .iter()
            .filter(|piece| piece["channel"] == "stdout")
            .map(text_of)
            .collect();
        let is_whole = text.ends_with(&expected) && (deed.kind != Kind::Once || text == expected);
        let is_told = job["output_lost"].is_string();
        if !is_whole && is_told {
            self.count(deed, "output lost and told");
        }
        self.must(is_whole || is_told, || format!("silently lost: {text:?} {about}"));
    }

    /// Each piece of the output of a job.
    fn said(&self, deed: &Deed) -> Vec<Value> {
        let mut text = String::new();
        let mut pieces =
            session_reader::ask(&self.work.home(0), &format!("/v1/jobs/{}/logs", deed.id), "").unwrap();
        pieces.read_to_string(&mut text).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn plan(&mut self, deed: &Deed, ran: &[Ran]) {
        let id = deed.of.as_ref().unwrap();
        let plan: Value = self.get(deed.machine, &format!("/v1/plans/{id}"));
        let history: Value = self.get(deed.machine, &format!("/v1/plans/{id}/history"));
        let moments = history["moments"].as_array().unwrap();
        let applied = moments
            .iter()
            .filter(|moment| moment["event"] == "applied")
            .count();
        let finish: Value = self.get(0, &format!("/v1/jobs/{}", deed.followed_by.as_ref().unwrap()));
        let project = &self.work.projects[deed.machine];
        let own = fs::read_to_string(project.join(format!("{}.txt", deed.name))).unwrap_or_default();
        let journal = fs::read_to_string(project.join("journal")).unwrap();
        let in_journal = journal.lines().filter(|line| *line == deed.name).count();
        let is_applied = plan["state"] == "applied";
        let about = || format!("{deed:?} {ran:?} {plan} {finish} {history} {own:?} {in_journal}");
        let expected = if is_applied {
            (1, 1, format!("{}\n", deed.name))
        } else {
            (0, 0, String::new())
        };
        self.must((applied, in_journal, own.clone()) == expected, || {
            format!("not what it says: {}", about())
        });
        // What the job says came to pass did, and nothing else.
        let says_so = finish["finished"]["outcome"] == "done";
        self.must(says_so == is_applied, || {
            format!("it says otherwise: {}", about())
        });
        self.must(finish["ended_at"].is_string(), || {
            format!("it is not dealt with: {}", about())
        });
        let (state, outcome) = (plan["state"].clone(), finish["finished"]["outcome"].clone());
        self.count(
            deed,
            &format!(
                "plan {state}, finish {} {outcome} {}",
                finish["state"], finish["reason"]
            ),
        );
    }

    fn prompt(&mut self, deed: &Deed, ran: &[Ran]) {
        let session = deed.of.as_ref().unwrap();
        let path = format!("/v1/sessions/{session}/turns/{}", deed.id);
        let turn: Value = self.get(0, &path);
        let transcript: TurnTranscript = self.get(0, &format!("{path}/transcript"));
        let (whole, states) = self.turn(deed);
        let about = format!("{deed:?} {ran:?} {states:?} {turn}");
        self.must(whole.turn == transcript, || {
            format!("{transcript:?} is not {whole:?}: {about}")
        });
        let state = transcript.state.unwrap_or(TurnState::Queued);
        if matches!(state, TurnState::Queued | TurnState::Running) {
            let needs: Value = self.get(0, "/v1/needs?limit=1000");
            let is_told = needs.to_string().contains(session.as_str());
            self.must(is_told, || format!("stranded: {about}"));
            self.count(deed, "in needs");
            return;
        }
        let expected = [TurnState::Queued, TurnState::Running, state];
        let never_ran = [TurnState::Queued, state];
        self.must(states == expected || states == never_ran, || {
            format!("not one end: {about}")
        });
        self.must(ran.len() <= 1, || format!("it ran twice: {about}"));
        let project = self.work.projects[deed.machine].display().to_string();
        let is_at_home = |ran: &Ran| ran.machine == deed.machine && ran.directory == project;
        self.must(ran.iter().all(is_at_home), || {
            format!("on the wrong machine: {about}")
        });
        let all = if deed.kind == Kind::Act {
            WORDS.repeat(2)
        } else {
            WORDS.to_owned()
        };
        // What went wrong about a turn and is told is no finding, and is counted.
        for trouble in whole.troubles() {
            self.count(deed, trouble);
        }
        let said = whole.text();
        let code = transcript.error.map_or_else(String::new, |error| error.code);
        self.count(deed, format!("{state:?} {code}").trim());
        if state == TurnState::Done {
            self.must(said == all, || format!("silently lost: {said:?} {about}"));
            let did = deed.kind == Kind::Talk || ran.iter().any(|ran| ran.has_ended);
            let excused = self.is_excused(deed, ran, &turn);
            // A command that is interrupted is told to the agent, which goes on.
            self.must(did || excused, || format!("it did not: {about}"));
        } else {
            self.must(all.starts_with(&said), || {
                format!("said otherwise: {said:?} {about}")
            });
            let excused = self.is_excused(deed, ran, &turn);
            self.must(excused, || format!("nothing has interrupted it: {about}"));
            let is_told = state == TurnState::Interrupted || code == "log_failed";
            self.must(is_told, || format!("it must not end so: {about}"));
        }
    }

    /// A turn as the log has it, and the states that it went through.
    fn turn(&self, deed: &Deed) -> (Has, Vec<TurnState>) {
        let path = format!("/v1/sessions/{}/turns/{}", deed.of.as_ref().unwrap(), deed.id);
        let log: TurnEventList = self.get(0, &format!("{path}/events?limit=10000"));
        let mut whole = Has::default();
        log.events.iter().for_each(|event| whole.hear(event));
        let states = log.events.iter().filter_map(|event| match &event.data {
            TurnEventBody::Accepted { .. } => Some(TurnState::Queued),
            TurnEventBody::State { state, .. } => Some(*state),
            _ => None,
        });
        (whole, states.collect())
    }

    /// Whoever has read something to its end has what the log has.
    pub(crate) fn read(&mut self, read: &Read) {
        match read {
            Read::Turn(deed, has) => {
                let (whole, _) = self.turn(deed);
                self.must(*has == whole, || {
                    format!("a reader has {has:?}, the log {whole:?}: {deed:?}")
                });
            }
            Read::Output(deed, has) => {
                let pieces = self.said(deed).into_iter();
                let pieces = pieces.map(|piece| (piece["sequence"].as_u64().unwrap(), text_of(&piece)));
                let whole = Output {
                    after: has.after,
                    pieces: pieces.filter(|(number, _)| *number > has.after).collect(),
                };
                self.must(*has == whole, || {
                    format!("a reader has {has:?}, the log {whole:?}: {deed:?}")
                });
            }
        }
    }

    /// No two commands ran in the lane at once.
    pub(crate) fn lane(&mut self, deeds: &[Deed]) {
        let in_lane = deeds.iter().filter(|deed| deed.kind == Kind::InLane);
        let mut all: Vec<Ran> = in_lane.flat_map(|deed| self.ran(deed)).collect();
        all.sort_by_key(|ran| ran.first);
        let Some(mut before) = all.first().cloned() else {
            return;
        };
        for next in &all[1..] {
            let (from, to) = (next.first, before.last.min(next.last));
            let excused = self.happenings.stood_still(before.machine, from, to);
            self.must(before.last <= next.first || excused, || {
                format!("two in one lane for {} ms: {before:?} {next:?}", to - from)
            });
            if next.last > before.last {
                before = next.clone();
            }
        }
    }
}

/// The milliseconds of a time such as `2026-11-17T22:11:03.163Z`.
fn unix_ms(text: &str) -> u64 {
    let time: jiff::Timestamp = text.parse().unwrap_or_else(|_| panic!("{text} is not a time"));
    time.as_millisecond().try_into().unwrap()
}

fn text_of(piece: &Value) -> String {
    piece["text"].as_str().unwrap_or_default().to_owned()
}
