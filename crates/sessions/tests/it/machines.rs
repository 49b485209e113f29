//! Several daemons on one log, as on several machines: who runs which prompt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kernel::{CancellationToken, Deadline, SystemClock};
use machines::{ElsewherePolicy, HomeLocation, Identity, IdentityClaim, Presence, claim};
use protocol::{AgentChoice, BootId, HomeId, SessionId, SessionState, TurnId, TurnState};
use sessions::{
    AfterCrash, Agent, AgentEnd, NewSession, NewTurn, Ports, RunOn, SessionError, Sessions, SessionsOptions,
    SessionsSettings, Sharing,
};

use crate::kit::{Agents, Echo, Kit, NoLanguages, PATIENCE, Puppet, prompt};

/// A machine: a home, and the agent of its daemon.
struct Machine {
    home: HomeId,
    name: &'static str,
    puppet: Arc<Puppet>,
    settings: SessionsSettings,
    /// The identity that its daemon has.
    life: Mutex<Option<IdentityClaim>>,
}

impl Machine {
    fn new(name: &'static str) -> Self {
        Self {
            home: HomeId::generate(),
            name,
            puppet: Puppet::new(),
            settings: SessionsSettings {
                default_agent: "puppet".to_owned(),
                ..SessionsSettings::default()
            },
            life: Mutex::default(),
        }
    }

    /// Its daemon ends, and gives its leases back.
    async fn stop(&self, sessions: &Sessions) {
        sessions.close();
        sessions
            .drain(&Deadline::after(&SystemClock::shared(), PATIENCE))
            .await;
        let claimed = self.life.lock().unwrap().take().unwrap();
        claimed.release().await;
    }

    /// The next life of its daemon.
    async fn start(&self, kit: &Kit) -> Sessions {
        let boot = BootId::generate();
        let identity = Identity {
            home: self.home,
            boot,
        };
        let machine = machines::Machine {
            name: self.name.to_owned(),
            place: HomeLocation::of(&kit.workspace, &kit.workspace).unwrap(),
            is_at: |_, _| false,
        };
        let clock = SystemClock::shared();
        let claimed = claim(&kit.log, &clock, identity, &machine, ElsewherePolicy::Refuse);
        let claimed = claimed.await.unwrap();
        self.life.lock().unwrap().replace(claimed);
        let mut agents: Agents = BTreeMap::new();
        agents.insert("puppet".to_owned(), Arc::clone(&self.puppet) as Arc<dyn Agent>);
        let opened = Sessions::open(SessionsOptions {
            log: kit.log.clone(),
            sharing: Sharing::WithOthers,
            home_id: self.home,
            boot_id: boot,
            plans: kit.plans.clone(),
            ports: Ports {
                shell: Arc::new(Echo::default()),
                finisher: Arc::new(sessions::NoPlanFinisher),
                languages: Arc::new(NoLanguages),
                context: Arc::clone(&kit.finder),
            },
            agents,
            settings: self.settings.clone(),
            tasks: kit.tasks.clone(),
            clock: SystemClock::shared(),
        });
        opened.await.unwrap()
    }

    /// Leads the next turn that runs here to its end, and says what was asked.
    async fn run_next(&self) -> String {
        let led = self.puppet.next().await;
        let text = led.turn.prompt.text.clone();
        led.end(AgentEnd::Done);
        text
    }
}

async fn open_session(kit: &Kit, on: &Sessions) -> SessionId {
    let new = NewSession {
        directory: kit.workspace.clone(),
        title: String::new(),
        agent: AgentChoice {
            name: "puppet".to_owned(),
            ..AgentChoice::default()
        },
        rules: Vec::new(),
        plan: None,
        by: "ann".into(),
    };
    on.create(new).await.unwrap().id
}

fn here(text: &str) -> NewTurn {
    NewTurn {
        run_on: RunOn::Here,
        ..prompt(text)
    }
}

async fn end(sessions: &Sessions, turn: TurnId) -> TurnState {
    let scope = CancellationToken::new().scope();
    let deadline = Deadline::after(&SystemClock::shared(), PATIENCE);
    sessions.wait(turn, &deadline, &scope).await.unwrap().record.state
}

/// Waits until it is known whether the machine that a session waits for is there.
async fn awaited(sessions: &Sessions, session: SessionId, presence: Presence) -> HomeId {
    let looking = async {
        loop {
            let found = sessions.get(session).await.unwrap();
            match sessions.awaited(&found) {
                Some(machine) if machine.presence == presence => return machine.home,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap()
}

#[tokio::test]
async fn a_prompt_runs_on_the_machine_of_its_session_wherever_it_was_sent() {
    let kit = Kit::new().await;
    let (alpha, beta) = (Machine::new("alpha"), Machine::new("beta"));
    let (on_alpha, on_beta) = (alpha.start(&kit).await, beta.start(&kit).await);
    let session = open_session(&kit, &on_alpha).await;
    let sent = on_beta.start_turn(session, prompt("from afar")).await.unwrap();
    assert_eq!(
        (sent.turn.record.state, sent.session.record.state()),
        (TurnState::Queued, SessionState::Waiting)
    );
    let machine = on_beta.awaited(&sent.session).unwrap();
    assert_eq!((machine.home, machine.presence), (alpha.home, Presence::Running));
    assert_eq!(alpha.run_next().await, "from afar");
    assert_eq!(end(&on_beta, sent.turn.id).await, TurnState::Done);
    // Behind a turn that runs there, too.
    let first = on_alpha.start_turn(session, prompt("one")).await.unwrap();
    let second = on_beta.start_turn(session, prompt("two")).await.unwrap();
    assert_eq!(
        (alpha.run_next().await, alpha.run_next().await),
        ("one".to_owned(), "two".to_owned())
    );
    for turn in [first.turn.id, second.turn.id] {
        assert_eq!(end(&on_beta, turn).await, TurnState::Done);
    }
    // A fork shares the directory, and so the machine.
    let fork = on_beta.fork(session, None, "ann".into()).await.unwrap();
    on_beta.start_turn(fork.id, prompt("forked")).await.unwrap();
    assert_eq!(alpha.run_next().await, "forked");
    assert!(!beta.puppet.has_more().await);
}

#[tokio::test]
async fn a_prompt_waits_for_its_machine_and_nobody_else_takes_it() {
    let kit = Kit::new().await;
    let (alpha, beta) = (Machine::new("alpha"), Machine::new("beta"));
    let (on_alpha, on_beta) = (alpha.start(&kit).await, beta.start(&kit).await);
    let session = open_session(&kit, &on_alpha).await;
    on_alpha.start_turn(session, prompt("interrupted")).await.unwrap();
    let _running = alpha.puppet.next().await;
    let waits = on_alpha
        .start_turn(session, prompt("waits"))
        .await
        .unwrap()
        .turn
        .id;
    alpha.stop(&on_alpha).await;
    assert_eq!(awaited(&on_beta, session, Presence::Gone).await, alpha.home);
    // Another daemon that starts leaves it alone, and so does one that is asked to free the session.
    beta.stop(&on_beta).await;
    let on_beta = beta.start(&kit).await;
    assert_eq!(awaited(&on_beta, session, Presence::Gone).await, alpha.home);
    on_beta
        .cancel_turn(session, None, "ann".into(), String::new())
        .await
        .unwrap();
    assert_eq!(on_beta.turn(waits).await.unwrap().record.state, TurnState::Queued);
    let again = alpha.start(&kit).await;
    assert_eq!(alpha.run_next().await, "waits");
    assert_eq!(end(&again, waits).await, TurnState::Done);
    assert!(!beta.puppet.has_more().await);
}

#[tokio::test]
async fn a_user_moves_a_session_with_what_waits_in_it() {
    let kit = Kit::new().await;
    let (alpha, beta) = (Machine::new("alpha"), Machine::new("beta"));
    let (on_alpha, on_beta) = (alpha.start(&kit).await, beta.start(&kit).await);
    let session = open_session(&kit, &on_alpha).await;
    alpha.stop(&on_alpha).await;
    let first = on_beta.start_turn(session, prompt("first")).await.unwrap();
    let second = on_beta.start_turn(session, here("second")).await.unwrap();
    assert_eq!(second.session.record.home, Some(beta.home));
    assert_eq!(
        (beta.run_next().await, beta.run_next().await),
        ("first".to_owned(), "second".to_owned())
    );
    for turn in [first.turn.id, second.turn.id] {
        assert_eq!(end(&on_beta, turn).await, TurnState::Done);
    }
    // Now it is the other one that sends from afar, and takes it back without a prompt.
    beta.stop(&on_beta).await;
    let on_alpha = alpha.start(&kit).await;
    let third = on_alpha.start_turn(session, prompt("third")).await.unwrap();
    assert_eq!(awaited(&on_alpha, session, Presence::Gone).await, beta.home);
    let elsewhere = kit.workspace.with_extension("elsewhere");
    std::fs::rename(&kit.workspace, &elsewhere).unwrap();
    for refused in [
        on_alpha.move_here(session, "ann".into()).await.map(drop),
        on_alpha.start_turn(session, here("fourth")).await.map(drop),
    ] {
        assert!(
            matches!(&refused, Err(SessionError::Directory { why }) if why.contains("on this machine")),
            "{refused:?}"
        );
    }
    std::fs::rename(&elsewhere, &kit.workspace).unwrap();
    let moved = on_alpha.move_here(session, "ann".into()).await.unwrap();
    assert_eq!(moved.record.home, Some(alpha.home));
    assert_eq!(alpha.run_next().await, "third");
    assert_eq!(end(&on_alpha, third.turn.id).await, TurnState::Done);
    // A second time it is here already.
    let again = on_alpha.move_here(session, "ann".into()).await.unwrap();
    assert_eq!(again.record.home, Some(alpha.home));
}

/// A turn that runs is not disturbed when its session moves; what waits behind it begins on the new machine.
#[tokio::test]
async fn what_waits_behind_a_turn_that_runs_begins_on_the_new_machine() {
    let kit = Kit::new().await;
    let (alpha, beta) = (Machine::new("alpha"), Machine::new("beta"));
    let (on_alpha, on_beta) = (alpha.start(&kit).await, beta.start(&kit).await);
    let session = open_session(&kit, &on_alpha).await;
    let first = on_alpha.start_turn(session, prompt("first")).await.unwrap();
    let running = alpha.puppet.next().await;
    let second = on_beta.start_turn(session, here("second")).await.unwrap();
    running.end(AgentEnd::Done);
    assert_eq!(beta.run_next().await, "second");
    for turn in [first.turn.id, second.turn.id] {
        assert_eq!(end(&on_beta, turn).await, TurnState::Done);
    }
    assert!(!alpha.puppet.has_more().await);
}

/// Prompts that are held back after a crash wait for the next one, also if another machine sends it.
#[tokio::test]
async fn prompts_that_are_held_back_go_on_with_the_next_one_from_anywhere() {
    let kit = Kit::new().await;
    let (mut alpha, beta) = (Machine::new("alpha"), Machine::new("beta"));
    alpha.settings.after_crash = AfterCrash::Wait;
    let (on_alpha, on_beta) = (alpha.start(&kit).await, beta.start(&kit).await);
    let session = open_session(&kit, &on_alpha).await;
    alpha.stop(&on_alpha).await;
    on_beta.start_turn(session, prompt("held")).await.unwrap();
    let _on_alpha = alpha.start(&kit).await;
    // Sessions move, and it still waits.
    let other = open_session(&kit, &on_beta).await;
    on_beta.start_turn(other, prompt("elsewhere")).await.unwrap();
    assert_eq!(beta.run_next().await, "elsewhere");
    assert!(!alpha.puppet.has_more().await);
    on_beta.start_turn(session, prompt("next")).await.unwrap();
    assert_eq!(
        (alpha.run_next().await, alpha.run_next().await),
        ("held".to_owned(), "next".to_owned())
    );
}
