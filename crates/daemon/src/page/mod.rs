//! The page for people: rendered on the server, readable without a script, changed by forms.
//!
//! A page reads through the same functions as the HTTP API and decides nothing itself. Most of it is a live part that
//! can be fetched on its own: `web/app.js` swaps it in. A form posts what its reader saw, calls one act, is answered
//! with a redirect, and leaves a [`Notice`] for the page that follows.
//!
//! In reading order: [`parts`] has the building blocks of pages (shell, lists, forms, text), [`login`] decides who may
//! see them, and [`overview`] is the first page. Then each subject has a folder: its list, one entry in detail, its
//! state in words, and its forms.

mod parts;

mod login;
mod overview;

mod jobs;
mod plans;
mod sessions;

mod context;
mod servers;
mod system;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use parts::error::not_found;
pub(crate) use parts::form::Notice;
pub(crate) use parts::text::counted_files;
pub(crate) use plans::state::overlap_words;

use crate::app::App;
use parts::layout::{NavItem, live_page};

/// The routes of the page. Their arguments decide who may load them: a handler that takes a [`login::Visitor`] rejects
/// everybody else.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .merge(live_page("/", NavItem::Overview, overview::show::read))
        .merge(live_page("/sessions", NavItem::Sessions, sessions::list::read))
        .route("/sessions/start", post(sessions::act::start))
        .route("/sessions/change", post(sessions::act::change))
        .route("/sessions/{id}", get(sessions::detail::show))
        .route("/live/sessions/{id}", get(sessions::detail::show_live))
        .route(
            "/live/sessions/{id}/conversation",
            get(sessions::detail::show_conversation),
        )
        .merge(live_page("/jobs", NavItem::Jobs, jobs::list::read))
        .route("/jobs/cancel", post(jobs::act::cancel))
        .route("/jobs/retry", post(jobs::act::retry))
        .route("/jobs/workers", post(jobs::act::set_workers))
        .route("/jobs/{id}", get(jobs::detail::show))
        .route("/live/jobs/{id}", get(jobs::detail::show_live))
        .merge(live_page("/plans", NavItem::Plans, plans::list::read))
        .route("/plans/change", post(plans::act::change))
        .route("/plans/{id}", get(plans::detail::show))
        .route("/live/plans/{id}", get(plans::detail::show_live))
        .route("/plans/{id}/discard", get(plans::confirm::show))
        .route("/plans/{id}/forget", get(plans::confirm::show_forget))
        .merge(live_page("/workspaces", NavItem::Plans, plans::workspaces::read))
        .route("/workspaces/forget", post(plans::workspaces::forget))
        .merge(live_page("/recovery", NavItem::Overview, plans::recovery::read))
        .route("/recovery/restore", post(plans::recovery::restore))
        .route("/recovery/drop", post(plans::recovery::drop_it))
        .route("/recovery/repair", post(plans::recovery::repair))
        .route("/context", get(context::ask::show))
        .route("/live/context", get(context::ask::show_live))
        .route("/context/indexes", post(context::ask::change_index))
        .merge(live_page("/servers", NavItem::Servers, servers::list::read))
        .merge(live_page(
            "/servers/{id}",
            NavItem::Servers,
            servers::detail::read,
        ))
        .route("/servers/change", post(servers::act::change))
        .merge(live_page(
            "/processes",
            NavItem::Processes,
            system::processes::read,
        ))
        .merge(live_page("/breakers", NavItem::Breakers, system::breakers::read))
        .route("/breakers/history", get(system::breaker_history::show))
        .route("/breakers/reset", post(system::breakers::reset))
        .route("/breakers/reset-all", post(system::breakers::reset_all))
        .route("/breakers/force", post(system::breakers::force))
        .merge(live_page("/events", NavItem::Events, system::events::read))
        .route("/configuration", get(system::configuration::show))
        .route("/open", get(login::open))
        .route("/docs/errors", get(system::error_docs::show))
        .route("/assets/{file}", get(parts::assets::show))
}

/// Sample items of each kind, for the tests of lists.
#[cfg(test)]
pub(crate) mod examples {
    pub(crate) use super::jobs::state::tests::job;
    pub(crate) use super::parts::text::tests::NOW;
    pub(crate) use super::plans::state::tests::{check, overlap, plan, refused};
    pub(crate) use super::servers::list::tests::server;
    pub(crate) use super::sessions::state::tests::session;
}
