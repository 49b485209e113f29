//! The agent, and whether it is ready.

use std::sync::Arc;

use async_trait::async_trait;
use eventlog::WallClock;
use http::HeaderValue;
use kernel::{CircuitBreaker, Clock};
use protocol::AgentKind;
use reqwest::Client;

use super::endpoint::Endpoint;
use super::settings::ModelSettings;
use super::{connect, turn};
use crate::agent::{Agent, AgentEnd, AgentInfo, AgentTurn, Readiness};

/// A model behind a chat completions API.
#[derive(Debug)]
pub struct ModelAgent {
    core: Core,
    /// What is needed to send requests, or what is missing.
    ready: Result<Ready, String>,
}

/// State shared by all turns.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: ModelSettings,
    pub(super) breaker: CircuitBreaker,
    pub(super) circuit: String,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) wall: WallClock,
}

/// What is needed to send requests.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) endpoint: Endpoint,
    /// Marked as sensitive, so that it never shows up in debug output.
    pub(super) key: Option<HeaderValue>,
    pub(super) client: Client,
}

impl ModelAgent {
    /// Creates an agent. If its settings are incomplete, it reports what is missing and can't be used.
    #[expect(
        clippy::new_ret_no_self,
        reason = "agents are shared as what they can do; nobody needs this type by name"
    )]
    pub fn new(settings: ModelSettings, breaker: CircuitBreaker, clock: Arc<dyn Clock>) -> Arc<dyn Agent> {
        let ready = ready(&settings);
        let core = Core {
            circuit: format!("model/{}", settings.name),
            settings,
            breaker,
            wall: WallClock::of_machine(Arc::clone(&clock)),
            clock,
        };
        Arc::new(Self { core, ready })
    }
}

impl Core {
    /// A text from a server or a library with the key removed, safe to show.
    pub(super) fn shown(&self, text: &str) -> String {
        match &self.settings.key {
            Some(key) => key.redact(text),
            None => text.to_owned(),
        }
    }
}

#[async_trait]
impl Agent for ModelAgent {
    fn info(&self) -> AgentInfo {
        let settings = &self.core.settings;
        let (description, readiness) = match &self.ready {
            Ok(ready) => (
                format!("{} at {}", settings.model, ready.endpoint.authority),
                Readiness::Ready,
            ),
            Err(missing) => (
                "a model behind an OpenAI-compatible interface".to_owned(),
                Readiness::Missing(missing.clone()),
            ),
        };
        AgentInfo {
            name: settings.name.clone(),
            kind: AgentKind::Model,
            description,
            readiness,
        }
    }

    async fn run(&self, turn: AgentTurn) -> AgentEnd {
        match &self.ready {
            Ok(ready) => turn::run(&self.core, ready, &turn).await,
            Err(missing) => AgentEnd::failed("model_not_configured", missing),
        }
    }
}

fn ready(settings: &ModelSettings) -> Result<Ready, String> {
    let endpoint = Endpoint::below(&settings.base_url)
        .map_err(|error| format!("the base URL cannot be used: {error}; set TIDELOCK_MODEL_BASE_URL"))?;
    if settings.key.is_none() && endpoint.is_encrypted() {
        return Err(
            "there is no key: set OPENAI_API_KEY, or TIDELOCK_MODEL_BASE_URL for a server of your own"
                .to_owned(),
        );
    }
    if settings.model.trim().is_empty() {
        return Err("no model is named: set TIDELOCK_MODEL".to_owned());
    }
    let key = match &settings.key {
        None => None,
        Some(key) => {
            let mut header = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                .map_err(|_| "the key has characters that cannot be in a key".to_owned())?;
            header.set_sensitive(true);
            Some(header)
        }
    };
    let client = connect::client(&endpoint).map_err(|error| format!("TLS cannot be used: {error}"))?;
    Ok(Ready {
        endpoint,
        key,
        client,
    })
}

#[cfg(test)]
mod tests {
    use kernel::{BreakerSettings, SystemClock};

    use super::*;
    use crate::agents::model::ApiKey;

    fn info(base_url: &str, key: Option<&str>, model: &str) -> AgentInfo {
        let settings = ModelSettings {
            base_url: base_url.to_owned(),
            key: key.and_then(ApiKey::new),
            model: model.to_owned(),
            ..ModelSettings::default()
        };
        let breaker = CircuitBreaker::new(BreakerSettings::default(), SystemClock::shared()).unwrap();
        let agent = ModelAgent::new(settings, breaker, SystemClock::shared());
        assert!(!format!("{agent:?}").contains("sk-1234"), "{agent:?}");
        agent.info()
    }

    #[test]
    fn it_says_what_is_missing() {
        let openai = "https://api.openai.com/v1";
        let local = "http://localhost:8080/v1";
        let missing = [
            (
                "x",
                None,
                "m",
                "the base URL cannot be used: it has to begin with http:// or https://; set TIDELOCK_MODEL_BASE_URL",
            ),
            (
                openai,
                None,
                "m",
                "there is no key: set OPENAI_API_KEY, or TIDELOCK_MODEL_BASE_URL for a server of your own",
            ),
            (
                openai,
                Some("sk-1234"),
                " ",
                "no model is named: set TIDELOCK_MODEL",
            ),
            (
                openai,
                Some("sk-\n1234"),
                "m",
                "the key has characters that cannot be in a key",
            ),
        ];
        for (base_url, key, model, text) in missing {
            let readiness = info(base_url, key, model).readiness;
            assert_eq!(readiness, Readiness::Missing(text.to_owned()), "{base_url}");
        }
        for (base_url, key, description) in [
            (openai, Some("sk-1234"), "m at api.openai.com"),
            (local, None, "m at localhost:8080"),
        ] {
            let expected = AgentInfo {
                name: "model".to_owned(),
                kind: AgentKind::Model,
                description: description.to_owned(),
                readiness: Readiness::Ready,
            };
            assert_eq!(info(base_url, key, "m"), expected);
        }
    }
}
