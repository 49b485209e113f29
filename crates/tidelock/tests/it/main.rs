//! The program as users meet it: the real binary, in a home of its own for every test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "all of this crate is a test, and a test ends where something unexpected happens"
)]

mod archives;
mod breaker;
mod browser;
mod browser_servers;
mod context;
mod context_browser;
mod context_crash;
mod crash;
mod crash_rounds;
mod crash_rounds_lsp;
mod follow;
mod forced;
mod harness;
mod help;
mod job_arguments;
mod job_browser;
mod job_leave;
mod job_logs;
mod job_postgres;
mod job_rules;
mod job_run;
mod job_stage;
mod job_terminal;
mod job_trees;
mod job_words;
mod jobs_crash;
mod life;
mod lsp_arguments;
mod lsp_clients;
mod lsp_framing;
mod lsp_life;
mod lsp_metrics;
mod lsp_queries;
mod lsp_refusals;
mod lsp_stage;
mod lsp_starting;
mod lsp_words;
mod plan_agents;
mod plan_arguments;
mod plan_browser;
mod plan_escapes;
mod plan_escapes_api;
mod plan_exec;
mod plan_fire;
mod plan_git_inside;
mod plan_kill_commands;
mod plan_kill_random;
mod plan_kill_steps;
mod plan_life;
mod plan_stage;
mod plan_writers;
mod played;
mod postgres;
mod processes;
mod refusals;
mod refusing;
mod repeats;
mod requests;
mod session_browser;
mod session_fold;
mod session_leave;
mod session_reader;
mod session_run;
mod session_stage;
mod session_storm;
mod session_views;
mod streams;
mod together;
mod tools;
mod versions;
