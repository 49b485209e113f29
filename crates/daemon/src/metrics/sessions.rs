//! Metrics of sessions: counts what turns do, and reads the number of sessions for each scrape.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use protocol::{PermissionAnswer, SessionCounts, ToolState, TurnState};
use sessions::Observer;

/// The tools that are counted by name. Agents can give their own tools any name, so those count as `other`.
const TOOLS: [&str; 11] = [
    "read",
    "list",
    "search",
    "context",
    "write",
    "edit",
    "delete",
    "move",
    "shell",
    "language",
    "plan_diff",
];

#[derive(Clone, Debug)]
pub(crate) struct SessionMetrics {
    turns: Family<StateLabels, Counter>,
    /// From 10 ms to 44 min, in steps of four.
    durations: Histogram,
    events: Counter,
    tools: Family<ToolLabels, Counter>,
    questions: Counter,
    answers: Family<AnswerLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    answer: &'static str,
}

impl SessionMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            turns: Family::default(),
            durations: Histogram::new(exponential_buckets(0.01, 4.0, 10)),
            events: Counter::default(),
            tools: Family::default(),
            questions: Counter::default(),
            answers: Family::default(),
        };
        registry.register(
            "turns_ended",
            "Turns that ended here, by state",
            Family::clone(&metrics.turns),
        );
        registry.register_with_unit(
            "turn_duration",
            "The time from the beginning of a turn to its end",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register(
            "turn_events",
            "Events that agents have written to the streams of turns",
            Counter::clone(&metrics.events),
        );
        registry.register(
            "tool_calls",
            "Calls of tools that ended, by tool and state",
            Family::clone(&metrics.tools),
        );
        registry.register(
            "permission_questions",
            "Questions that users were asked",
            Counter::clone(&metrics.questions),
        );
        registry.register(
            "permission_answers",
            "Answers to them, including timeouts",
            Family::clone(&metrics.answers),
        );
        metrics
    }
}

impl Observer for SessionMetrics {
    fn wrote(&self, events: usize) {
        self.events.inc_by(events as u64);
    }

    fn tool_ended(&self, tool: &str, state: ToolState) {
        let known = TOOLS.iter().find(|known| **known == tool);
        let labels = ToolLabels {
            tool: known.copied().unwrap_or("other"),
            state: state.name(),
        };
        self.tools.get_or_create(&labels).inc();
    }

    fn asked(&self) {
        self.questions.inc();
    }

    fn answered(&self, answer: PermissionAnswer) {
        let answer = answer.name();
        self.answers.get_or_create(&AnswerLabels { answer }).inc();
    }

    fn turn_ended(&self, state: TurnState, elapsed: Duration) {
        let state = state.name();
        self.turns.get_or_create(&StateLabels { state }).inc();
        self.durations.observe(elapsed.as_secs_f64());
    }
}

pub(super) fn encode(counts: &SessionCounts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, count) in [
        ("turns_running", "Turns that run here", counts.running),
        (
            "sessions_waiting",
            "Sessions with prompts that wait for a turn here",
            counts.waiting,
        ),
    ] {
        let number = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(count).encode(number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text;

    use super::*;

    #[derive(Debug)]
    struct Fixed(SessionCounts);

    impl Collector for Fixed {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    #[test]
    fn each_number_is_the_one_that_its_name_says() {
        let counts = SessionCounts {
            running: 1,
            waiting: 2,
        };
        let mut registry = Registry::with_prefix("tidelock");
        let metrics = SessionMetrics::register(&mut registry);
        registry.register_collector(Box::new(Fixed(counts)));
        metrics.wrote(3);
        metrics.wrote(4);
        metrics.asked();
        metrics.answered(PermissionAnswer::AllowAlways);
        metrics.tool_ended("shell", ToolState::Failed);
        // Tools of agents count as one, whatever their names.
        metrics.tool_ended("Read `a`", ToolState::Done);
        metrics.tool_ended("Read `b`", ToolState::Done);
        metrics.turn_ended(TurnState::Done, Duration::from_secs(1));
        metrics.turn_ended(TurnState::Done, Duration::from_secs(2));
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
                r#"tidelock_permission_answers_total{answer="allow_always"} 1"#,
                "tidelock_permission_questions_total 1",
                "tidelock_sessions_waiting 2",
                r#"tidelock_tool_calls_total{tool="other",state="done"} 2"#,
                r#"tidelock_tool_calls_total{tool="shell",state="failed"} 1"#,
                "tidelock_turn_duration_seconds_count 2",
                "tidelock_turn_duration_seconds_sum 3.0",
                "tidelock_turn_events_total 7",
                r#"tidelock_turns_ended_total{state="done"} 2"#,
                "tidelock_turns_running 1",
            ]
        );
    }
}
