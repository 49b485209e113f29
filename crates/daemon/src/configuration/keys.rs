//! Every key of `config.toml`, in one table: its allowed values, its value in use, and its text in the reference.
//!
//! serde reads the file; a test compares its fields with this table. The default of a key comes from the settings that
//! the daemon really uses, and isn't repeated anywhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use ::context::{BUDGET_LIMIT_TOKENS, ContextSettings, DEADLINE_LIMIT, StrategySettings, TokenizerName};
use plans::PlansSettings;
use serde_json::{Value, json};
use sessions::agents::model::ModelSettings;
use sessions::{AfterCrash, SessionsSettings};

use super::context::MOST_WORKERS;
use super::{AgentSection, ApplyWord, Configuration, MACHINE_NAME, redact};
use crate::app::whole_ms;
use crate::sessions::{BASE_URL, MODEL_NAME, USUAL_BASE_URL, USUAL_KEY};

/// Stands for a name that the user chooses, in the path of a key.
pub(super) const ANY_NAME: &str = "NAME";
/// Follows a part of a path that is a list of tables.
pub(super) const EACH: &str = "[]";

/// The settings that a daemon uses.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) default_agent: Option<String>,
    pub(super) sessions: SessionsSettings,
    pub(super) model: ModelSettings,
    pub(super) key_env: Option<String>,
    pub(super) key_file: Option<String>,
    pub(super) agents: BTreeMap<String, AgentSection>,
    pub(super) context: ContextSettings,
    pub(super) apply: ApplyWord,
    pub(super) plans: PlansSettings,
    pub(super) machine: Option<String>,
}

impl InForce {
    pub(super) fn new(configuration: Configuration, model: ModelSettings) -> Self {
        let Configuration {
            sessions,
            model: written,
            agents,
            context,
            mcp,
            plans,
            machine,
        } = configuration;
        let key_file = written.key_file.map(|path| path.display().to_string());
        Self {
            default_agent: sessions.default_agent.clone(),
            sessions: sessions.settings(String::new()),
            model,
            key_env: match key_file {
                Some(_) => None,
                None => Some(written.key_env.unwrap_or_else(|| USUAL_KEY.to_owned())),
            },
            key_file,
            agents,
            context: context.settings(),
            apply: mcp.apply(),
            plans: plans.settings(PlansSettings::default()),
            machine: machine.name,
        }
    }

    fn strategy(&self, name: &str) -> StrategySettings {
        self.context.strategies.get(name).cloned().unwrap_or_default()
    }

    fn agent(&self, name: &str) -> AgentSection {
        self.agents.get(name).cloned().unwrap_or_default()
    }
}

/// The values that a key accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// An absolute path.
    Path,
    OneOf(&'static [&'static str]),
    Whole {
        least: u64,
        /// The maximum, if there is one.
        most: Option<u64>,
    },
    Number {
        least: u64,
        /// The maximum, if there is one.
        most: Option<u64>,
    },
    /// `true` or `false`.
    YesNo,
    Texts,
    /// Several absolute paths.
    Paths,
    TextByName,
    /// Several tables. Their keys have their own rows.
    Tables,
}

impl Kind {
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Path => "absolute path".to_owned(),
            Self::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
                words.join(" or ")
            }
            Self::Whole { least, most } => format!("whole number, {}", range(least, most)),
            Self::Number { least, most } => format!("number, {}", range(least, most)),
            Self::YesNo => "`true` or `false`".to_owned(),
            Self::Texts => "list of texts".to_owned(),
            Self::Paths => "list of absolute paths".to_owned(),
            Self::TextByName => "table of texts".to_owned(),
            Self::Tables => "list of tables".to_owned(),
        }
    }
}

fn range(least: u64, most: Option<u64>) -> String {
    match most {
        Some(most) => format!("{least} to {most}"),
        None => format!("{least} or more"),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its path. `NAME` stands for a name that the user chooses, `[]` for each entry of a list.
    pub path: &'static str,
    pub kind: Kind,
    pub meaning: &'static str,
    /// The environment variable that takes precedence over the file, if any.
    pub before_file: Option<&'static str>,
    /// The environment variable that is the fallback, if any.
    pub after_file: Option<&'static str>,
    /// The value in use. If the user chooses names, the second argument is the name.
    pub(super) in_force: fn(&InForce, &str) -> Value,
}

impl Key {
    const fn new(
        path: &'static str,
        kind: Kind,
        meaning: &'static str,
        in_force: fn(&InForce, &str) -> Value,
    ) -> Self {
        Self {
            path,
            kind,
            meaning,
            before_file: None,
            after_file: None,
            in_force,
        }
    }

    const fn or_variables(mut self, before_file: &'static str, after_file: Option<&'static str>) -> Self {
        self.before_file = Some(before_file);
        self.after_file = after_file;
        self
    }

    /// The default; null if there is none.
    #[must_use]
    pub fn usual(&self) -> Value {
        let usual = InForce::new(Configuration::default(), ModelSettings::default());
        (self.in_force)(&usual, "")
    }

    /// Whether it is a key of something that the user names, or of each entry of a list.
    pub(super) fn is_template(&self) -> bool {
        self.path.split('.').any(|part| part == ANY_NAME) || self.path.contains(EACH)
    }
}

const COUNT: Kind = Kind::Whole { least: 0, most: None };
const AT_LEAST_ONE: Kind = Kind::Whole { least: 1, most: None };
const PRICE: Kind = Kind::Number { least: 0, most: None };
const WEIGHT: Kind = Kind::Number {
    least: 0,
    most: Some(super::context::LARGEST_WEIGHT as u64),
};
const TIME_MS: Kind = Kind::Whole {
    least: 1,
    most: Some(DEADLINE_LIMIT.as_millis() as u64),
};

/// All keys, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    Key::new(
        "machine.name",
        Kind::Text,
        "The name of this machine on a shared log. Defaults to the host name.",
        |now, _| json!(now.machine),
    )
    .or_variables(MACHINE_NAME, None),
    Key::new(
        "sessions.default_agent",
        Kind::Text,
        "The agent to use by default. If not set, `model` if it is ready, otherwise `rehearsal`.",
        |now, _| json!(now.default_agent),
    ),
    Key::new(
        "sessions.after_crash",
        Kind::OneOf(&["go_on", "wait"]),
        "What happens to waiting prompts after a daemon has crashed.",
        |now, _| match now.sessions.after_crash {
            AfterCrash::GoOn => json!("go_on"),
            AfterCrash::Wait => json!("wait"),
        },
    ),
    Key::new(
        "sessions.permission_timeout_seconds",
        COUNT,
        "How long an agent waits for permission; then the request is denied. If not set, it waits until you answer or stop the turn.",
        |now, _| now.sessions.permission_timeout.map_or(Value::Null, seconds),
    ),
    Key::new(
        "sessions.turn_timeout_seconds",
        COUNT,
        "How long a turn may take. Time spent waiting for your answer to a question does not count.",
        |now, _| seconds(now.sessions.turn_timeout),
    ),
    Key::new(
        "sessions.tool_timeout_seconds",
        COUNT,
        "How long a tool call may take.",
        |now, _| seconds(now.sessions.tool_timeout),
    ),
    Key::new(
        "sessions.max_turns",
        AT_LEAST_ONE,
        "How many turns run at once; further ones wait.",
        |now, _| json!(now.sessions.max_turns),
    ),
    Key::new(
        "sessions.rules",
        Kind::Tables,
        "What agents may do. The first rule that matches counts; a session's own rules take precedence.",
        |now, _| json!(now.sessions.rules),
    ),
    Key::new(
        "sessions.rules[].tool",
        Kind::Text,
        "The tool; `*` for all.",
        nothing,
    ),
    Key::new(
        "sessions.rules[].pattern",
        Kind::Text,
        "A path or a shell command, with `*` for anything. If not set, everything matches.",
        nothing,
    ),
    Key::new(
        "sessions.rules[].permission",
        Kind::OneOf(&["allow", "ask", "deny"]),
        "Whether to allow it, ask, or deny it.",
        nothing,
    ),
    Key::new(
        "model.base_url",
        Kind::Text,
        "The base URL of the chat completions API.",
        |now, _| json!(redact(&now.model.base_url)),
    )
    .or_variables(BASE_URL, Some(USUAL_BASE_URL)),
    Key::new(
        "model.key_env",
        Kind::Text,
        "The environment variable with the API key.",
        |now, _| json!(now.key_env),
    ),
    Key::new(
        "model.key_file",
        Kind::Path,
        "The file with the API key, instead of a variable.",
        |now, _| json!(now.key_file),
    ),
    Key::new(
        "model.model",
        Kind::Text,
        "Which model is asked.",
        |now, _| match now.model.model.as_str() {
            "" => Value::Null,
            model => json!(model),
        },
    )
    .or_variables(MODEL_NAME, None),
    Key::new(
        "model.context_tokens",
        COUNT,
        "The context window of the model, in tokens.",
        |now, _| json!(now.model.context_tokens),
    ),
    Key::new(
        "model.opening_context_tokens",
        COUNT,
        "How much code the model is shown before a turn begins, in tokens; 0 for none.",
        |now, _| json!(now.model.opening_context_tokens),
    ),
    Key::new(
        "model.max_steps",
        COUNT,
        "How many requests to the model one turn may make.",
        |now, _| json!(now.model.limits.steps),
    ),
    Key::new(
        "model.max_tokens",
        COUNT,
        "How many tokens one turn may use.",
        |now, _| json!(now.model.limits.tokens),
    ),
    Key::new(
        "model.max_time_seconds",
        COUNT,
        "How long one turn may take.",
        |now, _| seconds(now.model.limits.time),
    ),
    Key::new(
        "model.max_cost",
        PRICE,
        "How much one turn may cost, in the currency of the prices.",
        |now, _| json!(now.model.limits.cost_micros.map(millionths)),
    ),
    Key::new(
        "model.input_price",
        PRICE,
        "The price of a million input tokens.",
        |now, _| json!(now.model.prices.map(|prices| millionths(prices.input_micros))),
    ),
    Key::new(
        "model.output_price",
        PRICE,
        "The price of a million output tokens.",
        |now, _| json!(now.model.prices.map(|prices| millionths(prices.output_micros))),
    ),
    Key::new(
        "model.request_timeout_seconds",
        COUNT,
        "How long the model may take to begin its answer.",
        |now, _| seconds(now.model.request_timeout),
    ),
    Key::new(
        "model.idle_timeout_seconds",
        COUNT,
        "How long an answer may pause.",
        |now, _| seconds(now.model.idle_timeout),
    ),
    Key::new(
        "model.max_retries",
        COUNT,
        "How often a failed request is retried.",
        |now, _| json!(now.model.max_retries),
    ),
    Key::new(
        "agents.NAME.command",
        Kind::Texts,
        "A program that speaks the Agent Client Protocol, and its arguments. It must be given.",
        |now, name| list(now.agent(name).command),
    ),
    Key::new(
        "agents.NAME.description",
        Kind::Text,
        "A description, shown in lists.",
        |now, name| json!(now.agent(name).description),
    ),
    Key::new(
        "agents.NAME.environment",
        Kind::TextByName,
        "Environment variables in addition to the daemon's.",
        |now, name| {
            // Only the names: the values often include an API key.
            let names = now.agent(name).environment.into_keys();
            names.map(|name| (name, json!("(not shown)"))).collect()
        },
    ),
    Key::new(
        "agents.NAME.write_below",
        Kind::Paths,
        "Where it may write outside its sandbox, for example to keep its conversations.",
        |now, name| json!(now.agent(name).write_below),
    ),
    Key::new(
        "mcp.apply",
        Kind::OneOf(&["ask", "allow", "never"]),
        "Whether clients of the Model Context Protocol may apply their plans, undo them, and run commands outside of them.",
        |now, _| match now.apply {
            ApplyWord::Ask => json!("ask"),
            ApplyWord::Allow => json!("allow"),
            ApplyWord::Never => json!("never"),
        },
    ),
    Key::new(
        "plans.keep_days",
        COUNT,
        "How many days a plan is kept after it was applied or discarded. Then its changes and their contents are deleted.",
        |now, _| json!(now.plans.keep_for.as_secs() / super::plans::DAY.as_secs()),
    ),
    Key::new(
        "plans.keep_mb",
        COUNT,
        "How many megabytes the contents of plans may take. Beyond that, the oldest plans that were applied or discarded \
         more than a day ago are deleted.",
        |now, _| json!(now.plans.keep_bytes / (1024 * 1024)),
    ),
    Key::new(
        "plans.max_sandboxes",
        AT_LEAST_ONE,
        "How many sandboxes may exist. At the limit, the oldest sandboxes of finished plans are deleted.",
        |now, _| json!(now.plans.max_sandboxes),
    ),
    Key::new(
        "plans.max_file_mb",
        AT_LEAST_ONE,
        "The largest file that a plan carries, in megabytes, holes included. A larger one is left out, and the plan says so.",
        |now, _| json!(now.plans.max_file_bytes / (1024 * 1024)),
    ),
    Key::new(
        "context.budget_tokens",
        Kind::Whole {
            least: 0,
            most: Some(BUDGET_LIMIT_TOKENS as u64),
        },
        "The default size limit of an answer about code, in tokens.",
        |now, _| json!(now.context.budget_tokens),
    ),
    Key::new(
        "context.deadline_ms",
        TIME_MS,
        "How long it may take.",
        |now, _| json!(whole_ms(now.context.patience)),
    ),
    Key::new(
        "context.tokenizer",
        Kind::OneOf(&["o200k", "cl100k"]),
        "How tokens are counted.",
        |now, _| match now.context.tokenizer {
            TokenizerName::O200k => json!("o200k"),
            TokenizerName::Cl100k => json!("cl100k"),
        },
    ),
    Key::new(
        "context.workers",
        Kind::Whole {
            least: 1,
            most: Some(MOST_WORKERS as u64),
        },
        "How many strategies run at once, for all questions together.",
        |now, _| json!(now.context.workers),
    ),
    Key::new(
        "context.index_limit_mb",
        AT_LEAST_ONE,
        "How much space all indexes may take, in MiB. The least recently used one is removed first.",
        |now, _| json!(now.context.index_limit_bytes / (1024 * 1024)),
    ),
    Key::new(
        "context.strategies.NAME.enabled",
        Kind::YesNo,
        "Whether the strategy is used by default.",
        |now, name| json!(now.strategy(name).enabled),
    ),
    Key::new(
        "context.strategies.NAME.timeout_ms",
        TIME_MS,
        "How long it may take.",
        |now, name| json!(whole_ms(now.strategy(name).timeout)),
    ),
    Key::new(
        "context.strategies.NAME.weight",
        WEIGHT,
        "The weight of its results.",
        |now, name| hundredths(now.strategy(name).weight_percent),
    ),
    Key::new(
        "context.commands",
        Kind::Tables,
        "Commands that search: each gets a question as JSON and answers with locations.",
        |now, _| commands(&now.context),
    ),
    Key::new(
        "context.commands[].name",
        Kind::Text,
        "Its name. It must be given.",
        nothing,
    ),
    Key::new(
        "context.commands[].command",
        Kind::Texts,
        "The program and its arguments. It must be given.",
        nothing,
    ),
    Key::new(
        "context.commands[].timeout_ms",
        TIME_MS,
        "How long it may take.",
        |_, _| json!(whole_ms(StrategySettings::default().timeout)),
    ),
    Key::new(
        "context.commands[].weight",
        WEIGHT,
        "The weight of its results.",
        |_, _| hundredths(StrategySettings::default().weight_percent),
    ),
];

fn nothing(_: &InForce, _: &str) -> Value {
    Value::Null
}

fn list(texts: Vec<String>) -> Value {
    match texts.is_empty() {
        true => Value::Null,
        false => json!(texts),
    }
}

fn seconds(duration: Duration) -> Value {
    json!(duration.as_secs())
}

fn millionths(amount: u64) -> f64 {
    amount as f64 / 1_000_000.0
}

fn hundredths(percent: u32) -> Value {
    json!(f64::from(percent) / 100.0)
}

fn commands(settings: &ContextSettings) -> Value {
    let commands = settings.commands.iter().map(|command| {
        json!({
            "name": command.name,
            "command": command.command,
            "timeout_ms": whole_ms(command.timeout),
            "weight": hundredths(command.weight_percent),
        })
    });
    commands.collect()
}
