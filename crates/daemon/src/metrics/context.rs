//! Metrics of context: counts questions, and reads the state of indexes for each scrape.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use context::{Answer, IndexInfo, IndexState, StrategyOutcome};
use kernel::Clock;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::Buckets;

/// The questions and their outcomes. Clones share the metrics.
#[derive(Clone, Debug)]
pub(crate) struct ContextMetrics {
    questions: Family<QuestionLabels, Counter>,
    durations: Family<QuestionLabels, Histogram, Buckets>,
    strategies: Family<StrategyLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuestionLabels {
    outcome: &'static str,
}

/// The labels of a strategy. Names are built in or configured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StrategyLabels {
    strategy: String,
    outcome: &'static str,
}

impl Default for ContextMetrics {
    fn default() -> Self {
        Self {
            questions: Family::default(),
            durations: Family::new_with_constructor(Buckets),
            strategies: Family::default(),
        }
    }
}

impl ContextMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "context_questions",
            "Questions about code, by outcome",
            Family::clone(&self.questions),
        );
        registry.register_with_unit(
            "context_question_duration",
            "The time from a question about code to its end",
            Unit::Seconds,
            Family::clone(&self.durations),
        );
        registry.register(
            "context_strategies",
            "Strategies of answered questions, by outcome",
            Family::clone(&self.strategies),
        );
    }

    /// Starts counting a question. Unless another outcome is recorded, it counts as cancelled.
    pub(crate) fn begins(&self, clock: &Arc<dyn Clock>) -> Counted {
        Counted {
            metrics: self.clone(),
            clock: Arc::clone(clock),
            began: clock.now(),
            outcome: "cancelled",
        }
    }

    fn ended(&self, outcome: &'static str, took: Duration) {
        let labels = QuestionLabels { outcome };
        self.questions.get_or_create(&labels).inc();
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

/// A question that is counted when this is dropped, including when the caller disconnects.
#[derive(Debug)]
pub(crate) struct Counted {
    metrics: ContextMetrics,
    clock: Arc<dyn Clock>,
    began: Instant,
    outcome: &'static str,
}

impl Counted {
    pub(crate) fn is_answered(&mut self, answer: &Answer) {
        self.outcome = "answered";
        for report in &answer.strategies {
            let labels = StrategyLabels {
                strategy: report.strategy.to_string(),
                outcome: name_of(&report.outcome),
            };
            self.metrics.strategies.get_or_create(&labels).inc();
        }
    }

    pub(crate) fn is_refused(&mut self) {
        self.outcome = "refused";
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let took = self.clock.now().saturating_duration_since(self.began);
        self.metrics.ended(self.outcome, took);
    }
}

fn name_of(outcome: &StrategyOutcome) -> &'static str {
    match outcome {
        StrategyOutcome::Ran { .. } => "ran",
        StrategyOutcome::NotApplicable { .. } => "not_applicable",
        StrategyOutcome::TimedOut { .. } => "timed_out",
        StrategyOutcome::OutOfTime => "out_of_time",
        StrategyOutcome::Open { .. } => "open",
        StrategyOutcome::Failed { .. } => "failed",
        StrategyOutcome::LeftOut => "left_out",
    }
}

pub(super) fn encode(indexes: &[IndexInfo], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Indexes of trees that are open, by state";
    let mut states = encoder.encode_descriptor("context_indexes", help, None, MetricType::Gauge)?;
    let count = |is: fn(&IndexState) -> bool| indexes.iter().filter(|index| is(&index.state)).count() as u64;
    for (state, count) in [
        (
            "building",
            count(|state| matches!(state, IndexState::Building { .. })),
        ),
        ("ready", count(|state| *state == IndexState::Ready)),
        (
            "failed",
            count(|state| matches!(state, IndexState::Failed { .. })),
        ),
    ] {
        ConstGauge::new(count).encode(states.encode_family(&[("state", state)])?)?;
    }
    let files: u64 = indexes.iter().map(|index| index.files as u64).sum();
    let help = "Indexed files";
    let number = encoder.encode_descriptor("context_index_files", help, None, MetricType::Gauge)?;
    ConstGauge::new(files).encode(number)?;
    let unit = Unit::Bytes;
    for (name, help, bytes) in [
        (
            "context_index_size",
            "Size of the indexes on disk",
            indexes.iter().map(|index| index.index_bytes).sum::<u64>(),
        ),
        (
            "context_index_source",
            "Size of the indexed files",
            indexes.iter().map(|index| index.source_bytes).sum(),
        ),
    ] {
        let size = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        ConstGauge::new(bytes).encode(size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use context::{StrategyName, StrategyReport};
    use kernel::ManualClock;
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text;

    use super::*;

    #[derive(Debug)]
    struct Fixed(Vec<IndexInfo>);

    impl Collector for Fixed {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    #[test]
    fn each_number_is_the_one_that_its_name_says() {
        let index = |state| IndexInfo {
            root: "/r".into(),
            state,
            files: 3,
            source_bytes: 5,
            index_bytes: 7,
            used: SystemTime::UNIX_EPOCH,
        };
        let indexes = vec![index(IndexState::Ready), index(IndexState::Building { files: 1 })];
        let mut registry = Registry::with_prefix("tidelock");
        let metrics = ContextMetrics::default();
        metrics.register(&mut registry);
        registry.register_collector(Box::new(Fixed(indexes)));
        let manual = ManualClock::new();
        let clock: Arc<dyn Clock> = Arc::clone(&manual) as Arc<dyn Clock>;
        let mut answered = metrics.begins(&clock);
        manual.advance(Duration::from_secs(2));
        answered.is_answered(&Answer {
            fragments: Vec::new(),
            text: String::new(),
            tokens: 0,
            budget_tokens: 0,
            strategies: vec![StrategyReport {
                strategy: StrategyName::new("recent"),
                outcome: StrategyOutcome::OutOfTime,
                took: Duration::ZERO,
            }],
            left_out: Vec::new(),
            left_out_total: 0,
            took: Duration::ZERO,
        });
        drop(answered);
        metrics.begins(&clock).is_refused();
        // The caller disconnected.
        drop(metrics.begins(&clock));
        let mut written = String::new();
        text::encode(&mut written, &registry).unwrap();
        let mut numbers: Vec<&str> = written
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains("_bucket"))
            .collect();
        // The labels of a family are unordered.
        numbers.sort_unstable();
        assert_eq!(
            numbers,
            [
                "tidelock_context_index_files 6",
                "tidelock_context_index_size_bytes 14",
                "tidelock_context_index_source_bytes 10",
                r#"tidelock_context_indexes{state="building"} 1"#,
                r#"tidelock_context_indexes{state="failed"} 0"#,
                r#"tidelock_context_indexes{state="ready"} 1"#,
                r#"tidelock_context_question_duration_seconds_count{outcome="answered"} 1"#,
                r#"tidelock_context_question_duration_seconds_count{outcome="cancelled"} 1"#,
                r#"tidelock_context_question_duration_seconds_count{outcome="refused"} 1"#,
                r#"tidelock_context_question_duration_seconds_sum{outcome="answered"} 2.0"#,
                r#"tidelock_context_question_duration_seconds_sum{outcome="cancelled"} 0.0"#,
                r#"tidelock_context_question_duration_seconds_sum{outcome="refused"} 0.0"#,
                r#"tidelock_context_questions_total{outcome="answered"} 1"#,
                r#"tidelock_context_questions_total{outcome="cancelled"} 1"#,
                r#"tidelock_context_questions_total{outcome="refused"} 1"#,
                r#"tidelock_context_strategies_total{strategy="recent",outcome="out_of_time"} 1"#,
            ]
        );
    }
}
