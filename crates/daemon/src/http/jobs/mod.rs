//! Jobs over HTTP: submit, show, follow, cancel, retry and forget.

mod change;
mod input;
mod logs;
mod look;
pub(crate) mod output;
pub(crate) mod problems;

use super::routes::routes;

routes! {
    "/v1/jobs" => get look::list, post change::submit;
    "/v1/jobs/events" => get look::follow;
    "/v1/jobs/gc" => post change::collect;
    "/v1/jobs/workers" => put change::set_workers;
    "/v1/jobs/{id}" => get look::show;
    "/v1/jobs/{id}/history" => get look::history;
    "/v1/jobs/{id}/logs" => get logs::logs;
    "/v1/jobs/{id}/output" => get logs::output;
    "/v1/jobs/{id}/input" => get input::connect;
    "/v1/jobs/{id}/cancel" => post change::cancel;
    "/v1/jobs/{id}/retry" => post change::retry;
    describe(
        components(schemas(protocol::JobOutput, protocol::JobProgress, protocol::JobWaiting)),
        tags((name = "jobs", description = "Commands that outlive the call that started them.")),
    )
}
