//! Tests of `lsp`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed step is a failed test"
)]

#[path = "../fixtures/mod.rs"]
mod fixtures;

mod client_flow;
mod client_requests;
mod documents;
mod documents_histories;
mod faults;
mod faults_life;
mod faults_server;
mod languages;
mod languages_answers;
mod languages_house;
mod languages_life;
mod queries;
mod queries_diagnostics;
mod queries_edits;
mod queries_readiness;
mod queries_shapes;
mod queries_watched;
mod real_servers;
mod servers_config;
mod servers_detect;
mod servers_fixtures;
mod servers_real;
mod servers_roots;
mod servers_selection;
mod servers_tree;
mod support;
mod text;
mod text_properties;
mod wire_frames;
mod wire_messages;
