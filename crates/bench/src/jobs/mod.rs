//! Durable jobs: how many per second, how soon one starts, and what is left of a cancelled one.
//!
//! The service itself runs in this program, on its own log. Commands run on the shipped daemon. Peers are separate
//! programs: apalis is built from `crates/bench/peers`, and `npm` installs graphile-worker, both below the target
//! directory and only if `TIDELOCK_BENCH_PEERS` does not have them. `TIDELOCK_BENCH_POSTGRES_URL` names the Postgres
//! server.

pub(crate) mod backlog;
pub(crate) mod cancel;
mod commands;
mod handlers;
pub(crate) mod idle_cost;
mod load;
pub(crate) mod output;
mod peers;
mod pgbench;
pub(crate) mod postgres;
mod postgres_database;
pub(crate) mod sqlite;
pub(crate) mod start_latency;

pub(crate) use commands::CommandJobs;
pub(crate) use load::runtime;
pub(crate) use postgres_database::{Database, Server};
