//! Sessions over HTTP: open, prompt, show, follow, answer, stop, fork and archive.

mod answer;
mod cancel;
mod change;
mod export;
mod history;
mod look;
mod open;
mod problems;
mod prompt;
mod queue;
mod stream;
mod turns;

use super::routes::routes;

routes! {
    "/v1/agents" => get look::agents;
    "/v1/sessions" => get look::list, post open::open;
    "/v1/sessions/events" => get look::follow;
    "/v1/sessions/{id}" => get look::show, delete change::remove;
    "/v1/sessions/{id}/events" => get history::history;
    "/v1/sessions/{id}/export" => get export::export;
    "/v1/sessions/{id}/turns" => get turns::list, post prompt::start;
    "/v1/sessions/{id}/turns/{turn}" => get turns::show;
    "/v1/sessions/{id}/turns/{turn}/events" => get turns::events;
    "/v1/sessions/{id}/turns/{turn}/transcript" => get turns::transcript;
    "/v1/sessions/{id}/queue" => get queue::list;
    "/v1/sessions/{id}/queue/{turn}" => put queue::edit, delete queue::remove;
    "/v1/sessions/{id}/cancel" => post cancel::cancel;
    "/v1/sessions/{id}/clear-stale-turn" => post cancel::clear_stale_turn;
    "/v1/sessions/{id}/permissions/{permission}" => post answer::answer;
    "/v1/sessions/{id}/fork" => post change::fork;
    "/v1/sessions/{id}/here" => post change::move_here;
    "/v1/sessions/{id}/rename" => post change::rename;
    "/v1/sessions/{id}/archive" => post change::archive;
    "/v1/sessions/{id}/agent" => put change::set_agent;
    describe(
        components(schemas(
            protocol::SessionMoment,
            protocol::TurnEnd,
            protocol::TurnEvent,
            protocol::TurnEventBody,
            protocol::TurnResync,
        )),
        tags((name = "sessions", description = "Conversations with agents, which can be left, found again and stopped.")),
    )
}
