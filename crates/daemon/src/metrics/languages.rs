//! Metrics of language servers, read for each scrape.

use std::fmt;

use lsp::{ServerState, ServerView};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

type Count = fn(&ServerView) -> u64;

const GAUGES: [(&str, &str, Count); 7] = [
    (
        "lsp_clients",
        "Requests that are using the server right now",
        |view| view.status.leases as u64,
    ),
    (
        "lsp_pending_requests",
        "Requests that the server has not answered",
        |view| view.pending as u64,
    ),
    (
        "lsp_queue_depth",
        "Messages that the server has not read",
        |view| view.queued as u64,
    ),
    (
        "lsp_open_documents",
        "Documents that are open in the server",
        |view| view.documents.open as u64,
    ),
    ("lsp_memory_bytes", "Memory of the process tree", |view| {
        view.rss_bytes.unwrap_or_default()
    }),
    ("lsp_generation", "The newest process of the server", |view| {
        view.status.generation.get()
    }),
    ("lsp_ready", "Whether the server is up", |view| {
        u64::from(matches!(view.status.state, ServerState::Ready))
    }),
];

/// The counters, which only go up.
const COUNTERS: [(&str, &str, Count); 10] = [
    ("lsp_requests", "Requests that were sent to the server", |view| {
        view.counters.requests_sent
    }),
    ("lsp_answered", "Requests that the server has answered", |view| {
        view.counters.answered
    }),
    ("lsp_timed_out", "Requests that timed out", |view| {
        view.counters.timed_out
    }),
    ("lsp_cancelled", "Requests that were cancelled", |view| {
        view.counters.cancelled
    }),
    (
        "lsp_oversized",
        "Answers that were too large to be kept",
        |view| view.counters.oversized,
    ),
    ("lsp_restarts", "How often the server was restarted", |view| {
        view.status.restarts
    }),
    ("lsp_crashes", "How often a process crashed", |view| {
        view.status.crashes
    }),
    (
        "lsp_late_events",
        "Reports of processes that had been replaced",
        |view| view.status.late_events,
    ),
    ("lsp_received_bytes", "Bytes that the server has sent", |view| {
        view.counters.bytes_in
    }),
    ("lsp_sent_bytes", "Bytes that were sent to the server", |view| {
        view.counters.bytes_out
    }),
];

pub(super) fn encode(views: &[ServerView], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let roots: Vec<_> = views
        .iter()
        .map(|view| view.status.key.root.to_string_lossy())
        .collect();
    let labels = |position: usize| {
        let view: &ServerView = &views[position];
        [
            ("server", view.status.key.server.to_string()),
            ("root", roots[position].to_string()),
        ]
    };
    for (name, help, count) in GAUGES {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (position, view) in views.iter().enumerate() {
            ConstGauge::new(count(view)).encode(family.encode_family(&labels(position))?)?;
        }
    }
    for (name, help, count) in COUNTERS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (position, view) in views.iter().enumerate() {
            ConstCounter::new(count(view)).encode(family.encode_family(&labels(position))?)?;
        }
    }
    Ok(())
}
