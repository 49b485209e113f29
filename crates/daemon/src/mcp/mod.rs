//! The Model Context Protocol: agents that people already use join in here.
//!
//! One [`Handler`] answers, on two ways: streamable HTTP at `/mcp`, and a stream of lines that `tidelock mcp` opens on the
//! socket. A tool reaches the product through the daemon's own routes ([`Inside`]), with the client's actor as the caller, or
//! calls what a route calls: so nothing is decided here that is not decided for everybody, and whatever a client of this
//! protocol can do, HTTP can.
//!
//! What is owned here: who is connected (`Clients`), and which plan each of them works in. Both are conveniences: a plan
//! is found again from the plans themselves, and a client that goes away leaves nothing that has to be cleaned up but its
//! open changeset, which is closed.
//!
//! **Boundary**: the protocol's library is known to this module and to nobody else.

mod actor;
mod ask;
mod bounds;
mod call;
mod clients;
mod current;
mod door;
mod error;
mod farewell;
mod handler;
mod http;
mod inside;
mod overview;
mod place;
mod resources;
mod seat;
mod service;
mod stream;
mod tools;
mod waiting;

pub(crate) use http::router;
pub(crate) use inside::Inside;
pub(crate) use service::Mcp;
