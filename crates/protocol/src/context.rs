//! Questions about code bases, and the code that answers them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /v1/context`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextQuestion {
    /// The question: keywords, names or a sentence. May be empty if `focus` has a file.
    #[serde(default)]
    pub query: String,
    /// The absolute path of a directory in the workspace. Omit it if `plan` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The id of a plan. Its sandbox is searched instead of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Files the question is about. Paths are absolute, relative to `directory`, or relative to the root of
    /// the plan's workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focus: Vec<String>,
    /// The size limit of the answer, in tokens. Defaults to the setting `context.budget_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// The time limit, in milliseconds. Defaults to the setting `context.deadline_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Run only these strategies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Don't run these strategies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// How to count tokens. Defaults to the setting `context.tokenizer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<ContextTokenizer>,
}

/// A way to count tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextTokenizer {
    /// The tokenizer of GPT-4o and later.
    O200k,
    /// The tokenizer of GPT-4 and GPT-3.5.
    Cl100k,
}

/// The response of `POST /v1/context`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextAnswer {
    /// The root of the workspace that was searched.
    pub root: String,
    /// The plan whose sandbox was searched. Absent if the workspace itself was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Whether the answer has any fragments, and if not, why.
    #[serde(default)]
    pub outcome: ContextOutcome,
    /// The fragments, in the order to read them.
    pub fragments: Vec<ContextFragment>,
    /// All fragments as one text. A line before each one gives its location.
    pub text: String,
    /// The number of tokens in `text`. Never exceeds the budget.
    pub tokens: u64,
    /// The budget that applied, in tokens.
    pub budget_tokens: u64,
    /// The result of each strategy.
    pub strategies: Vec<ContextStrategy>,
    /// Matches that aren't shown, best first. Long lists are cut.
    pub left_out: Vec<ContextLeftOut>,
    /// The total number of matches that were left out.
    pub left_out_total: u64,
    /// How long the question took, in milliseconds.
    pub took_ms: f64,
    /// The index of the workspace.
    pub index: ContextIndex,
}

/// Whether an answer has any fragments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextOutcome {
    /// The answer has fragments.
    #[default]
    Found,
    /// No strategy found anything relevant to the question.
    NothingMatched,
    /// There were matches, but the budget is too small for any of them.
    NothingFits,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextFragment {
    /// The file, relative to the root of the workspace.
    pub path: String,
    /// The first line, starting at 1.
    pub first_line: u32,
    /// The last line, inclusive.
    pub last_line: u32,
    /// How much of these lines is shown.
    pub depth: ContextDepth,
    /// The name of the definition that the fragment shows. Absent if it isn't a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The text that is shown.
    pub text: String,
    /// The number of tokens, including the line that gives the location.
    pub tokens: u64,
    /// The relevance score. Scores are only comparable within one answer.
    pub score: f64,
    /// The strategies that found the fragment.
    pub parts: Vec<ContextScorePart>,
}

/// How much of a range of lines is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextDepth {
    /// All lines.
    Body,
    /// Only the lines that declare something.
    Signature,
    /// Only the names of the definitions.
    Name,
}

/// What one strategy contributed to a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextScorePart {
    /// The name of the strategy.
    pub strategy: String,
    /// The rank in that strategy's results, starting at 1.
    pub rank: u64,
    /// How much the strategy added to the score.
    pub adds: f64,
    /// Why the strategy found the fragment.
    pub why: String,
}

/// The result of one strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextStrategy {
    /// The name of the strategy.
    pub id: String,
    /// How the strategy ended.
    pub state: ContextStrategyState,
    /// How long the strategy took, in milliseconds.
    pub took_ms: f64,
    /// The number of matches it found.
    pub hits: u64,
    /// Why it found nothing: it failed, was skipped, or doesn't apply here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long until the strategy is tried again, in milliseconds, if its circuit is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// How a strategy ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextStrategyState {
    /// It ran.
    Ran,
    /// It doesn't apply to this question.
    NotApplicable,
    /// It exceeded its own time limit.
    TimedOut,
    /// The time limit of the whole question passed.
    OutOfTime,
    /// It failed too often and is skipped for a while.
    Open,
    /// It failed.
    Failed,
    /// It was excluded.
    LeftOut,
}

/// A match that isn't shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextLeftOut {
    /// The file, relative to the root of the workspace.
    pub path: String,
    /// The first line, starting at 1.
    pub first_line: u32,
    /// The last line, inclusive.
    pub last_line: u32,
    /// The relevance score.
    pub score: f64,
    /// How many tokens it would have used.
    pub tokens: u64,
}

/// The index of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextIndex {
    /// The root of the workspace.
    pub root: String,
    /// Whether the index is ready.
    pub state: ContextIndexState,
    /// Why the index failed. Absent unless it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The number of files in the index, or read so far.
    pub files: u64,
    /// The total size of these files, in bytes.
    pub source_bytes: u64,
    /// The size of the index on disk, in bytes.
    pub index_bytes: u64,
    /// When the index was last used, in RFC 3339 and UTC.
    pub used_at: String,
}

/// The state of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextIndexState {
    /// It is being built or loaded.
    Building,
    /// It is ready, and follows changes to the files.
    Ready,
    /// It couldn't be built.
    Failed,
}

/// The response of `GET /v1/context/indexes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextIndexList {
    /// The indexes, sorted by root.
    pub indexes: Vec<ContextIndex>,
}

/// A summary of the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextCounts {
    /// The number of open indexes.
    pub indexes: u64,
    /// Their total size on disk, in bytes.
    pub index_bytes: u64,
}

/// The body of `POST /v1/context/indexes/rebuild` and of `POST /v1/context/indexes/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeContextIndex {
    /// The absolute path of a directory in the workspace.
    pub directory: String,
}

/// The response of `POST /v1/context/indexes/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextIndexRemoved {
    /// The root of the workspace.
    pub root: String,
    /// Whether an index existed.
    pub removed: bool,
}

/// The response of `GET /v1/context/strategies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextStrategyList {
    /// The strategies, in the order in which they are reported.
    pub strategies: Vec<ContextStrategyInfo>,
}

/// An available strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextStrategyInfo {
    /// The name of the strategy.
    pub id: String,
    /// The name of its circuit breaker.
    pub breaker: String,
    /// Whether it runs by default. A disabled strategy only runs if a question names it.
    pub enabled: bool,
    /// The time limit of the strategy, in milliseconds.
    pub timeout_ms: u64,
}
