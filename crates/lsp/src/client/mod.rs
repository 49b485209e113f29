//! A client of one language server: requests out, answers in, and everything that can go wrong in between.
//!
//! **Who owns the state:** [`Client`] handles and two tasks share one [`state::State`] behind one short lock. One
//! task reads and one writes; both end when the connection does, and the connection ends when the last handle is
//! dropped.
//!
//! Invariants:
//!
//! 1. Messages are queued in the call, in one step with the id of a request. So the order of calls is the order
//!    on the wire, whichever future is polled first, and ids grow on the wire.
//! 2. A request is in the table of pending requests from that step until it is answered, given up, or the client is
//!    closed; exactly one of the three removes it. If a request that the server may have seen is given up, the server
//!    is notified.
//! 3. Closing is final and happens once: the first reason counts, and all waiters get it.
//! 4. Everything that a server can make grow has a named limit, and so does everything that callers can pile up.
//! 5. The reader task never waits for the writer task.

mod call;
mod error;
mod handle;
mod outbox;
mod pending;
mod reader;
mod reply;
mod shared;
mod state;
mod writer;

pub use call::{Flush, Notice, Request};
pub use error::{Closed, ProtocolError, RequestError};
pub use handle::{Client, ClientSettings, Incoming};
pub use reply::Reply;
pub use state::Counters;
