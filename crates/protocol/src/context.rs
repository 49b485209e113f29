//! Questions about code bases, and the pieces that answer them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /v1/context`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextQuestion {
    /// The question: words, names, a sentence. It may be empty if there is a file in focus.
    #[serde(default)]
    pub query: String,
    /// A directory of the workspace, absolute. Left out if there is a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The plan whose sandbox is read instead of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Files that the question is about: absolute, or from the directory that was named, or from the root of the plan's
    /// workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focus: Vec<String>,
    /// How many tokens the answer may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Only these strategies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Without these strategies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// How tokens are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<ContextTokenizer>,
}

/// How tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextTokenizer {
    /// As GPT-4o and later do.
    O200k,
    /// As GPT-4 and GPT-3.5 do.
    Cl100k,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextAnswer {
    /// The root of the workspace that was looked at.
    pub root: String,
    /// The plan whose sandbox was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Whether there is anything to show, and if not, why.
    #[serde(default)]
    pub outcome: ContextOutcome,
    /// The pieces, in the order in which they should be read.
    pub fragments: Vec<ContextFragment>,
    /// All of them as one text, with a line that says where each is from.
    pub text: String,
    /// The tokens of that text. Never more than the budget.
    pub tokens: u64,
    /// How many it might have had.
    pub budget_tokens: u64,
    /// What each strategy did.
    pub strategies: Vec<ContextStrategy>,
    /// What was found and is not shown, the best first, up to a number.
    pub left_out: Vec<ContextLeftOut>,
    /// How much was left out altogether.
    pub left_out_total: u64,
    /// How long it took.
    pub took_ms: f64,
    /// The index of the workspace.
    pub index: ContextIndex,
}

/// Whether an answer has anything to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextOutcome {
    /// It has pieces.
    #[default]
    Found,
    /// No strategy found anything that has to do with the question.
    NothingMatched,
    /// Something was found, and the budget is too small for any of it.
    NothingFits,
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextFragment {
    /// The file, from the root of the workspace.
    pub path: String,
    /// Its first line, from 1.
    pub first_line: u32,
    /// Its last line.
    pub last_line: u32,
    /// How much of these lines is shown.
    pub depth: ContextDepth,
    /// The definition that it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// What is shown.
    pub text: String,
    /// Its tokens, with the line that says where it is from.
    pub tokens: u64,
    /// How well it fits. Only to be compared within an answer.
    pub score: f64,
    /// Which strategies found it.
    pub parts: Vec<ContextScorePart>,
}

/// How much of some lines is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextDepth {
    /// All of them.
    Body,
    /// The lines that declare something.
    Signature,
    /// The names of what is defined there.
    Name,
}

/// What a strategy has added to a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextScorePart {
    /// Which.
    pub strategy: String,
    /// Its place in the list of that strategy, from 1.
    pub rank: u64,
    /// How much it has added.
    pub adds: f64,
    /// Why it found it.
    pub why: String,
}

/// What a strategy did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextStrategy {
    /// Its name.
    pub id: String,
    /// What became of it.
    pub state: ContextStrategyState,
    /// How long it took.
    pub took_ms: f64,
    /// How many places it found.
    pub hits: u64,
    /// Why it found nothing, if it failed, was not asked, or has nothing to say here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it is tried again, if its circuit is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// What became of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextStrategyState {
    /// It looked.
    Ran,
    /// It has nothing to say here.
    NotApplicable,
    /// Its own time was over.
    TimedOut,
    /// The time of the whole question was over.
    OutOfTime,
    /// It has failed too often, and is not asked for a while.
    Open,
    /// It failed.
    Failed,
    /// It was left out.
    LeftOut,
}

/// Something that was found and is not shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextLeftOut {
    /// The file.
    pub path: String,
    /// Its first line, from 1.
    pub first_line: u32,
    /// Its last line.
    pub last_line: u32,
    /// How well it fits.
    pub score: f64,
    /// How many tokens it would have taken.
    pub tokens: u64,
}

/// The index of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextIndex {
    /// The root of the workspace.
    pub root: String,
    /// How far it is.
    pub state: ContextIndexState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many files it knows, or has read so far.
    pub files: u64,
    /// How many bytes these files have.
    pub source_bytes: u64,
    /// How many bytes it has on disk.
    pub index_bytes: u64,
    /// When it was last asked for.
    pub used_at: String,
}

/// How far an index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextIndexState {
    /// It is being made, or read.
    Building,
    /// It can be used, and keeps up with the files.
    Ready,
    /// It cannot be made.
    Failed,
}

/// The answer of `GET /v1/context/indexes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextIndexList {
    /// The indexes, by root.
    pub indexes: Vec<ContextIndex>,
}

/// Indexes in two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextCounts {
    /// How many are open.
    pub indexes: u64,
    /// How many bytes they have on disk.
    pub index_bytes: u64,
}

/// The body of `POST /v1/context/indexes/rebuild` and of `POST /v1/context/indexes/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeContextIndex {
    /// A directory of the workspace, absolute.
    pub directory: String,
}

/// The answer of `POST /v1/context/indexes/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextIndexRemoved {
    /// The root of the workspace.
    pub root: String,
    /// Whether there was an index.
    pub removed: bool,
}

/// The answer of `GET /v1/context/strategies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextStrategyList {
    /// The strategies, in the order in which they are reported.
    pub strategies: Vec<ContextStrategyInfo>,
}

/// A strategy that there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextStrategyInfo {
    /// Its name.
    pub id: String,
    /// The name of its breaker.
    pub breaker: String,
    /// Whether it is asked if nobody asks for it by name.
    pub enabled: bool,
    /// How long it may take.
    pub timeout_ms: u64,
}
