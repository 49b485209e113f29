//! The page of context: ask a question about code, and see which strategies found what, how long it took, and why each piece
//! is there. A question is an address, so that it works without a script and can be kept.

use std::sync::Arc;
use std::time::Duration;

use ::plans::PlanQuery;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Redirect;
use maud::{Markup, html};
use protocol::{ChangeContextIndex, ContextIndex, ContextIndexState, ContextQuestion, PlanState};
use serde::Deserialize;

use super::context_answer::{self, Around};
use super::context_form::{Asked, Choices, form};
use super::context_indexes;
use super::form::OwnForm;
use super::layout::{Place, live_part, page_above_live};
use super::notice::Notice;
use super::plan_text::exact;
use super::sign_in::Visitor;
use crate::app::App;
use crate::context::wire as context_wire;
use crate::http::{body, breakers, context as over_http};
use crate::plans::wire as plan_wire;
use crate::times::now_ms;

/// While an index is made, people watch it.
const REFRESH_WHILE_BUILDING: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_secs(5);

/// How many plans can be chosen from. An older one can still be asked about from a terminal.
const CHOICE_OF_PLANS: u32 = 50;

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    pairs: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Markup {
    // An address that cannot be read asks nothing.
    let asked = Asked::read(pairs.map(|Query(pairs)| pairs).unwrap_or_default());
    let answered = match asked.question() {
        None => html! {},
        Some(Err(mistake)) => refused(mistake),
        Some(Ok(question)) => answer(&app, question).await,
    };
    // What can be chosen from is looked at after the answer, which may have begun an index.
    let choices = choices(&app).await;
    let above = html! {
        div class="heading" {
            div {
                h1 { "Context" }
                p {
                    "Find the code relevant to a question, within a token budget. Several strategies search in parallel; if one "
                    "hangs or fails, you still get an answer from the others."
                }
            }
        }
        (form(&asked, &choices))
        (answered)
    };
    let live = live(&app, &visitor);
    page_above_live(&app, &visitor, Place::Context, (&above, &live))
}

pub(super) async fn show_live(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    live(&app, &visitor)
}

fn live(app: &App, visitor: &Visitor) -> Markup {
    let indexes = indexes(app);
    let is_building = indexes
        .iter()
        .any(|index| index.state == ContextIndexState::Building);
    let refresh = if is_building {
        REFRESH_WHILE_BUILDING
    } else {
        REFRESH
    };
    live_part(
        app,
        visitor,
        refresh,
        &context_indexes::table(&indexes, visitor, now_ms()),
    )
}

/// All indexes, as they go over the wire.
pub(super) fn indexes(app: &App) -> Vec<ContextIndex> {
    let indexes = app.contexts.indexes();
    indexes.iter().map(context_wire::index_to_wire).collect()
}

async fn answer(app: &Arc<App>, question: ContextQuestion) -> Markup {
    let asking = over_http::ask(State(Arc::clone(app)), body::Json(question));
    match asking.await {
        Ok(Json(answer)) => {
            let around = Around {
                strategies: &strategies(app),
                breakers: &breakers::all(app).breakers,
            };
            context_answer::show(&answer, &around)
        }
        Err(problem) => refused(problem.detail()),
    }
}

fn refused(why: &str) -> Markup {
    html! { div class="notice warn" role="status" id="context-refused" { p { (exact(why)) } } }
}

fn strategies(app: &App) -> Vec<protocol::ContextStrategyInfo> {
    let strategies = app.contexts.strategies().into_iter();
    strategies.map(context_wire::strategy_info_to_wire).collect()
}

/// What can be chosen from. If the log cannot be read, another page says so, and there is less to choose from.
async fn choices(app: &App) -> Choices {
    let workspaces = app.plans.workspaces().await.unwrap_or_default();
    let workspaces = workspaces
        .iter()
        .map(|workspace| workspace.record.root.display().to_string());
    let indexed = indexes(app).into_iter().map(|index| index.root);
    let mut directories: Vec<String> = workspaces.chain(indexed).collect();
    directories.sort();
    directories.dedup();
    let query = PlanQuery {
        states: vec![PlanState::Open, PlanState::Sealed],
        limit: CHOICE_OF_PLANS,
        ..PlanQuery::default()
    };
    let plans = plan_wire::list(&app.plans, &app.durable.machines, query).await;
    Choices {
        directories,
        plans: plans.map(|list| list.plans).unwrap_or_default(),
        strategies: strategies(app),
    }
}

/// What is wanted of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    Rebuild,
    Remove,
}

/// The form behind the buttons of an index. It needs no generation: an index is a cache, and both may be done at any time.
#[derive(Debug, Deserialize)]
pub(super) struct IndexForm {
    directory: String,
    change: Wanted,
}

pub(super) async fn change_index(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<IndexForm>,
) -> Redirect {
    let IndexForm { directory, change } = fields;
    let wish = ChangeContextIndex {
        directory: directory.clone(),
    };
    let (state, wish) = (State(Arc::clone(&app)), body::Json(wish));
    let changed = match change {
        Wanted::Rebuild => over_http::rebuild(state, wish).await.map(|_| "is being rebuilt"),
        Wanted::Remove => over_http::remove(state, wish)
            .await
            .map(|Json(done)| match done.removed {
                true => "was removed",
                false => "did not exist",
            }),
    };
    let notice = match changed {
        Ok(outcome) => Notice::Index {
            root: directory,
            outcome,
        },
        Err(problem) => Notice::IndexRefused {
            root: directory,
            reason: problem.detail().to_owned(),
        },
    };
    tracing::info!(?notice, "a form of the page was handled");
    app.sessions.leave_notice(visitor.session.id, notice);
    Redirect::to("/context")
}
