//! The part of the front page about what is running now: turns, commands in plans, jobs, connected clients, and servers
//! and indexes that are starting.

use ::jobs::ListQuery;
use ::plans::PlanQuery;
use ::sessions::SessionQuery;
use maud::{Markup, html};
use protocol::{
    Client, ContextIndex, ContextIndexState, Job, JobState, Plan, PlanCommand, PlanState, Server,
    ServerState, Session, SessionState,
};

use crate::app::App;
use crate::page::context::{ask as context, indexes as context_indexes};
use crate::page::jobs::state as job_state;
use crate::page::parts::ansi::one_line;
use crate::page::parts::list::elsewhere;
use crate::page::parts::text::{badge, counted, exact};
use crate::page::parts::times::ago;
use crate::page::plans::state as plan_state;
use crate::page::servers::{detail as server_log, state as server_state};
use crate::page::sessions::state as session_state;
use crate::times::now_ms;
use crate::{jobs, plans, sessions};

/// How many of each kind are read. A machine runs a few of each at once.
const READ_EACH: u32 = 50;
const SHOWN: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Running {
    sessions: Vec<Session>,
    plans: Vec<Plan>,
    jobs: Vec<Job>,
    servers: Vec<Server>,
    indexes: Vec<ContextIndex>,
    clients: Vec<Client>,
}

/// Reads what is running. If something can't be read, the card of needs reports it.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn read(app: &App) -> Running {
    let in_state = |state| SessionQuery {
        state: Some(state),
        limit: READ_EACH,
        ..SessionQuery::default()
    };
    let open = PlanQuery {
        states: vec![PlanState::Open],
        limit: READ_EACH,
        ..PlanQuery::default()
    };
    let now = ListQuery {
        state: Some(JobState::Running),
        before: None,
        limit: READ_EACH,
    };
    let machines = &app.durable.machines;
    let sessions_in = |state| sessions::wire::list(&app.sessions, machines, in_state(state));
    let (running, asking, stopping, plans, jobs) = tokio::join!(
        sessions_in(SessionState::Running),
        sessions_in(SessionState::Asking),
        sessions_in(SessionState::Stopping),
        plans::wire::list(&app.plans, machines, open),
        jobs::wire::list(&app.jobs, machines, now),
    );
    let sessions = [running, asking, stopping].into_iter().flatten();
    let mut plans = plans.map(|list| list.plans).unwrap_or_default();
    plans.retain(|plan| !plan.running.is_empty());
    let on_the_way = |server: &Server| server_state::is_moving(server) && server.state != ServerState::Failed;
    Running {
        sessions: sessions.flat_map(|list| list.sessions).collect(),
        plans,
        jobs: jobs.map(|list| list.jobs).unwrap_or_default(),
        servers: app
            .language_servers
            .states()
            .into_iter()
            .filter(on_the_way)
            .collect(),
        indexes: context::indexes(app)
            .into_iter()
            .filter(|index| index.state == ContextIndexState::Building)
            .collect(),
        clients: app.mcp.clients.list(),
    }
}

impl Running {
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_moving() && self.clients.is_empty()
    }

    /// Whether something counts up while people watch. A connected client may be idle for days.
    pub(crate) fn is_moving(&self) -> bool {
        !(self.sessions.is_empty()
            && self.plans.is_empty()
            && self.jobs.is_empty()
            && self.servers.is_empty()
            && self.indexes.is_empty())
    }

    /// A row for each, starting with what people started. A job that runs in a plan appears once, with its plan.
    fn rows(&self, now_ms: u64) -> Vec<Markup> {
        let in_plans: Vec<(&Plan, &PlanCommand)> = self
            .plans
            .iter()
            .flat_map(|plan| plan.running.iter().map(move |command| (plan, command)))
            .collect();
        let is_named = |job: &&Job| !in_plans.iter().any(|(_, command)| command.job == job.id);
        let sessions = self.sessions.iter().map(|session| turn(session, now_ms));
        let commands = in_plans
            .iter()
            .map(|(plan, command)| in_plan(plan, command, now_ms));
        let jobs = self.jobs.iter().filter(is_named).map(job);
        let clients = self.clients.iter().map(|client| connected(client, now_ms));
        let servers = self.servers.iter().map(server);
        let indexes = self.indexes.iter().map(index);
        sessions
            .chain(commands)
            .chain(jobs)
            .chain(servers)
            .chain(indexes)
            .chain(clients)
            .collect()
    }
}

/// The card. It is shown even if nothing is running.
pub(crate) fn card(running: &Running) -> Markup {
    let rows = running.rows(now_ms());
    html! {
        section class="card" aria-labelledby="running" {
            div class="card-heading" {
                h2 id="running" { "Running now" }
                @if !rows.is_empty() { span class="number" { (rows.len()) } }
            }
            @if rows.is_empty() {
                p class="quiet" { "Nothing is running." }
            } @else {
                ul class="rows" data-list="running" { @for row in rows.iter().take(SHOWN) { (row) } }
                @if rows.len() > SHOWN { p class="more" { "and " (rows.len() - SHOWN) " more" } }
            }
        }
    }
}

fn line(kind: &str, word: &Markup, what: &Markup, since: Option<String>) -> Markup {
    html! {
        li data-running=(kind) {
            div class="row-state" { (word) }
            div class="row-what" { (what) }
            @if let Some(since) = since { div class="row-time" { (since) } }
        }
    }
}

fn turn(session: &Session, now_ms: u64) -> Markup {
    let active = session.active.as_ref();
    let what = html! {
        a class="row-title" href=(session_state::path(&session.id)) data-key={ "runs " (session.id) } {
            (session_state::title(session))
        }
        small {
            "turn by " (one_line(&session.agent.name)) " in " code { (exact(&session.directory)) }
        }
        (elsewhere(session.machine.as_ref()))
    };
    let since = active.and_then(|active| ago(&active.started_at, now_ms));
    line("turn", &session_state::badge(session), &what, since)
}

fn in_plan(plan: &Plan, command: &PlanCommand, now_ms: u64) -> Markup {
    let what = html! {
        a class="row-title" href=(plan_state::path(&plan.id)) data-key={ "runs " (plan.id) " " (command.job) } {
            (plan_state::title(plan))
        }
        small {
            "command by " (one_line(&command.actor)) " in the plan"
            @if !command.job.is_empty() {
                ", " a href=(job_state::path(&command.job)) data-key={ "its " (command.job) } { "output" }
            }
        }
        (elsewhere(plan.machine.as_ref()))
    };
    line(
        "command",
        &plan_state::badge(plan),
        &what,
        ago(&command.since, now_ms),
    )
}

fn job(job: &Job) -> Markup {
    let what = html! {
        a class="row-title" href=(job_state::path(&job.id)) data-key={ "runs " (job.id) } { (job_state::title(job)) }
        (job_state::explanation(job))
        (elsewhere(job.machine.as_ref()))
    };
    line("job", &job_state::badge(job), &what, job_state::ran(job))
}

fn server(server: &Server) -> Markup {
    let what = html! {
        a class="row-title" href=(server_log::path(&server.id)) data-key={ "runs " (server.id) } { (server.server) }
        small { "language server for " code { (exact(&server.root)) } }
        (server_state::explanation(server))
    };
    line("server", &server_state::badge(server), &what, None)
}

fn index(index: &ContextIndex) -> Markup {
    let what = html! {
        a class="row-title" href="/context" data-key={ "runs " (index.root) } { "Index" }
        small { "of " code { (exact(&index.root)) } }
    };
    line("index", &context_indexes::badge(index.state), &what, None)
}

/// A client of the Model Context Protocol. Most of the time its agent is thinking.
fn connected(client: &Client, now_ms: u64) -> Markup {
    let word = badge(match client.in_flight {
        0 => ("badge good", "Connected"),
        _ => ("badge active busy", "Calling a tool"),
    });
    let what = html! {
        span class="row-title" { (one_line(&client.actor)) }
        small {
            (counted(client.calls, "call", "calls"))
            @if let Some(plan) = &client.plan {
                ", working in " a href=(plan_state::path(plan)) data-key={ "its " (plan) } { "a plan" }
            }
            @if let Some(directory) = &client.directory { " in " code { (exact(directory)) } }
        }
    };
    line("client", &word, &what, ago(&client.since, now_ms))
}

#[cfg(test)]
mod tests {
    use protocol::ClientTransport;

    use super::*;
    use crate::page::jobs::state::tests::job;
    use crate::page::parts::text::tests::{HOSTILE, assert_harmless, assert_parts};
    use crate::page::plans::state::tests::{command, plan};
    use crate::page::servers::list::tests::server;
    use crate::page::sessions::state::tests::session;

    fn everything(text: &str) -> Running {
        let mut talking = session(SessionState::Running);
        talking.title = text.to_owned();
        let worked_in = Plan {
            title: text.to_owned(),
            running: vec![command(text)],
            ..plan(PlanState::Open)
        };
        let named = |id: &str| Job {
            id: id.to_owned(),
            title: text.to_owned(),
            ..job(JobState::Running)
        };
        Running {
            sessions: vec![talking],
            plans: vec![worked_in],
            // The first one is the command in the plan.
            jobs: vec![named("job_1"), named("job_2")],
            servers: vec![Server {
                state: ServerState::Starting,
                ..server("ruff")
            }],
            indexes: Vec::new(),
            clients: vec![Client {
                actor: text.to_owned(),
                name: text.to_owned(),
                version: text.to_owned(),
                protocol: "2025-11-25".to_owned(),
                transport: ClientTransport::Stdio,
                directory: Some("/home/me".to_owned()),
                since: "2026-01-31T09:30:00.000Z".to_owned(),
                plan: Some("plan_1".to_owned()),
                calls: 7,
                in_flight: 0,
            }],
        }
    }

    #[test]
    fn each_thing_that_runs_is_there_once() {
        let page = card(&everything("Some work")).into_string();
        for (kind, count) in [
            ("turn", 1),
            ("command", 1),
            ("job", 1),
            ("server", 1),
            ("index", 0),
            ("client", 1),
        ] {
            let found = page.matches(&format!("data-running=\"{kind}\"")).count();
            assert_eq!(found, count, "{kind}: {page}");
        }
        assert_parts(
            &page,
            &["href=\"/jobs/job_2\"", "<span class=\"number\">5</span>"],
        );
    }

    #[test]
    fn nothing_is_said_too() {
        let page = card(&Running::default()).into_string();
        assert!(page.contains("Nothing is running."), "{page}");
        let connected = Running {
            clients: everything("a").clients,
            ..Running::default()
        };
        assert!(Running::default().is_empty() && everything("a").is_moving());
        assert!(!connected.is_moving() && !connected.is_empty());
    }

    #[test]
    fn what_others_say_is_shown_as_text() {
        assert_harmless(&card(&everything(HOSTILE)).into_string());
    }
}
