//! Metrics of jobs, read for each scrape.

use std::fmt;

use jobs::Counts;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

type Count = fn(&Counts) -> u64;

const GAUGES: [(&str, &str, Count); 3] = [
    ("jobs_queued", "Jobs that wait", |counts| counts.queued),
    ("jobs_running", "Jobs that run here", |counts| counts.running),
    (
        "jobs_max_workers",
        "How many jobs may run here at once",
        |counts| counts.max_workers,
    ),
];

/// The counters, which only go up.
const COUNTERS: [(&str, &str, Count); 8] = [
    ("jobs_claimed", "Jobs that were claimed here", |counts| {
        counts.claimed
    }),
    (
        "jobs_lost_claims",
        "Claims that were refused because another worker was first",
        |counts| counts.lost_claims,
    ),
    ("jobs_succeeded", "Jobs that succeeded here", |counts| {
        counts.succeeded
    }),
    ("jobs_failed", "Jobs that failed here", |counts| counts.failed),
    ("jobs_cancelled", "Jobs that were cancelled here", |counts| {
        counts.cancelled
    }),
    (
        "jobs_retried",
        "Attempts that failed and were followed by another",
        |counts| counts.retried,
    ),
    (
        "jobs_interrupted",
        "Attempts that lost their worker, or were stopped with it",
        |counts| counts.interrupted,
    ),
    (
        "jobs_fenced",
        "Late writes of a worker that were refused",
        |counts| counts.fenced,
    ),
];

pub(super) fn encode(counts: &Counts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, count) in GAUGES {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(count(counts)).encode(metric)?;
    }
    for (name, help, count) in COUNTERS {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(count(counts)).encode(metric)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[derive(Debug)]
    struct Fixed(Counts);

    impl Collector for Fixed {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    #[test]
    fn each_number_is_the_one_that_its_name_says() {
        let counts = Counts {
            queued: 1,
            running: 2,
            max_workers: 3,
            foreground: 2,
            claimed: 4,
            lost_claims: 5,
            succeeded: 6,
            failed: 7,
            cancelled: 8,
            retried: 9,
            interrupted: 10,
            fenced: 11,
        };
        let mut registry = Registry::with_prefix("tidelock");
        registry.register_collector(Box::new(Fixed(counts)));
        let mut written = String::new();
        text::encode(&mut written, &registry).unwrap();
        let numbers: Vec<&str> = written.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            numbers,
            [
                "tidelock_jobs_queued 1",
                "tidelock_jobs_running 2",
                "tidelock_jobs_max_workers 3",
                "tidelock_jobs_claimed_total 4",
                "tidelock_jobs_lost_claims_total 5",
                "tidelock_jobs_succeeded_total 6",
                "tidelock_jobs_failed_total 7",
                "tidelock_jobs_cancelled_total 8",
                "tidelock_jobs_retried_total 9",
                "tidelock_jobs_interrupted_total 10",
                "tidelock_jobs_fenced_total 11",
            ]
        );
    }
}
