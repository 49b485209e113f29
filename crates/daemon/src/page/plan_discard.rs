//! A second question, before something is lost.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use protocol::Plan;

use super::error::PageError;
use super::layout::{Place, still_page};
use super::plan_actions::{Action, can_be_forgotten, forget_form, give_up_form, possible};
use super::plan_detail::find;
use super::plan_state::{extent, path, title};
use super::sign_in::Visitor;
use crate::app::App;

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, PageError> {
    let plan = find(&app, id).await?.plan;
    if !possible(&plan).contains(&Action::Discard) {
        // It has moved on, and its page says how it is.
        return Ok(Redirect::to(&path(&plan.id)).into_response());
    }
    let content = content(&plan, &visitor);
    Ok(still_page(&app, &visitor, Place::Plans, "Discard a plan", &content).into_response())
}

pub(super) async fn show_forget(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, PageError> {
    let plan = find(&app, id).await?.plan;
    if !can_be_forgotten(&plan) {
        return Ok(Redirect::to(&path(&plan.id)).into_response());
    }
    let content = forget_content(&plan, &visitor);
    Ok(still_page(&app, &visitor, Place::Plans, "Forget a plan", &content).into_response())
}

fn forget_content(plan: &Plan, visitor: &Visitor) -> Markup {
    html! {
        div class="card narrow" {
            h1 { "Forget this plan?" }
            p { "Everything recorded about “" (title(plan)) "” will be permanently deleted: its changes and their contents." }
            p { "The workspace stays as it is, but you can't undo the plan afterwards." }
            div class="actions" {
                (forget_form(plan, visitor))
                a class="button" href=(path(&plan.id)) { "Keep it" }
            }
        }
    }
}

fn content(plan: &Plan, visitor: &Visitor) -> Markup {
    html! {
        div class="card narrow" {
            h1 { "Discard this plan?" }
            p { "“" (title(plan)) "” has work that is not applied: " (extent(plan)) "." }
            p { "Its sandbox will be deleted too. The workspace stays as it is." }
            div class="actions" {
                (give_up_form(plan, visitor))
                a class="button" href=(path(&plan.id)) { "Keep it" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::super::job_state::tests::{HOSTILE, assert_harmless};
    use super::super::plan_state::tests::plan;
    use super::*;
    use crate::app::tests::detached;

    #[tokio::test]
    async fn it_says_what_would_be_lost() {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            ..plan(PlanState::Sealed)
        };
        let page = content(&hostile, &visitor).into_string();
        assert_harmless(&page);
        for part in [
            "not applied: 2 files",
            "name=\"version\" value=\"7\"",
            "href=\"/plans/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">Keep it</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
