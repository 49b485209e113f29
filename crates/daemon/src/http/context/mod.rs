//! Context over HTTP: questions about code, and the indexes that speed them up.

mod ask;
mod indexes;
mod problems;

pub(crate) use indexes::{rebuild, remove};

use super::routes::routes;

routes! {
    "/v1/context" => post ask::ask;
    "/v1/context/strategies" => get indexes::strategies;
    "/v1/context/indexes" => get indexes::list;
    "/v1/context/indexes/rebuild" => post indexes::rebuild;
    "/v1/context/indexes/remove" => post indexes::remove;
    describe(
        tags((name = "context", description = "The pieces of a code base that belong to a question, within a budget.")),
    )
}
