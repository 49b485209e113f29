//! The page for people: rendered here, readable without a script, changed by forms.
//!
//! Each page has a live part that can be fetched on its own; `web/app.js` swaps it. A form posts what its reader
//! saw, is answered with a redirect, and leaves a [`Notice`] for the page that follows.

mod ansi;
mod assets;
mod breakers;
mod configuration;
mod context;
mod context_answer;
mod context_form;
mod context_indexes;
mod error;
mod error_docs;
mod events;
mod form;
mod history;
mod job_detail;
mod job_output;
mod job_state;
mod job_time;
mod job_timeline;
mod jobs;
mod jobs_change;
mod lanes;
mod layout;
mod list_parts;
mod log_card;
mod needs_card;
mod notice;
mod overview;
mod plan_actions;
mod plan_change;
mod plan_changesets;
mod plan_conflicts;
mod plan_detail;
mod plan_diff;
mod plan_diff_rows;
mod plan_discard;
mod plan_files;
mod plan_lanes;
mod plan_notice;
mod plan_parts;
mod plan_state;
mod plan_text;
mod plan_timeline;
mod plans;
mod processes;
mod recovery;
mod running;
mod server_log;
mod server_state;
mod servers;
mod servers_change;
mod session_change;
mod session_detail;
mod session_plan;
mod session_state;
mod session_turn;
mod sessions;
mod sign_in;
mod workspaces;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use error::not_found;
pub(crate) use history::percent_encode;
pub(crate) use notice::Notice;
pub(crate) use plan_state::overlap_words;
pub(crate) use plan_text::counted_files;

use crate::app::App;

/// The paths of the page. Who may load which is decided by their arguments: a handler that wants a
/// [`sign_in::Visitor`] answers nobody else.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/live/overview", get(overview::show_live))
        .route("/sessions", get(sessions::show))
        .route("/live/sessions", get(sessions::show_live))
        .route("/sessions/start", post(session_change::start))
        .route("/sessions/change", post(session_change::change))
        .route("/sessions/{id}", get(session_detail::show))
        .route("/live/sessions/{id}", get(session_detail::show_live))
        .route(
            "/live/sessions/{id}/conversation",
            get(session_detail::show_conversation),
        )
        .route("/jobs", get(jobs::show))
        .route("/live/jobs", get(jobs::show_live))
        .route("/jobs/cancel", post(jobs_change::cancel))
        .route("/jobs/retry", post(jobs_change::retry))
        .route("/jobs/workers", post(jobs_change::set_workers))
        .route("/jobs/{id}", get(job_detail::show))
        .route("/live/jobs/{id}", get(job_detail::show_live))
        .route("/plans", get(plans::show))
        .route("/live/plans", get(plans::show_live))
        .route("/plans/change", post(plan_change::change))
        .route("/plans/{id}", get(plan_detail::show))
        .route("/live/plans/{id}", get(plan_detail::show_live))
        .route("/plans/{id}/discard", get(plan_discard::show))
        .route("/plans/{id}/forget", get(plan_discard::show_forget))
        .route("/context", get(context::show))
        .route("/live/context", get(context::show_live))
        .route("/context/indexes", post(context::change_index))
        .route("/workspaces", get(workspaces::show))
        .route("/live/workspaces", get(workspaces::show_live))
        .route("/workspaces/forget", post(workspaces::forget))
        .route("/recovery", get(recovery::show))
        .route("/live/recovery", get(recovery::show_live))
        .route("/recovery/restore", post(recovery::restore))
        .route("/recovery/drop", post(recovery::drop_it))
        .route("/recovery/repair", post(recovery::repair))
        .route("/servers", get(servers::show))
        .route("/live/servers", get(servers::show_live))
        .route("/servers/change", post(servers_change::change))
        .route("/servers/{id}", get(server_log::show))
        .route("/live/servers/{id}", get(server_log::show_live))
        .route("/processes", get(processes::show))
        .route("/live/processes", get(processes::show_live))
        .route("/breakers", get(breakers::show))
        .route("/breakers/history", get(history::show))
        .route("/live/breakers", get(breakers::show_live))
        .route("/breakers/reset", post(breakers::reset))
        .route("/breakers/reset-all", post(breakers::reset_all))
        .route("/breakers/force", post(breakers::force))
        .route("/configuration", get(configuration::show))
        .route("/events", get(events::show))
        .route("/live/events", get(events::show_live))
        .route("/open", get(sign_in::open))
        .route("/docs/errors", get(error_docs::show))
        .route("/assets/{file}", get(assets::show))
}

/// Things of each kind, for the tests of those who list them.
#[cfg(test)]
pub(crate) mod examples {
    pub(crate) use super::job_state::tests::{NOW, job};
    pub(crate) use super::plan_state::tests::{check, overlap, plan, refused};
    pub(crate) use super::servers::tests::server;
    pub(crate) use super::session_state::tests::session;
}
