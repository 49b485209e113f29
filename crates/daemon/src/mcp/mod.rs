//! The Model Context Protocol: agents that people already use join in here.
//!
//! One [`Handler`] answers, over two transports: streamable HTTP at `/mcp`, and a stream of lines that `tidelock mcp` opens on
//! the socket. A tool calls the same functions as the routes of HTTP (`plans::acts`, `jobs::acts`, …) with the client's actor
//! as the caller: so nothing is decided here that is not decided for everybody, and whatever a client of this protocol can do,
//! HTTP can. What tools take, how much they answer, and their hints are shared with the tools of sessions
//! (`sessions::tools`).
//!
//! What is owned here: who is connected (`Clients`), and which plan each of them works in. Both are conveniences: a plan
//! is found again from the plans themselves, and a client that goes away leaves nothing that has to be cleaned up but its
//! open changeset, which is closed.
//!
//! **Boundary**: the protocol's library is known to this module and to nobody else.

mod actor;
mod call;
mod clients;
mod connection;
mod consent;
mod error;
mod handler;
mod headers;
mod http;
mod overview;
mod resources;
mod service;
mod stream;
mod tools;
mod waiting;
mod working_plan;

pub(crate) use http::router;
pub(crate) use service::Mcp;
