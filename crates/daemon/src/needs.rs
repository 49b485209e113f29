//! What needs a person's attention. Read on request, and once for each page, because every page shows the count.
//!
//! Each read is bounded, and the log lists entries of one state at a cost proportional to the result. So the cost is
//! the same for ten sessions or ten thousand.

use ::jobs::ListQuery;
use ::plans::PlanQuery;
use ::sessions::SessionQuery;
use protocol::{
    AwaitedMachine, Breaker, BreakerState, CheckState, Job, JobState, Machine, NeedKind, NeedList, Plan,
    PlanOverlap, PlanState, Rescued, Server, ServerState, Session, SessionState, StuckLanding, TurnState,
    WaitingPermission, Workspace,
};

use crate::app::App;
use crate::durable::machine_to_wire;
use crate::http::breakers;
use crate::page::{counted_files, overlap_words};
use crate::plans::wire::{rescued_to_wire, workspace_to_wire};
use crate::times::parse;
use crate::{jobs, plans, sessions};

/// How many sessions with an open question to read. Each has an agent that is blocked.
const READ_ASKING: u32 = 50;
/// How many idle sessions to check for an interrupted turn, newest first.
const READ_RESTING: u32 = 50;
/// How many sessions with queued prompts to read, newest first.
const READ_WAITING: u32 = 50;
/// How many unfinished plans to read, newest first.
const READ_PLANS: u32 = 100;
/// How many failed jobs to read, newest first.
const READ_JOBS: u32 = 20;
/// How many pieces of rescued content to list, newest first. `tidelock workspace rescued` lists all.
const READ_RESCUED: usize = 50;
/// How long a failed job is listed.
const JOB_NEWS_MS: u64 = 60 * 60 * 1000;
/// The largest count that is shown.
const COUNTED: usize = 99;

/// The text for an interrupted turn.
pub(crate) const INTERRUPTED: &str = "its daemon ended during the turn; what was said so far is kept";
pub(crate) const REFUSED: &str = "calls to it are refused";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// An agent is blocked until a person answers.
    Permission(Box<Session>, WaitingPermission),
    Stuck(Box<Workspace>, StuckLanding),
    /// Content of the user is kept next to the workspace.
    Rescued(Box<Rescued>),
    /// A plan needs review, for this reason.
    Plan(Box<Plan>, PlanNeed),
    Overlap(Box<Plan>, PlanOverlap),
    Server(Box<Server>),
    /// Prompts wait for a machine that has no running daemon.
    Waiting(Box<Session>, AwaitedMachine),
    /// A turn was cut off when its daemon ended.
    Interrupted(Box<Session>),
    /// A job failed recently.
    Job(Box<Job>),
    /// Something keeps failing and its calls are paused, or a user holds its breaker open.
    Breaker(Breaker),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanNeed {
    NotRecorded,
    NotCarried,
    Conflicted,
    CheckFailed,
    ChecksMissing,
    Review,
}

impl PlanNeed {
    fn kind(self) -> NeedKind {
        match self {
            Self::NotRecorded => NeedKind::NotRecorded,
            Self::NotCarried => NeedKind::NotCarried,
            Self::Conflicted => NeedKind::Conflict,
            Self::CheckFailed => NeedKind::CheckFailed,
            Self::ChecksMissing => NeedKind::ChecksMissing,
            Self::Review => NeedKind::Review,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NotRecorded => "changes by a command could not be recorded; they are still in the sandbox",
            Self::NotCarried => "something in its sandbox can't be applied, so it was left open",
            Self::Conflicted => "conflicts with other changes",
            Self::CheckFailed => "a check failed",
            Self::ChecksMissing => "its checks haven't run",
            Self::Review => "ready for review",
        }
    }
}

pub(crate) fn server_words(server: &Server) -> &str {
    server.last_error.as_deref().unwrap_or("it failed")
}

pub(crate) fn stuck_words(stuck: &StuckLanding) -> String {
    let what = stuck.what.as_deref().unwrap_or("apply or undo");
    format!("an {what} is stuck half-way: {}", stuck.why)
}

pub(crate) fn waiting_words(machine: &AwaitedMachine) -> String {
    let name = match machine.name == machine.home {
        true => machine.home.clone(),
        false => format!("{} ({})", machine.name, machine.home),
    };
    match machine.running {
        true => format!("waits for the daemon on {name}"),
        false => format!(
            "waits for the daemon on {name}, which isn't running. Start it, or run it on this machine"
        ),
    }
}

pub(crate) fn rescued_words(rescued: &Rescued) -> String {
    format!("{} of {}. {}", rescued.kind, rescued.root, rescued.why)
}

impl Need {
    /// The machine that it is on. Language servers, workspaces and rescued content are listed only on their own
    /// machine.
    fn machine(&self, here: Option<&Machine>) -> Option<Machine> {
        match self {
            Self::Permission(session, _) | Self::Waiting(session, _) | Self::Interrupted(session) => {
                session.machine.clone()
            }
            Self::Plan(plan, _) | Self::Overlap(plan, _) => plan.machine.clone(),
            Self::Job(job) => job.machine.clone(),
            Self::Stuck(..) | Self::Rescued(_) | Self::Server(_) => here.cloned(),
            Self::Breaker(_) => None,
        }
    }

    fn to_wire(&self, here: Option<&Machine>) -> protocol::Need {
        let need = |kind, id: &str, title: &str, text: String| protocol::Need {
            kind,
            id: id.to_owned(),
            title: title.to_owned(),
            text,
            other: None,
            machine: self.machine(here),
        };
        match self {
            Self::Permission(session, question) => {
                let agent = &session.agent.name;
                let text = format!("{agent} wants to use {}: {}", question.tool, question.subject);
                protocol::Need {
                    other: Some(question.permission.clone()),
                    ..need(NeedKind::Permission, &session.id, &session.title, text)
                }
            }
            Self::Stuck(workspace, stuck) => {
                let text = stuck_words(stuck);
                need(NeedKind::Stuck, &workspace.id, &workspace.root, text)
            }
            Self::Rescued(rescued) => {
                let text = rescued_words(rescued);
                need(NeedKind::Rescued, &rescued.id, &rescued.path, text)
            }
            Self::Plan(plan, why) => {
                let text = format!("{} · {}", why.words(), counted_files(plan.summary.files));
                need(why.kind(), &plan.id, &plan.title, text)
            }
            Self::Overlap(plan, overlap) => {
                let other = match overlap.title.trim() {
                    "" => &overlap.plan,
                    title => title,
                };
                let text = format!("with {other}: {}", overlap_words(overlap));
                protocol::Need {
                    other: Some(overlap.plan.clone()),
                    ..need(NeedKind::Overlap, &plan.id, &plan.title, text)
                }
            }
            Self::Server(server) => {
                let text = server_words(server).to_owned();
                need(NeedKind::Server, &server.id, &server.server, text)
            }
            Self::Waiting(session, machine) => {
                let text = waiting_words(machine);
                need(NeedKind::Waiting, &session.id, &session.title, text)
            }
            Self::Interrupted(session) => need(
                NeedKind::Interrupted,
                &session.id,
                &session.title,
                INTERRUPTED.to_owned(),
            ),
            Self::Job(job) => {
                let text = job.text.as_ref().or(job.reason.as_ref());
                let text = text.map_or("it failed", String::as_str).to_owned();
                need(NeedKind::Job, &job.id, &job.title, text)
            }
            Self::Breaker(breaker) => need(NeedKind::Breaker, &breaker.id, "", REFUSED.to_owned()),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) list: Vec<Need>,
    pub(crate) here: Option<Machine>,
    /// Something couldn't be read, so there may be more.
    pub(crate) is_partial: bool,
}

impl Needs {
    pub(crate) fn to_wire(&self) -> NeedList {
        NeedList {
            needs: self
                .list
                .iter()
                .map(|need| need.to_wire(self.here.as_ref()))
                .collect(),
            is_partial: self.is_partial,
        }
    }

    /// The count for a title; empty if there is nothing.
    pub(crate) fn count(&self) -> String {
        match self.list.len() {
            0 => String::new(),
            few @ 1..=COUNTED => few.to_string(),
            _ => format!("{COUNTED}+"),
        }
    }
}

#[derive(Debug, Default)]
struct WaitingItems {
    asking: Vec<Session>,
    resting: Vec<Session>,
    waiting: Vec<Session>,
    stuck: Vec<Workspace>,
    rescued: Vec<Rescued>,
    plans: Vec<Plan>,
    servers: Vec<Server>,
    jobs: Vec<Job>,
    breakers: Vec<Breaker>,
}

/// Reads everything that needs attention.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn read(app: &App) -> Needs {
    let sessions_in = |state, limit| SessionQuery {
        state: Some(state),
        limit,
        ..SessionQuery::default()
    };
    let not_over = PlanQuery {
        states: vec![PlanState::Open, PlanState::Sealed],
        limit: READ_PLANS,
        ..PlanQuery::default()
    };
    let failed = ListQuery {
        state: Some(JobState::Failed),
        before: None,
        limit: READ_JOBS,
    };
    let (asking, resting, waiting, plans, jobs, workspaces, rescued) = tokio::join!(
        sessions::wire::list(
            &app.sessions,
            &app.durable.machines,
            sessions_in(SessionState::Asking, READ_ASKING)
        ),
        sessions::wire::list(
            &app.sessions,
            &app.durable.machines,
            sessions_in(SessionState::Idle, READ_RESTING)
        ),
        sessions::wire::list(
            &app.sessions,
            &app.durable.machines,
            sessions_in(SessionState::Waiting, READ_WAITING)
        ),
        plans::wire::list(&app.plans, &app.durable.machines, not_over),
        jobs::wire::list(&app.jobs, &app.durable.machines, failed),
        app.plans.workspaces(),
        app.plans.rescued(),
    );
    let is_partial = asking.is_err()
        || resting.is_err()
        || waiting.is_err()
        || plans.is_err()
        || jobs.is_err()
        || workspaces.is_err()
        || rescued.is_err();
    let stuck = workspaces.unwrap_or_default();
    let rescued = rescued.unwrap_or_default().rescued;
    let found = WaitingItems {
        asking: asking.map(|list| list.sessions).unwrap_or_default(),
        resting: resting.map(|list| list.sessions).unwrap_or_default(),
        waiting: waiting.map(|list| list.sessions).unwrap_or_default(),
        stuck: stuck.iter().map(workspace_to_wire).collect(),
        rescued: rescued.iter().take(READ_RESCUED).map(rescued_to_wire).collect(),
        plans: plans.map(|list| list.plans).unwrap_or_default(),
        servers: app.language_servers.states(),
        jobs: jobs.map(|list| list.jobs).unwrap_or_default(),
        breakers: breakers::all(app).breakers,
    };
    Needs {
        list: needs_of(found, app.durable.log.now().0),
        here: Some(machine_to_wire(app.durable.machines.own())),
        is_partial,
    }
}

fn needs_of(found: WaitingItems, now_ms: u64) -> Vec<Need> {
    let mut needs = Vec::new();
    for session in found.asking {
        let asking = session.active.as_ref().map(|active| active.asking.clone());
        for question in asking.unwrap_or_default() {
            needs.push(Need::Permission(Box::new(session.clone()), question));
        }
    }
    needs.extend(found.stuck.into_iter().filter_map(|workspace| {
        let stuck = workspace.stuck.clone()?;
        Some(Need::Stuck(Box::new(workspace), stuck))
    }));
    needs.extend(
        found
            .rescued
            .into_iter()
            .map(|rescued| Need::Rescued(Box::new(rescued))),
    );
    let mut plans: Vec<(PlanNeed, &Plan)> = found
        .plans
        .iter()
        .filter_map(|plan| Some((plan_need(plan)?, plan)))
        .collect();
    // Blocked plans come before those that are ready. The sort is stable, so it's newest first otherwise.
    plans.sort_by_key(|(need, _)| matches!(need, PlanNeed::ChecksMissing | PlanNeed::Review));
    needs.extend(
        plans
            .into_iter()
            .map(|(need, plan)| Need::Plan(Box::new(plan.clone()), need)),
    );
    for plan in &found.plans {
        // Both plans name each other; list the pair once.
        let once = plan.overlaps.iter().filter(|overlap| plan.id < overlap.plan);
        needs.extend(once.map(|overlap| Need::Overlap(Box::new(plan.clone()), overlap.clone())));
    }
    let failed = |server: &Server| server.state == ServerState::Failed;
    needs.extend(
        found
            .servers
            .into_iter()
            .filter(failed)
            .map(|server| Need::Server(Box::new(server))),
    );
    needs.extend(found.waiting.into_iter().filter_map(|session| {
        let machine = session.waits_for.clone().filter(|machine| !machine.running)?;
        Some(Need::Waiting(Box::new(session), machine))
    }));
    let interrupted = |session: &Session| session.last_state == Some(TurnState::Interrupted);
    needs.extend(
        found
            .resting
            .into_iter()
            .filter(interrupted)
            .map(|session| Need::Interrupted(Box::new(session))),
    );
    let is_news = |job: &Job| {
        let ended = job.ended_at.as_deref().and_then(parse);
        ended.is_some_and(|ended| now_ms.saturating_sub(ended) <= JOB_NEWS_MS)
    };
    needs.extend(
        found
            .jobs
            .into_iter()
            .filter(is_news)
            .map(|job| Need::Job(Box::new(job))),
    );
    let open = |breaker: &Breaker| matches!(breaker.state, BreakerState::Open | BreakerState::ForcedOpen);
    needs.extend(found.breakers.into_iter().filter(open).map(Need::Breaker));
    needs
}

fn plan_need(plan: &Plan) -> Option<PlanNeed> {
    let has = |state| plan.checks.iter().any(|check| check.state == state);
    let is_idle = plan.running.is_empty();
    if plan.unrecorded.is_some() && is_idle {
        Some(PlanNeed::NotRecorded)
    } else if plan.refused.is_some() {
        Some(PlanNeed::Conflicted)
    } else if has(CheckState::Failed) {
        Some(PlanNeed::CheckFailed)
    } else if plan.state == PlanState::Open
        && plan.summary.files == 0
        && !plan.not_carried.is_empty()
        && is_idle
    {
        Some(PlanNeed::NotCarried)
    } else if plan.state != PlanState::Sealed || has(CheckState::Running) {
        None
    } else if has(CheckState::Missing) || has(CheckState::Outdated) {
        Some(PlanNeed::ChecksMissing)
    } else {
        Some(PlanNeed::Review)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::JobState;

    use super::*;
    use crate::page::examples::{NOW, check, job, overlap, plan, refused, server, session};

    pub(crate) fn breaker(id: &str, state: BreakerState) -> Breaker {
        Breaker {
            id: id.to_owned(),
            state,
            generation: 1,
            retry_after_ms: None,
            probing: false,
            consecutive_failures: 3,
            failures: 3,
            refused: 0,
            late_reports: 0,
            times_opened: 1,
        }
    }

    #[test]
    fn a_plan_is_named_with_the_reason() {
        use CheckState::{Failed, Missing, Outdated, Passed, Running};
        use PlanNeed::{CheckFailed, ChecksMissing, Conflicted, Review};
        use PlanState::{Open, Sealed};
        for (state, checks, is_refused, expected) in [
            (Open, &[][..], false, None),
            (Open, &[Missing], false, None),
            (Open, &[Failed], false, Some(CheckFailed)),
            (Open, &[], true, Some(Conflicted)),
            (Sealed, &[], false, Some(Review)),
            (Sealed, &[Passed], false, Some(Review)),
            (Sealed, &[Passed, Missing], false, Some(ChecksMissing)),
            (Sealed, &[Outdated], false, Some(ChecksMissing)),
            (Sealed, &[Running], false, None),
            (Sealed, &[Running, Missing], false, None),
            (Sealed, &[Failed], true, Some(Conflicted)),
        ] {
            let plan = Plan {
                checks: checks.iter().map(|state| check(*state)).collect(),
                refused: is_refused.then(|| refused("apply")),
                ..plan(state)
            };
            assert_eq!(plan_need(&plan), expected, "{state:?} {checks:?}");
        }
    }

    #[test]
    fn a_plan_that_was_left_open_for_its_sandbox_is_named() {
        let mut left = plan(PlanState::Open);
        left.summary.files = 0;
        assert_eq!(plan_need(&left), None);
        left.not_carried = vec!["1 commit made in the sandbox is not carried".to_owned()];
        assert_eq!(plan_need(&left), Some(PlanNeed::NotCarried));
        left.unrecorded = Some(protocol::PlanUnrecorded {
            command: "make".to_owned(),
            job: None,
            why: "the disk is full".to_owned(),
        });
        assert_eq!(plan_need(&left), Some(PlanNeed::NotRecorded));
        left.running = vec![protocol::PlanCommand {
            job: "job_1".to_owned(),
            actor: "user".to_owned(),
            since: NOW.to_owned(),
        }];
        assert_eq!(plan_need(&left), None, "something is still done about it");
    }

    pub(crate) fn stuck_workspace(root: &str) -> Workspace {
        Workspace {
            id: "workspace_1".to_owned(),
            state: protocol::WorkspaceState::Present,
            root: root.to_owned(),
            git: true,
            checks: Vec::new(),
            registered_at: NOW.to_owned(),
            open_plans: 1,
            stuck: Some(StuckLanding {
                what: Some("apply".to_owned()),
                plans: vec!["plan_1".to_owned()],
                since: None,
                why: "permission denied: `a`".to_owned(),
            }),
            notice: None,
        }
    }

    pub(crate) fn rescued(path: &str) -> Rescued {
        Rescued {
            id: "rescued_1".to_owned(),
            workspace: "workspace_1".to_owned(),
            root: "/w".to_owned(),
            path: path.to_owned(),
            kind: "file".to_owned(),
            bytes: Some(3),
            what: "apply".to_owned(),
            plans: Vec::new(),
            since: NOW.to_owned(),
            why: "Written while the path was being changed.".to_owned(),
            kept_at: "/home/kept/rescued_1/content".to_owned(),
        }
    }

    #[test]
    fn what_is_most_urgent_comes_first_and_the_rest_is_left_out() {
        let named = |id: &str, plan: Plan| Plan {
            id: id.to_owned(),
            ..plan
        };
        let sealed = named("plan_9", plan(PlanState::Sealed));
        let conflicted = Plan {
            refused: Some(refused("apply")),
            ..named("plan_8", plan(PlanState::Open))
        };
        let overlapping = |id: &str, other: &str| Plan {
            overlaps: vec![PlanOverlap {
                plan: other.to_owned(),
                ..overlap(2, 1)
            }],
            ..named(id, plan(PlanState::Open))
        };
        let (first, second) = (overlapping("plan_1", "plan_2"), overlapping("plan_2", "plan_1"));
        let broken = Server {
            state: ServerState::Failed,
            ..server("ruff")
        };
        let interrupted = Session {
            last_state: Some(TurnState::Interrupted),
            ..session(SessionState::Idle)
        };
        let waits_for = |running| Session {
            waits_for: Some(AwaitedMachine {
                home: "home_1".to_owned(),
                name: "buildbox".to_owned(),
                running,
            }),
            ..session(SessionState::Waiting)
        };
        let stranded = waits_for(false);
        let failed_at = |ended_at: &str| Job {
            ended_at: Some(ended_at.to_owned()),
            ..job(JobState::Failed)
        };
        let (recent, old) = (
            failed_at("2026-01-31T09:00:00.000Z"),
            failed_at("2026-01-31T08:00:00.000Z"),
        );
        let asking = session(SessionState::Asking);
        let question = asking.active.as_ref().unwrap().asking[0].clone();
        let workspace = stuck_workspace("/w");
        let found = WaitingItems {
            stuck: vec![
                workspace.clone(),
                Workspace {
                    stuck: None,
                    ..workspace.clone()
                },
            ],
            rescued: vec![rescued("a")],
            asking: vec![asking.clone()],
            resting: vec![session(SessionState::Idle), interrupted.clone()],
            waiting: vec![stranded.clone(), waits_for(true), session(SessionState::Waiting)],
            plans: vec![sealed.clone(), conflicted.clone(), second, first.clone()],
            servers: vec![server("clangd"), broken.clone()],
            jobs: vec![recent.clone(), old],
            breakers: vec![
                breaker("a", BreakerState::Closed),
                breaker("b", BreakerState::Open),
                breaker("c", BreakerState::ForcedOpen),
                breaker("d", BreakerState::HalfOpen),
            ],
        };
        let expected = [
            Need::Permission(Box::new(asking), question),
            Need::Stuck(Box::new(workspace.clone()), workspace.stuck.unwrap()),
            Need::Rescued(Box::new(rescued("a"))),
            Need::Plan(Box::new(conflicted), PlanNeed::Conflicted),
            Need::Plan(Box::new(sealed), PlanNeed::Review),
            Need::Overlap(Box::new(first.clone()), first.overlaps[0].clone()),
            Need::Server(Box::new(broken)),
            Need::Waiting(Box::new(stranded.clone()), stranded.waits_for.clone().unwrap()),
            Need::Interrupted(Box::new(interrupted)),
            Need::Job(Box::new(recent)),
            Need::Breaker(breaker("b", BreakerState::Open)),
            Need::Breaker(breaker("c", BreakerState::ForcedOpen)),
        ];
        let list = needs_of(found, parse(NOW).unwrap());
        assert_eq!(list, expected);
        let told: Vec<(NeedKind, String)> = list
            .iter()
            .map(|need| need.to_wire(None))
            .map(|need| (need.kind, need.text))
            .collect();
        let expected = [
            (
                NeedKind::Permission,
                "rehearsal wants to use shell: rm -rf target",
            ),
            (
                NeedKind::Stuck,
                "an apply is stuck half-way: permission denied: `a`",
            ),
            (
                NeedKind::Rescued,
                "file of /w. Written while the path was being changed.",
            ),
            (NeedKind::Conflict, "conflicts with other changes · 2 files"),
            (NeedKind::Review, "ready for review · 2 files"),
            (
                NeedKind::Overlap,
                "with Other work: 2 files in common, 1 conflicts",
            ),
            (NeedKind::Server, "it failed"),
            (
                NeedKind::Waiting,
                "waits for the daemon on buildbox (home_1), which isn't running. Start it, or run it on this machine",
            ),
            (NeedKind::Interrupted, INTERRUPTED),
            (NeedKind::Job, "it failed"),
            (NeedKind::Breaker, REFUSED),
            (NeedKind::Breaker, REFUSED),
        ];
        assert_eq!(told, expected.map(|(kind, text)| (kind, text.to_owned())));
        assert_eq!(needs_of(WaitingItems::default(), 0), []);
    }

    #[test]
    fn a_title_has_room_for_two_digits() {
        for (count, expected) in [(0, ""), (1, "1"), (99, "99"), (100, "99+")] {
            let needs = Needs {
                here: None,
                list: vec![Need::Breaker(breaker("b", BreakerState::Open)); count],
                is_partial: false,
            };
            assert_eq!(needs.count(), expected);
        }
    }
}
