//! Settings of a model agent.

use std::fmt;
use std::time::Duration;

/// A shorter prefix of a key reveals nothing: it's the same for all keys of a server.
const REDACTED_PREFIX_BYTES: usize = 8;

/// The base URL of OpenAI's API.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// A model, and how to reach it.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// The agent's name. Its circuit is `model/NAME`.
    pub name: String,
    /// The URL that `/chat/completions` is appended to, with `http` or `https`.
    pub base_url: String,
    /// The key, if the server needs one.
    pub key: Option<ApiKey>,
    /// The model to use unless a prompt names another one on the same server; empty if not set.
    pub model: String,
    /// The model's context window, in tokens: input and output together.
    pub context_tokens: u64,
    /// How many tokens of code context, chosen to fit the prompt, a turn starts with. 0 turns this off.
    pub opening_context_tokens: usize,
    /// Limits for one turn.
    pub limits: ModelLimits,
    /// Token prices, if known.
    pub prices: Option<ModelPrices>,
    /// How long the server may take to start its answer.
    pub request_timeout: Duration,
    /// How long the server may stay silent in the middle of an answer.
    pub idle_timeout: Duration,
    /// How often one step is retried.
    pub max_retries: u32,
    /// The total time that one step may wait for a server that is busy or down.
    pub wait_limit: Duration,
}

/// Limits for one turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ModelLimits {
    /// How many requests a turn may make.
    pub steps: u32,
    /// The most tokens a turn may use, input and output together.
    pub tokens: u64,
    /// How long the whole turn may take.
    pub time: Duration,
    /// The most a turn may cost, in millionths of the currency of the prices.
    pub cost_micros: Option<u64>,
}

/// Prices per million tokens, in millionths of some currency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ModelPrices {
    /// Per million input tokens.
    pub input_micros: u64,
    /// Per million output tokens.
    pub output_micros: u64,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            name: "model".to_owned(),
            base_url: DEFAULT_BASE_URL.to_owned(),
            key: None,
            model: String::new(),
            context_tokens: 128_000,
            opening_context_tokens: 2_000,
            limits: ModelLimits::default(),
            prices: None,
            request_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(120),
            max_retries: 3,
            wait_limit: Duration::from_secs(60),
        }
    }
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            steps: 200,
            tokens: 10_000_000,
            time: Duration::from_secs(2 * 60 * 60),
            cost_micros: None,
        }
    }
}

impl ModelPrices {
    /// The cost of some tokens. It is rounded up, so that a limit is never exceeded unnoticed.
    pub(super) fn cost_micros(self, input_tokens: u64, output_tokens: u64) -> u64 {
        let all = u128::from(input_tokens) * u128::from(self.input_micros)
            + u128::from(output_tokens) * u128::from(self.output_micros);
        u64::try_from(all.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// An API key. It is never shown.
#[derive(Clone, Eq, PartialEq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Creates a key, or `None` if the text is blank.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Removes the key from a text: servers repeat it when they refuse it. Texts are truncated, perhaps in the middle
    /// of a key, so prefixes of the key are removed too.
    pub(super) fn redact(&self, text: &str) -> String {
        let ends = (REDACTED_PREFIX_BYTES.min(self.0.len())..=self.0.len()).rev();
        let beginnings = ends.filter_map(|end| self.0.get(..end));
        beginnings.fold(text.to_owned(), |text, beginning| {
            text.replace(beginning, "[key]")
        })
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let settings = ModelSettings {
            key: ApiKey::new("  sk-very-secret\n"),
            ..ModelSettings::default()
        };
        assert_eq!(settings.key.as_ref().map(ApiKey::expose), Some("sk-very-secret"));
        assert!(!format!("{settings:?}").contains("secret"));
        let key = settings.key.unwrap();
        assert_eq!(key.redact("bad key sk-very-secret!"), "bad key [key]!");
        assert_eq!(key.redact("cut sk-very-sec…"), "cut [key]…");
        assert_eq!(key.redact("an sk-key"), "an sk-key");
        assert_eq!(
            ApiKey::new("word").unwrap().redact("a word, a wor"),
            "a [key], a wor"
        );
        assert_eq!(ApiKey::new(" \n"), None);
    }

    #[test]
    fn costs_are_rounded_up() {
        let prices = ModelPrices {
            input_micros: 3_000_000,
            output_micros: 15_000_000,
        };
        for (input, output, cost) in [
            (0, 0, 0),
            (1, 0, 3),
            (1_000, 10, 3_150),
            (u64::MAX, u64::MAX, u64::MAX),
        ] {
            assert_eq!(prices.cost_micros(input, output), cost, "{input} {output}");
        }
        let cheap = ModelPrices {
            input_micros: 1,
            output_micros: 1,
        };
        assert_eq!(cheap.cost_micros(1, 0), 1);
    }
}
