//! Metrics of plans: counts attempts, and reads the current state for each scrape.

use std::fmt;
use std::time::Duration;

use plans::Attempt;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use protocol::{OutcomeKind, PlanCounts};

use super::Buckets;

/// The attempts with plans, and how long they took.
#[derive(Clone, Debug)]
pub(crate) struct PlanMetrics {
    attempts: Family<AttemptLabels, Counter>,
    durations: Family<DurationLabels, Histogram, Buckets>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    what: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    what: &'static str,
}

impl PlanMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            attempts: Family::default(),
            durations: Family::new_with_constructor(Buckets),
        };
        registry.register(
            "plan_attempts",
            "Attempts to apply, undo or rebase plans, by outcome",
            Family::clone(&metrics.attempts),
        );
        registry.register_with_unit(
            "plan_attempt_duration",
            "How long they took",
            Unit::Seconds,
            Family::clone(&metrics.durations),
        );
        metrics
    }

    /// Counts an attempt; `None` if it was refused or failed. Dry runs don't count.
    pub(crate) fn attempted(&self, what: Attempt, kind: Option<OutcomeKind>, elapsed: Duration) {
        let outcome = match kind {
            Some(OutcomeKind::Done) => "done",
            Some(OutcomeKind::Conflicted) => "conflicted",
            Some(OutcomeKind::WouldBeDone) => return,
            None => "refused",
        };
        let what = what.as_str();
        self.attempts
            .get_or_create(&AttemptLabels { what, outcome })
            .inc();
        self.durations
            .get_or_create(&DurationLabels { what })
            .observe(elapsed.as_secs_f64());
    }
}

pub(super) fn encode(counts: &PlanCounts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Open and sealed plans, by state";
    let mut states = encoder.encode_descriptor("plans", help, None, MetricType::Gauge)?;
    for (state, count) in [("open", counts.open), ("sealed", counts.sealed)] {
        ConstGauge::new(count).encode(states.encode_family(&[("state", state)])?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text;

    use super::*;

    #[derive(Debug)]
    struct Fixed(PlanCounts);

    impl Collector for Fixed {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    #[test]
    fn each_number_is_the_one_that_its_name_says() {
        let counts = PlanCounts { open: 1, sealed: 2 };
        let mut registry = Registry::with_prefix("tidelock");
        let metrics = PlanMetrics::register(&mut registry);
        registry.register_collector(Box::new(Fixed(counts)));
        let second = Duration::from_secs(1);
        metrics.attempted(Attempt::Apply, Some(OutcomeKind::Conflicted), second);
        metrics.attempted(Attempt::Apply, Some(OutcomeKind::Conflicted), second);
        metrics.attempted(Attempt::Apply, Some(OutcomeKind::WouldBeDone), second);
        let mut written = String::new();
        text::encode(&mut written, &registry).unwrap();
        let numbers: Vec<&str> = written
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains("_bucket"))
            .collect();
        assert_eq!(
            numbers,
            [
                r#"tidelock_plan_attempts_total{what="apply",outcome="conflicted"} 2"#,
                r#"tidelock_plan_attempt_duration_seconds_sum{what="apply"} 2.0"#,
                r#"tidelock_plan_attempt_duration_seconds_count{what="apply"} 2"#,
                r#"tidelock_plans{state="open"} 1"#,
                r#"tidelock_plans{state="sealed"} 2"#,
            ]
        );
    }
}
