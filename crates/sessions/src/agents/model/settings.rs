//! What an owner of a daemon says about a model.

use std::fmt;
use std::time::Duration;

/// A shorter beginning of a key tells nothing: it is the same for all keys of a server.
const REDACTED_PREFIX_BYTES: usize = 8;

/// Where OpenAI's own interface is.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// A model, and how it is asked.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// What the agent is called. Its circuit is `model/NAME`.
    pub name: String,
    /// The address that `/chat/completions` is below, with `http` or `https`.
    pub base_url: String,
    /// The key, if the server wants one.
    pub key: Option<ApiKey>,
    /// The model that is asked unless a prompt names another one of the same server; empty if none is set.
    pub model: String,
    /// How many tokens the model can read and write in one go.
    pub context_tokens: u64,
    /// How many tokens of context a turn begins with: pieces of the code that fit the prompt. With 0 there are none.
    pub opening_context_tokens: usize,
    /// What one turn may use.
    pub limits: ModelLimits,
    /// What tokens cost, if that is known.
    pub prices: Option<ModelPrices>,
    /// How long the server may take to begin its answer.
    pub request_timeout: Duration,
    /// How long it may be silent in the middle of it.
    pub idle_timeout: Duration,
    /// How often one step is tried again.
    pub max_retries: u32,
    /// How long one step may wait for a server that is busy or down, all its waits together.
    pub wait_limit: Duration,
}

/// What one turn may use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ModelLimits {
    /// How often the model may be asked.
    pub steps: u32,
    /// Tokens that it may read and write, together.
    pub tokens: u64,
    /// How long all of it may take.
    pub time: Duration,
    /// What it may cost, in millionths of the currency of the prices.
    pub cost_micros: Option<u64>,
}

/// What a million tokens cost, in millionths of some currency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ModelPrices {
    /// Those that the model reads.
    pub input_micros: u64,
    /// Those that it writes.
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
    /// What some tokens cost. A part of a millionth counts as a whole one, so that a limit is never passed unseen.
    pub(super) fn cost_micros(self, input_tokens: u64, output_tokens: u64) -> u64 {
        let all = u128::from(input_tokens) * u128::from(self.input_micros)
            + u128::from(output_tokens) * u128::from(self.output_micros);
        u64::try_from(all.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// A key. It is never shown.
#[derive(Clone, Eq, PartialEq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key; nothing if there is nothing but spaces.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// A text without the key, wherever it stands in it: servers repeat it when they refuse it. Texts are cut to a bounded
    /// size, perhaps in the middle of a key, so its beginnings go too.
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
