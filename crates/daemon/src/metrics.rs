//! Metrics for monitoring, in the OpenMetrics text format, which Prometheus reads.
//!
//! Every label has few values: routes are templates, methods are the known ones, statuses are classes, and
//! breaker names are bounded by the breaker's own table.

mod context;
mod jobs;
mod languages;
mod mcp;
mod plans;
mod sessions;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::jobs::Jobs;
use ::plans::Plans;
use ::sessions::Sessions;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use kernel::{CircuitBreaker, Clock};
use process::Processes;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use protocol::{CodeAnswer, CodeVerb};

pub(crate) use context::ContextMetrics;

use crate::app::App;
use crate::context::ContextService;
use crate::durable::Health as LogHealth;
use crate::http::Problem;
use crate::http::breakers::to_wire;
use crate::language_servers::LanguageServers;
use crate::life::Life;

/// The media type of the response.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, Buckets>,
    queries: Family<QueryLabels, Histogram, Buckets>,
    in_flight: Gauge,
    pub(crate) plans: plans::PlanMetrics,
    pub(crate) mcp: mcp::McpMetrics,
}

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    method: &'static str,
    route: String,
    status: &'static str,
}

impl RequestLabels {
    pub(crate) fn new(method: &Method, route: String, status: StatusCode) -> Self {
        let method = match method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            "OPTIONS" => "OPTIONS",
            _ => "other",
        };
        let status = match status.as_u16() / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        Self {
            method,
            route,
            status,
        }
    }
}

/// The labels of a request's duration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

/// The labels of a question's duration. Server names come from the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueryLabels {
    query: String,
    server: String,
}

/// From 50 µs to 13 s, in steps of four: local requests are fast, and wide buckets are enough for slow ones.
#[derive(Clone, Debug)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(0.000_05, 4.0, 10))
    }
}

/// Counts a request as in flight until it is dropped.
pub(crate) struct InFlight {
    gauge: Gauge,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

impl Metrics {
    pub(crate) fn new(observed: Observed) -> Self {
        let mut registry = Registry::with_prefix("tidelock");
        let requests = Family::default();
        let durations = Family::new_with_constructor(Buckets);
        let in_flight = Gauge::default();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program that runs", build);
        registry.register(
            "http_requests",
            "Requests that were answered",
            Family::clone(&requests),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests that are being answered",
            Gauge::clone(&in_flight),
        );
        registry.register_with_unit(
            "http_request_duration",
            "The time from the head of a request to the head of its answer",
            Unit::Seconds,
            Family::clone(&durations),
        );
        let queries = Family::new_with_constructor(Buckets);
        registry.register_with_unit(
            "lsp_query_duration",
            "The time from a question about code to its answer",
            Unit::Seconds,
            Family::clone(&queries),
        );
        let plan_metrics = plans::PlanMetrics::register(&mut registry);
        let mcp_metrics = mcp::McpMetrics::register(&mut registry);
        let session_metrics = sessions::SessionMetrics::register(&mut registry);
        observed.sessions.observe(Arc::new(session_metrics));
        observed.contexts.metrics().register(&mut registry);
        registry.register_collector(Box::new(observed));
        Self {
            registry,
            requests,
            durations,
            queries,
            in_flight,
            plans: plan_metrics,
            mcp: mcp_metrics,
        }
    }

    pub(crate) fn query_answered(&self, verb: CodeVerb, answer: &CodeAnswer, elapsed: Duration) {
        let first = answer.answered_by().first();
        let labels = QueryLabels {
            query: verb.name().replace('-', "_"),
            server: first.map(|server| server.server.clone()).unwrap_or_default(),
        };
        self.queries.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    pub(crate) fn request_begins(&self) -> InFlight {
        self.in_flight.inc();
        InFlight {
            gauge: Gauge::clone(&self.in_flight),
        }
    }

    pub(crate) fn request_ended(&self, labels: RequestLabels, elapsed: Duration) {
        let route = RouteLabels {
            route: labels.route.clone(),
        };
        self.durations
            .get_or_create(&route)
            .observe(elapsed.as_secs_f64());
        self.requests.get_or_create(&labels).inc();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// What is read each time the metrics are requested.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) life: Life,
    pub(crate) breakers: CircuitBreaker,
    pub(crate) log: Arc<LogHealth>,
    pub(crate) found_crashed: u64,
    pub(crate) processes: Processes,
    pub(crate) language_servers: LanguageServers,
    pub(crate) jobs: Jobs,
    pub(crate) plans: Plans,
    pub(crate) sessions: Sessions,
    pub(crate) contexts: ContextService,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) started: Instant,
}

impl Collector for Observed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let uptime = self.clock.now().saturating_duration_since(self.started);
        let uptime = ConstGauge::new(uptime.as_secs_f64());
        let unit = Unit::Seconds;
        let help = "For how long the daemon has been running";
        uptime.encode(encoder.encode_descriptor("uptime", help, Some(&unit), MetricType::Gauge)?)?;

        let help = "Where the daemon is in its life; the current phase has the value 1";
        let mut phase = encoder.encode_descriptor("phase", help, None, MetricType::Gauge)?;
        let current = self.life.phase();
        ConstGauge::new(1_i64).encode(phase.encode_family(&[("phase", current.name())])?)?;

        self.encode_log(&mut encoder)?;
        self.encode_processes(&mut encoder)?;
        jobs::encode(&self.jobs.counts(), &mut encoder)?;
        plans::encode(&self.plans.counts(), &mut encoder)?;
        sessions::encode(&self.sessions.counts(), &mut encoder)?;
        context::encode(&self.contexts.indexes(), &mut encoder)?;
        languages::encode(&self.language_servers.views(), &mut encoder)?;
        self.encode_breakers(&mut encoder)
    }
}

impl Observed {
    /// The sizes are from the last measurement: measuring a large log takes a while, and a scrape shouldn't trigger it.
    fn encode_log(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Daemons of this home that crashed, found when this one started";
        let crashed = encoder.encode_descriptor("boots_found_crashed", help, None, MetricType::Gauge)?;
        ConstGauge::new(self.found_crashed).encode(crashed)?;

        let help = "Whether the log takes writes; the current state has the value 1";
        let mut states = encoder.encode_descriptor("log_state", help, None, MetricType::Gauge)?;
        let state = self.log.refusal().map_or("writable", |_| "refusing");
        ConstGauge::new(1_i64).encode(states.encode_family(&[("state", state)])?)?;

        let Some(sizes) = self.log.last_sizes() else {
            return Ok(());
        };
        let unit = Unit::Bytes;
        for (name, help, bytes) in [
            ("log_size", "The log as a whole", sizes.total_bytes),
            ("log_free", "What of the log is free for reuse", sizes.free_bytes),
            ("log_wal", "The write-ahead log", sizes.wal_bytes),
            ("log_blobs_size", "What the blobs take", sizes.blob_bytes),
        ] {
            let size = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
            ConstGauge::new(bytes).encode(size)?;
        }
        for (name, help, count) in [
            ("log_streams", "Streams in the log", sizes.streams),
            ("log_events", "Events in the log", sizes.events),
            ("log_blobs", "Blobs in the log", sizes.blobs),
        ] {
            let number = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(count).encode(number)?;
        }
        Ok(())
    }

    fn encode_processes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Processes that the daemon owns";
        let owned = encoder.encode_descriptor("processes_owned", help, None, MetricType::Gauge)?;
        ConstGauge::new(self.processes.count() as u64).encode(owned)?;

        let help = "Processes of an earlier daemon, by what was found when this one started";
        let mut found = encoder.encode_descriptor("processes_reclaimed", help, None, MetricType::Gauge)?;
        let reclaimed = self.processes.reclaimed();
        for (outcome, count) in [
            ("killed", reclaimed.killed),
            ("gone_already", reclaimed.gone_already),
            ("left", reclaimed.left),
        ] {
            ConstGauge::new(count).encode(found.encode_family(&[("outcome", outcome)])?)?;
        }
        Ok(())
    }

    fn encode_breakers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let snapshot = self.breakers.snapshot();
        let breakers: Vec<protocol::Breaker> = snapshot.circuits.iter().map(to_wire).collect();

        let help = "The state of each breaker; the current state has the value 1";
        let mut states = encoder.encode_descriptor("breaker_state", help, None, MetricType::Gauge)?;
        for breaker in &breakers {
            let labels = [
                ("name", breaker.id.as_str()),
                ("state", state_name(breaker.state)),
            ];
            ConstGauge::new(1_i64).encode(states.encode_family(&labels)?)?;
        }

        type Count = fn(&protocol::Breaker) -> u64;
        let counts: [(&str, &str, Count); 4] = [
            ("breaker_failures", "Failures that were counted", |breaker| {
                breaker.failures
            }),
            ("breaker_refused", "Calls that were turned away", |breaker| {
                breaker.refused
            }),
            (
                "breaker_late_reports",
                "Reports that came too late to count",
                |breaker| breaker.late_reports,
            ),
            ("breaker_opened", "How often the breaker has opened", |breaker| {
                breaker.times_opened
            }),
        ];
        for (name, help, count) in counts {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for breaker in &breakers {
                let labels = [("name", breaker.id.as_str())];
                ConstCounter::new(count(breaker)).encode(family.encode_family(&labels)?)?;
            }
        }

        let help = "Calls for names that there was no room to track";
        let untracked = encoder.encode_descriptor("breaker_untracked", help, None, MetricType::Counter)?;
        ConstCounter::new(snapshot.untracked).encode(untracked)
    }
}

pub(crate) fn state_name(state: protocol::BreakerState) -> &'static str {
    match state {
        protocol::BreakerState::Closed => "closed",
        protocol::BreakerState::Open => "open",
        protocol::BreakerState::HalfOpen => "half_open",
        protocol::BreakerState::ForcedOpen => "forced_open",
        protocol::BreakerState::ForcedClosed => "forced_closed",
    }
}

/// Returns the daemon's metrics, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "daemon",
    responses((status = 200, description = "The numbers.", content_type = "application/openmetrics-text")),
)]
pub(crate) async fn show(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let mut numbers = String::new();
    text::encode(&mut numbers, &app.metrics.registry).map_err(Problem::internal)?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], numbers).into_response())
}
