//! Metrics of Model Context Protocol clients.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug)]
pub(crate) struct McpMetrics {
    calls: Family<CallLabels, Counter>,
}

/// The labels of a call. Tools are ours, and an outcome is `done`, `failed`, `asked` or an error code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    tool: &'static str,
    outcome: &'static str,
}

impl McpMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            calls: Family::default(),
        };
        registry.register(
            "mcp_calls",
            "Tool calls of Model Context Protocol clients, by outcome",
            Family::clone(&metrics.calls),
        );
        metrics
    }

    pub(crate) fn called(&self, tool: &'static str, outcome: &'static str) {
        self.calls.get_or_create(&CallLabels { tool, outcome }).inc();
    }
}
