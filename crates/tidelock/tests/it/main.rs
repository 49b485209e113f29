//! The program as users meet it: the real binary, in a home of its own for every test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "all of this crate is a test, and a test ends where something unexpected happens"
)]

mod archives;
mod breaker;
mod browser;
mod crash;
mod crash_rounds;
mod follow;
mod forced;
mod harness;
mod help;
mod life;
mod played;
mod postgres;
mod refusals;
mod refusing;
mod repeats;
mod requests;
mod streams;
mod together;
mod tools;
mod versions;
