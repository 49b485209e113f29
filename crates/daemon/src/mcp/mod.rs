//! The Model Context Protocol: the entry point for agents that people already use.
//!
//! One [`Handler`] answers over two transports: streamable HTTP at `/mcp`, and a stream of lines that `tidelock mcp`
//! opens on the socket. A tool calls the same functions as the HTTP routes (`plans::acts`, `jobs::acts`, …), with the
//! client's actor as the caller. So the same rules apply as everywhere else, and HTTP can do whatever a client of this
//! protocol can. The tools of sessions (`sessions::tools`) share the parameters, size limits and hints.
//!
//! This module owns the list of connected clients (`Clients`), and which plan each of them works in. Both are
//! conveniences: a plan can be found again from the plans themselves, and a client that disconnects leaves nothing to
//! clean up but its open changeset, which is closed.
//!
//! **Boundary**: only this module knows the protocol's library.

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
