//! Resolves short ids such as `38ZJEM`, `last` and `@` to full ids.
//!
//! Jobs, plans and sessions are searched from the newest on, using the index of the log, up to [`MOST_PAGES`]. A full
//! id needs one read.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::{Path as FilePath, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use ::jobs::ListQuery;
use ::plans::{Plan, PlanError, PlanQuery};
use ::sessions::{Session, SessionError, SessionQuery};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use protocol::{ErrorCode, IdError, IdKind, IdMatches, PlanId, SessionId, SessionState, is_part_of_id};
use serde::Deserialize;

use super::log_problem::ReadLog;
use super::problem::Problem;
use super::query::Query;
use super::refusals::families;
use crate::app::App;
use crate::plans::wire::workspace_of;

families! {
    ResolveId = [PlanNotFound, SessionNotFound, RecordUnreadable, SandboxFailed, ShuttingDown] + ReadLog;
}

/// Stands for the newest job.
const LAST: &str = "last";
/// Stands for the newest plan or session of a directory.
const NEWEST: &str = "@";
/// How many entries to read at a time.
const PAGE: u32 = 500;
/// How many pages of the newest entries to search. Older entries need their full id.
const MOST_PAGES: usize = 20;
/// How many turns of a session to search.
const MOST_TURNS: usize = 5000;
/// How many ids the response lists.
const NAMED: usize = 5;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    kind: IdKind,
    of: Option<String>,
    directory: Option<PathBuf>,
    #[serde(default)]
    running: bool,
}

/// Resolves a text to the ids it matches.
///
/// The text is a complete id, or the beginning or end of one. Two names refer to the newest object: `last`
/// for the newest job, and `@` for the newest plan or session of `directory`.
#[utoipa::path(
    get, path = "/v1/ids/{text}", operation_id = "resolve_id", tag = "daemon",
    params(
        ("text" = String, Path, description = "The short id.", example = "38ZJEM"),
        ("kind" = IdKind, Query, description = "What it names."),
        ("of" = Option<String>, Query,
         description = "The plan of a changeset, or the session of a turn. Both need it."),
        ("directory" = Option<String>, Query, description = "The directory that `@` is about. It needs one."),
        ("running" = Option<bool>, Query, description = "With `@`, only sessions in which a turn runs."),
    ),
    responses((status = 200, description = "The ids; none if nothing is named so.", body = IdMatches), ResolveId),
)]
pub(crate) async fn resolve(
    State(app): State<Arc<App>>,
    text: Result<Path<String>, PathRejection>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<IdMatches>, Problem> {
    let Ok(Path(text)) = text else {
        return Err(Problem::new(ErrorCode::InvalidQuery, "The id is not UTF-8."));
    };
    let mut ids = match parameters.kind {
        IdKind::Job => jobs(&app, &text).await?,
        IdKind::Plan => match text.as_str() {
            NEWEST => newest_plan(&app, directory(&parameters)?).await?,
            part => plans(&app, part).await?,
        },
        IdKind::Changeset => changesets(&app, &text, of(&parameters)?).await?,
        IdKind::Session => match text.as_str() {
            NEWEST => newest_session(&app, directory(&parameters)?, parameters.running).await?,
            part => sessions(&app, part).await?,
        },
        IdKind::Turn => turns(&app, &text, of(&parameters)?).await?,
    };
    let total = ids.len() as u64;
    ids.truncate(NAMED);
    Ok(Json(IdMatches { ids, total }))
}

/// The plan or session that the id belongs to.
fn of<I: FromStr<Err = IdError>>(parameters: &Parameters) -> Result<I, Problem> {
    let text = parameters.of.as_deref().unwrap_or_default();
    text.parse()
        .map_err(|error: IdError| Problem::new(ErrorCode::InvalidQuery, format!("{error}.")).in_field("of"))
}

fn directory(parameters: &Parameters) -> Result<&FilePath, Problem> {
    let directory = parameters.directory.as_deref();
    directory.filter(|path| path.is_absolute()).ok_or_else(|| {
        let detail = "`@` needs the absolute path of a directory.";
        Problem::new(ErrorCode::InvalidQuery, detail).in_field("directory")
    })
}

/// Reads pages, newest entries first, and passes each entry to `take` until it has seen enough.
async fn look_through<T, I, F>(
    page_before: impl Fn(Option<I>) -> F,
    id_of: impl Fn(&T) -> I,
    mut take: impl FnMut(I, &T) -> ControlFlow<()>,
) -> Result<(), Problem>
where
    I: Copy,
    F: Future<Output = Result<Vec<T>, Problem>>,
{
    let mut before = None;
    for _ in 0..MOST_PAGES {
        let page = page_before(before).await?;
        for thing in &page {
            if take(id_of(thing), thing).is_break() {
                return Ok(());
            }
        }
        before = page.last().map(&id_of);
        if page.len() < PAGE as usize {
            break;
        }
    }
    Ok(())
}

/// All ids that contain a text.
async fn matches<T, I, F>(
    text: &str,
    page_before: impl Fn(Option<I>) -> F,
    id_of: impl Fn(&T) -> I,
) -> Result<Vec<String>, Problem>
where
    I: Copy + Display,
    F: Future<Output = Result<Vec<T>, Problem>>,
{
    let mut found = Vec::new();
    look_through(page_before, id_of, |id, _| {
        found.extend(matching(text, [id]));
        ControlFlow::Continue(())
    })
    .await?;
    Ok(found)
}

fn matching<I: Display>(text: &str, ids: impl IntoIterator<Item = I>) -> Vec<String> {
    let ids = ids.into_iter().map(|id| id.to_string());
    ids.filter(|id| is_part_of_id(text, id)).collect()
}

async fn jobs(app: &App, text: &str) -> Result<Vec<String>, Problem> {
    if let Ok(id) = text.parse() {
        let job = app.jobs.get(id).await.map_err(Problem::from)?;
        return Ok(job.iter().map(|job| job.id.to_string()).collect());
    }
    let page = |before, limit| {
        let query = ListQuery {
            state: None,
            before,
            limit,
        };
        async move { app.jobs.list(query).await.map_err(Problem::from) }
    };
    if text == LAST {
        let newest = page(None, 1).await?;
        return Ok(newest.iter().map(|job| job.id.to_string()).collect());
    }
    matches(text, |before| page(before, PAGE), |job| job.id).await
}

async fn plans(app: &App, text: &str) -> Result<Vec<String>, Problem> {
    if let Ok(id) = text.parse() {
        return match app.plans.get(id).await {
            Ok(plan) => Ok(vec![plan.id.to_string()]),
            Err(PlanError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        };
    }
    let page = |before| {
        let query = PlanQuery {
            before,
            limit: PAGE,
            ..PlanQuery::default()
        };
        plan_page(app, query)
    };
    matches(text, page, |plan| plan.id).await
}

async fn newest_plan(app: &App, directory: &FilePath) -> Result<Vec<String>, Problem> {
    let workspace = match workspace_of(&app.plans, directory).await {
        Ok(Some(workspace)) => workspace.id,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let query = PlanQuery {
        workspace: Some(workspace),
        limit: 1,
        ..PlanQuery::default()
    };
    let newest = plan_page(app, query).await?;
    Ok(newest.iter().map(|plan| plan.id.to_string()).collect())
}

async fn plan_page(app: &App, query: PlanQuery) -> Result<Vec<Plan>, Problem> {
    match app.plans.list(query).await {
        Ok(plans) => Ok(plans),
        Err(error) => Err(error.into()),
    }
}

async fn changesets(app: &App, text: &str, plan: PlanId) -> Result<Vec<String>, Problem> {
    match app.plans.changesets(plan).await {
        Ok(changesets) => Ok(matching(text, changesets.iter().map(|changeset| changeset.id))),
        Err(error) => Err(error.into()),
    }
}

async fn sessions(app: &App, text: &str) -> Result<Vec<String>, Problem> {
    if let Ok(id) = text.parse() {
        return match app.sessions.get(id).await {
            Ok(session) => Ok(vec![session.id.to_string()]),
            Err(SessionError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        };
    }
    let mut found = Vec::new();
    // Archived sessions are listed separately.
    for state in [None, Some(SessionState::Archived)] {
        let page = |before| session_page(app, state, before);
        found.extend(matches(text, page, |session| session.id).await?);
    }
    Ok(found)
}

async fn newest_session(app: &App, directory: &FilePath, running: bool) -> Result<Vec<String>, Problem> {
    let mut newest = Vec::new();
    let page = |before| session_page(app, None, before);
    look_through(
        page,
        |session| session.id,
        |id, session| {
            let is_here = directory.starts_with(&session.record.facts.directory);
            if is_here && (!running || session.record.active.is_some()) {
                newest.push(id.to_string());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        },
    )
    .await?;
    Ok(newest)
}

async fn session_page(
    app: &App,
    state: Option<SessionState>,
    before: Option<SessionId>,
) -> Result<Vec<Session>, Problem> {
    let query = SessionQuery {
        state,
        before,
        limit: PAGE,
        directory: None,
    };
    match app.sessions.list(query).await {
        Ok(sessions) => Ok(sessions),
        Err(error) => Err(error.into()),
    }
}

/// Queued turns, and those that have started.
async fn turns(app: &App, text: &str, session: SessionId) -> Result<Vec<String>, Problem> {
    let mut turns = app.sessions.queue(session).await?;
    turns.extend(app.sessions.turns(session, None, MOST_TURNS).await?);
    let mut found = matching(text, turns.iter().map(|turn| turn.id));
    // A turn that starts between the two reads is in both.
    found.sort();
    found.dedup();
    Ok(found)
}
