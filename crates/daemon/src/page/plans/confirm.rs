//! A confirmation before something is lost.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use protocol::Plan;

use super::buttons::{Action, can_be_forgotten, forget_form, give_up_form, possible};
use super::detail::find;
use super::state::{extent, path, title};
use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::form::PathId;
use crate::page::parts::layout::{NavItem, still_page};

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Response, PageError> {
    let plan = find(&app, &id).await?.plan;
    let is_possible = possible(&plan).contains(&Action::Discard);
    let content = discard_content(&plan, &visitor);
    Ok(asked(
        &app,
        &visitor,
        &plan,
        is_possible,
        "Discard a plan",
        &content,
    ))
}

pub(crate) async fn show_forget(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Response, PageError> {
    let plan = find(&app, &id).await?.plan;
    let is_possible = can_be_forgotten(&plan);
    let content = forget_content(&plan, &visitor);
    Ok(asked(
        &app,
        &visitor,
        &plan,
        is_possible,
        "Forget a plan",
        &content,
    ))
}

/// A plan that has changed since doesn't need the question: its own page shows its state.
fn asked(
    app: &App,
    visitor: &Visitor,
    plan: &Plan,
    is_possible: bool,
    title: &str,
    content: &Markup,
) -> Response {
    match is_possible {
        true => still_page(app, visitor, NavItem::Plans, title, content).into_response(),
        false => Redirect::to(&path(&plan.id)).into_response(),
    }
}

fn discard_content(plan: &Plan, visitor: &Visitor) -> Markup {
    let loss = html! {
        p { "“" (title(plan)) "” has work that is not applied: " (extent(plan)) "." }
        p { "Its sandbox will be deleted too. The workspace stays as it is." }
    };
    question(plan, "Discard this plan?", &loss, &give_up_form(plan, visitor))
}

fn forget_content(plan: &Plan, visitor: &Visitor) -> Markup {
    let loss = html! {
        p { "Everything recorded about “" (title(plan)) "” will be permanently deleted: its changes and their contents." }
        p { "The workspace stays as it is, but you can't undo the plan afterwards." }
    };
    question(plan, "Forget this plan?", &loss, &forget_form(plan, visitor))
}

fn question(plan: &Plan, question: &str, loss: &Markup, form: &Markup) -> Markup {
    html! {
        div class="card narrow" {
            h1 { (question) }
            (loss)
            div class="actions" { (form) a class="button" href=(path(&plan.id)) { "Keep it" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_harmless, assert_parts};
    use crate::page::plans::state::tests::plan;

    #[test]
    fn it_says_what_would_be_lost() {
        let visitor = Visitor::example();
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            ..plan(PlanState::Sealed)
        };
        let page = discard_content(&hostile, &visitor).into_string();
        assert_harmless(&page);
        assert_parts(
            &page,
            &[
                "not applied: 2 files",
                "name=\"version\" value=\"7\"",
                "href=\"/plans/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">Keep it</a>",
            ],
        );
    }
}
