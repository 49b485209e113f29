//! Plans over HTTP: open, work in, show, follow, check, apply, undo and discard.

mod change;
mod history;
mod look;
pub(in crate::http) mod problems;
mod show_diff;
mod work;

use super::routes::routes;

routes! {
    "/v1/plans" => get look::list, post change::open;
    "/v1/plans/strategies" => get look::strategies;
    "/v1/plans/events" => get look::follow;
    "/v1/plans/apply" => post change::apply;
    "/v1/plans/gc" => post change::collect;
    "/v1/plans/{id}" => get look::show;
    "/v1/plans/{id}/seal" => post change::seal;
    "/v1/plans/{id}/discard" => post change::discard;
    "/v1/plans/{id}/forget" => post change::forget;
    "/v1/plans/{id}/refresh" => post change::refresh;
    "/v1/plans/{id}/undo" => post change::undo;
    "/v1/plans/{id}/check" => post change::check;
    "/v1/plans/{id}/diff" => get show_diff::diff;
    "/v1/plans/{id}/file" => get look::file;
    "/v1/plans/{id}/changes" => post work::change_files;
    "/v1/plans/{id}/changesets" => get work::changesets, post work::start_changeset;
    "/v1/plans/{id}/changesets/{changeset}" => get work::changeset;
    "/v1/plans/{id}/changesets/{changeset}/close" => post work::close_changeset;
    "/v1/plans/{id}/history" => get history::history;
    "/v1/plans/{id}/events" => get history::follow;
    describe(
        components(schemas(protocol::PlanMoment)),
        tags(
            (name = "plans", description = "Isolated pieces of work on a workspace, applied whole or not at all."),
            (name = "workspaces", description = "Directories that plans are for."),
        ),
    )
}
