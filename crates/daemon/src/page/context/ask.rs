//! The context page: ask a question about code, and see which strategies found what, how long it took, and why each
//! piece was chosen. A question is a URL, so it works without a script and can be bookmarked.

use std::sync::Arc;

use ::plans::PlanQuery;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Redirect;
use maud::{Markup, html};
use protocol::{ChangeContextIndex, ContextIndex, ContextIndexState, ContextQuestion, PlanState};
use serde::Deserialize;

use super::answer::{self, Around};
use super::indexes as context_indexes;
use super::question::{Asked, Choices, form};
use crate::app::App;
use crate::context::{acts, wire as context_wire};
use crate::http::{body, breakers, context as over_http};
use crate::page::login::Visitor;
use crate::page::parts::form::{Notice, OwnForm, done};
use crate::page::parts::layout::{Live, NavItem, Refresh, live_path, page_around};
use crate::page::parts::text::exact;
use crate::page::sessions::list::workspace_roots;
use crate::plans::wire as plan_wire;
use crate::times::now_ms;

/// How many plans the form offers. You can still ask about older ones from a terminal.
const CHOICE_OF_PLANS: u32 = 50;

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    pairs: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Markup {
    // A query string that can't be parsed asks nothing.
    let asked = Asked::read(pairs.map(|Query(pairs)| pairs).unwrap_or_default());
    let answered = match asked.question() {
        None => html! {},
        Some(Err(mistake)) => refused(mistake),
        Some(Ok(question)) => answer(&app, question).await,
    };
    // Read the choices after the answer, which may have started an index.
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
    let content = html! {
        (above)
        div data-live=(live_path("/context")) { (live.render(&app, &visitor)) }
    };
    page_around(&app, &visitor, NavItem::Context, &live.title, &content)
}

pub(crate) async fn show_live(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    live(&app, &visitor).render(&app, &visitor)
}

fn live(app: &App, visitor: &Visitor) -> Live {
    let indexes = indexes(app);
    let is_building = |index: &ContextIndex| index.state == ContextIndexState::Building;
    Live::new(
        "Context",
        Refresh::while_moving(indexes.iter().any(is_building)),
        context_indexes::table(&indexes, visitor, now_ms()),
    )
}

pub(crate) fn indexes(app: &App) -> Vec<ContextIndex> {
    let indexes = app.contexts.indexes();
    indexes.iter().map(context_wire::index_to_wire).collect()
}

async fn answer(app: &App, question: ContextQuestion) -> Markup {
    match acts::ask(app, question).await {
        Ok(answer) => {
            let around = Around {
                strategies: &strategies(app),
                breakers: &breakers::all(app).breakers,
            };
            answer::show(&answer, &around)
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

/// The form's choices. If the log can't be read, another page reports it, and the form offers less.
async fn choices(app: &App) -> Choices {
    let indexed = indexes(app).into_iter().map(|index| index.root);
    let mut directories: Vec<String> = workspace_roots(app).await.into_iter().chain(indexed).collect();
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    Rebuild,
    Remove,
}

/// The form behind the buttons of an index. It needs no generation: an index is a cache, and both are safe at any time.
#[derive(Debug, Deserialize)]
pub(crate) struct IndexForm {
    directory: String,
    change: Wanted,
}

pub(crate) async fn change_index(
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
        Ok(outcome) => Notice::good(html! { "The index of " code { (exact(&directory)) } " " (outcome) "." }),
        Err(problem) => Notice::warn(html! {
            "The index of " code { (exact(&directory)) } " could not be changed: " (problem.detail())
        }),
    };
    done(&app, &visitor, notice, "/context")
}
