//! What the scenarios of sessions are about: somebody who takes prompts and runs them. Ours, and what a scenario may ask of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use eventlog::{Log, Sequence, Tail, TailItem};
use kernel::{CancellationToken, SystemClock};
use plans::Plans;
use process::Tasks;
use protocol::{AgentChoice, AgentKind, IfBusy};
use protocol::{BootId, HomeId, SessionId, TurnId};
use sessions::{
    Agent, AgentEnd, AgentInfo, AgentTurn, LanguageError, LanguageOrder, Languages, NewSession, NewTurn,
    Ports, Prompt, Readiness, RunOn, SessionError, Sessions, SessionsOptions, SessionsSettings, Sharing,
    Shell, ShellEnd, ShellError, ShellOrder, TurnEvent,
};
use tokio::sync::{Notify, mpsc};

use crate::plans_kit::Site;

/// Somebody who takes prompts and runs them.
#[async_trait(?Send)]
pub(crate) trait Runtime {
    /// A session.
    async fn create(&self) -> String;
    /// Sends a prompt that shall not wait: its turn, or the one that is in its way.
    async fn start(&self, session: &str, prompt: &str, key: Option<&str>) -> Result<String, String>;
    /// What a reader does that looks at a session, and frees it if its turn is nobody's.
    async fn look_and_clear(&self, session: &str);
    /// Leaves a turn behind whose owner is gone.
    async fn leave_behind(&self, session: &str) -> String;
    /// The turn that the session says is running.
    async fn active(&self, session: &str) -> Option<String>;
    /// Wants the turn of a session to stop. Its agent has been told.
    async fn stop(&self, session: &str);
    /// Gives a session another title, from what a list shows of it.
    async fn rename(&self, session: &str, title: &str);
    /// The title, and how many turns the session has.
    async fn shown(&self, session: &str) -> (String, usize);
    /// Follows a turn from its beginning; nothing if there is no such stream.
    async fn attach(&self, turn: &str) -> Option<Box<dyn Reader>>;
    /// Lets the agent of a turn say something; whether anybody takes it.
    async fn say(&self, turn: &str, text: &str) -> bool;
    /// Lets the agent of a turn come to its end.
    async fn let_go(&self, turn: &str);
    /// The turns whose agents are at work.
    fn at_work(&self) -> BTreeSet<String>;
    /// The next life of the daemon; this one is dead, and does nothing more.
    async fn next_life(&self) -> Arc<dyn Runtime>;
}

/// A reader of a turn.
#[async_trait(?Send)]
pub(crate) trait Reader {
    /// The next piece of text, or how the turn ended.
    async fn next(&mut self) -> Heard;
}

/// What a reader hears.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Heard {
    Text(String),
    End(String),
}

/// The daemon's own.
pub(crate) struct Ours {
    sessions: Sessions,
    log: Log,
    plans: Plans,
    site: Arc<Site>,
    home: HomeId,
    sharing: Sharing,
    agents: Arc<Hands>,
    /// A life of the same home from before. What it begins is nobody's.
    before: Option<Sessions>,
}

impl Ours {
    /// The first daemon of a home.
    pub(crate) async fn open(log: &Log, plans: &Plans, site: &Arc<Site>, sharing: Sharing) -> Self {
        Self::life(log, plans, site, (HomeId::generate(), sharing)).await
    }

    /// The second life of a home whose first one was killed: its lease is still held, and nobody renews it.
    pub(crate) async fn open_after_kill(log: &Log, plans: &Plans, site: &Arc<Site>, lease: Duration) -> Self {
        let home = HomeId::generate();
        let key = format!("sessions/{home}");
        log.lease(&key, "a life that is over", lease).await.unwrap();
        Self::life(log, plans, site, (home, Sharing::WithOthers)).await
    }

    /// One that has had a life before, which is over.
    pub(crate) async fn open_again(log: &Log, plans: &Plans, site: &Arc<Site>, sharing: Sharing) -> Self {
        let home = HomeId::generate();
        // One that is over looks after nobody's prompts.
        let before = Self::life(log, plans, site, (home, Sharing::Alone))
            .await
            .sessions;
        let mut ours = Self::life(log, plans, site, (home, sharing)).await;
        ours.before = Some(before);
        ours
    }

    async fn life(log: &Log, plans: &Plans, site: &Arc<Site>, (home, sharing): (HomeId, Sharing)) -> Self {
        let agents = Arc::new(Hands::default());
        let sessions = Sessions::open(SessionsOptions {
            log: log.clone(),
            sharing,
            home_id: home,
            boot_id: BootId::generate(),
            plans: plans.clone(),
            ports: Ports {
                shell: Arc::new(Nobody),
                finisher: Arc::new(sessions::NoPlanFinisher),
                languages: Arc::new(Nobody),
                context: Arc::new(sessions::NoContextFinder),
            },
            agents: BTreeMap::from([("hands".to_owned(), Arc::clone(&agents) as Arc<dyn Agent>)]),
            settings: SessionsSettings {
                default_agent: "hands".to_owned(),
                ..SessionsSettings::default()
            },
            tasks: Tasks::default(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        Self {
            sessions,
            log: log.clone(),
            plans: plans.clone(),
            site: Arc::clone(site),
            home,
            sharing,
            agents,
            before: None,
        }
    }

    async fn get(&self, session: &str) -> sessions::Session {
        self.sessions.get(id(session)).await.unwrap()
    }
}

fn id(session: &str) -> SessionId {
    session.parse().unwrap()
}

/// A prompt that shall not wait.
fn prompt(text: &str, key: Option<&str>) -> NewTurn {
    NewTurn {
        prompt: Prompt {
            text: text.to_owned(),
            attachments: Vec::new(),
        },
        agent: None,
        if_busy: IfBusy::Refuse,
        run_on: RunOn::Here,
        seen: None,
        finish: None,
        idempotency_key: key.map(str::to_owned),
        by: "ann".into(),
    }
}

#[async_trait(?Send)]
impl Runtime for Ours {
    async fn create(&self) -> String {
        let new = NewSession {
            directory: self.site.workspace.clone(),
            title: "a session".to_owned(),
            agent: AgentChoice {
                name: "hands".to_owned(),
                ..AgentChoice::default()
            },
            rules: Vec::new(),
            plan: None,
            by: "ann".into(),
        };
        self.sessions.create(new).await.unwrap().id.to_string()
    }

    async fn start(&self, session: &str, text: &str, key: Option<&str>) -> Result<String, String> {
        match self.sessions.start_turn(id(session), prompt(text, key)).await {
            Ok(accepted) => Ok(accepted.turn.id.to_string()),
            Err(SessionError::TurnActive { turn, .. }) => Err(turn.to_string()),
            Err(error) => panic!("{error}"),
        }
    }

    async fn look_and_clear(&self, session: &str) {
        let seen = self.get(session).await;
        // It has decided, and has not begun to write.
        tokio::task::yield_now().await;
        match self.sessions.clear_stale_turn(seen.id, &seen).await {
            Ok(_) | Err(SessionError::Stale { .. } | SessionError::NotStale { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    async fn leave_behind(&self, session: &str) -> String {
        let before = self.before.as_ref().expect("there was a life before");
        let accepted = before.start_turn(id(session), prompt("left behind", None)).await;
        accepted.unwrap().turn.id.to_string()
    }

    async fn active(&self, session: &str) -> Option<String> {
        let active = self.get(session).await.record.active;
        active.map(|active| active.turn.to_string())
    }

    async fn stop(&self, session: &str) {
        let stopping = self
            .sessions
            .cancel_turn(id(session), None, "ann".into(), String::new())
            .await
            .unwrap();
        let turn = stopping.record.active.expect("it is stopping").turn.to_string();
        let scope = self.agents.turn(&turn).await.scope;
        tokio::time::timeout(Duration::from_secs(30), scope.wait())
            .await
            .expect("its agent is told");
    }

    async fn rename(&self, session: &str, title: &str) {
        self.sessions
            .rename(id(session), title.to_owned(), "bob".into())
            .await
            .unwrap();
    }

    async fn shown(&self, session: &str) -> (String, usize) {
        let title = self.get(session).await.record.title;
        let turns = self.sessions.turns(id(session), None, 10_000).await.unwrap();
        (title, turns.len())
    }

    async fn attach(&self, turn: &str) -> Option<Box<dyn Reader>> {
        let turn: TurnId = turn.parse().unwrap();
        self.sessions.turn(turn).await.ok()?;
        let stream = eventlog::StreamId::new(&format!("turn/{turn}")).unwrap();
        let tail = self
            .log
            .tail(&stream, Sequence::default(), &CancellationToken::new().scope());
        Some(Box::new(Follower(tail)))
    }

    async fn say(&self, turn: &str, text: &str) -> bool {
        let sink = self.agents.turn(turn).await.sink;
        sink.text(text).await.is_ok() && sink.flush().await.is_ok()
    }

    async fn let_go(&self, turn: &str) {
        self.agents.let_go(turn).await;
    }

    fn at_work(&self) -> BTreeSet<String> {
        self.agents.at_work()
    }

    async fn next_life(&self) -> Arc<dyn Runtime> {
        Arc::new(Self::life(&self.log, &self.plans, &self.site, (self.home, self.sharing)).await)
    }
}

/// A tail of a turn's stream.
struct Follower(Tail);

#[async_trait(?Send)]
impl Reader for Follower {
    async fn next(&mut self) -> Heard {
        loop {
            let TailItem::Event(event) = self.0.next().await.unwrap() else {
                panic!("nothing was dropped here")
            };
            match sessions::from_log(&event) {
                Some(TurnEvent::Text { delta, .. }) => return Heard::Text(delta),
                Some(TurnEvent::State { state, .. }) if state.is_terminal() => {
                    return Heard::End(state.name().to_owned());
                }
                _ => {}
            }
        }
    }
}

/// An agent that a scenario leads by the hand. It goes on when it is stopped, until it is let go.
#[derive(Debug, Default)]
struct Hands {
    /// Guards the turns at work; held to look and to write.
    turns: Mutex<BTreeMap<String, (AgentTurn, Arc<Notify>)>>,
    /// Told when a turn begins.
    begun: Notify,
}

impl Hands {
    fn look(&self, turn: &str) -> Option<(AgentTurn, Arc<Notify>)> {
        self.turns.lock().unwrap().get(turn).cloned()
    }

    /// A turn at work, as soon as it is.
    async fn find(&self, turn: &str) -> (AgentTurn, Arc<Notify>) {
        loop {
            let begun = self.begun.notified();
            if let Some(found) = self.look(turn) {
                return found;
            }
            tokio::time::timeout(Duration::from_secs(30), begun)
                .await
                .unwrap_or_else(|_| panic!("the agent of {turn} is not at work"));
        }
    }

    async fn turn(&self, turn: &str) -> AgentTurn {
        self.find(turn).await.0
    }

    async fn let_go(&self, turn: &str) {
        self.find(turn).await.1.notify_one();
    }

    fn at_work(&self) -> BTreeSet<String> {
        self.turns.lock().unwrap().keys().cloned().collect()
    }
}

#[async_trait]
impl Agent for Hands {
    fn info(&self) -> AgentInfo {
        AgentInfo {
            name: "hands".to_owned(),
            kind: AgentKind::Rehearsal,
            description: "does what the scenario says".to_owned(),
            readiness: Readiness::Ready,
        }
    }

    async fn run(&self, turn: AgentTurn) -> AgentEnd {
        let (name, scope) = (turn.turn.to_string(), turn.scope.clone());
        let is_let_go = Arc::new(Notify::new());
        self.turns
            .lock()
            .unwrap()
            .insert(name.clone(), (turn, Arc::clone(&is_let_go)));
        self.begun.notify_waiters();
        is_let_go.notified().await;
        self.turns.lock().unwrap().remove(&name);
        match scope.is_cancelled() {
            true => AgentEnd::Cancelled,
            false => AgentEnd::Done,
        }
    }
}

/// Runs nothing and knows nothing.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Shell for Nobody {
    async fn run(&self, _: ShellOrder, _: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError> {
        Err(ShellError {
            text: "there is no shell here".to_owned(),
        })
    }
}

#[async_trait]
impl Languages for Nobody {
    fn verbs(&self) -> Vec<&'static str> {
        Vec::new()
    }

    async fn ask(&self, order: LanguageOrder) -> Result<String, LanguageError> {
        Err(LanguageError {
            code: "server_not_found".to_owned(),
            text: order.verb,
        })
    }
}
