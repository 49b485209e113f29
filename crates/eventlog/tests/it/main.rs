//! One conformance suite, run on every engine.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod archive;
mod blobs;
mod commits;
mod drop_events;
mod engines;
mod leases;
mod model;
mod moves;
mod postgres;
mod postgres_database;
mod postgres_failover;
mod postgres_failures;
mod postgres_pooler;
mod postgres_proxy;
mod postgres_server;
mod postgres_tls;
mod removal;
mod retention;
mod sqlite_damage;
mod sqlite_files;
mod sqlite_pieces;
mod sqlite_power_cut;
mod support;
mod tails;
mod upkeep;
