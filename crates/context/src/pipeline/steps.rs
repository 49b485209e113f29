//! The steps after the search, wired together.

use kernel::{Deadline, Scope};
use tokenizer::Tokenizer;

use super::allocate::{Allocate, AsSet};
use super::assemble::{Assembled, assemble};
use super::deduplicate::{ByDefinition, Deduplicate};
use super::depth::{BodyToName, ResolveDepth};
use super::order::{BestFileFirst, Order};
use super::pack::{BestFirst, Pack, Room};
use super::preamble::{Heading, Preamble};
use super::score::{ReciprocalRank, Score};
use super::select::{ByName, Select};
use super::source::Sources;
use crate::executor::Ran;
use crate::strategy::{Ground, StrategyName};

#[derive(Debug)]
pub(super) struct Steps {
    pub(super) select: Box<dyn Select>,
    pub(super) allocate: Box<dyn Allocate>,
    deduplicate: Box<dyn Deduplicate>,
    depth: Box<dyn ResolveDepth>,
    score: Box<dyn Score>,
    pack: Box<dyn Pack>,
    order: Box<dyn Order>,
    preamble: Box<dyn Preamble>,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            select: Box::new(ByName),
            allocate: Box::new(AsSet),
            deduplicate: Box::new(ByDefinition),
            depth: Box::new(BodyToName),
            score: Box::new(ReciprocalRank),
            pack: Box::new(BestFirst),
            order: Box::new(BestFileFirst),
            preamble: Box::new(Heading),
        }
    }
}

/// What the strategies have found, and the limits of the answer.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) ran: Vec<Ran>,
    pub(super) weights: Vec<f64>,
    pub(super) ground: Ground,
    pub(super) tokenizer: &'static Tokenizer,
    pub(super) budget_tokens: usize,
    /// The token limit of one piece, as long as others want some.
    pub(super) piece_tokens: usize,
    pub(super) deadline: Deadline,
}

impl Steps {
    /// Assembles an answer from the findings. It reads files, so it blocks. `None` if the scope is cancelled.
    pub(super) fn assemble(&self, findings: &Findings, scope: &Scope) -> Option<Assembled> {
        let mut sources = Sources::new(&findings.ground, &findings.deadline, scope);
        let found = self.deduplicate.deduplicate(&findings.ran, &mut sources);
        if scope.is_cancelled() {
            return None;
        }
        let mut units = found.units;
        let names = findings.ran.iter().map(|ran| ran.strategy.clone());
        let weights = findings.weights.iter().copied();
        let strategies: Vec<(StrategyName, f64)> = names.zip(weights).collect();
        self.score.score(&mut units, &strategies);
        let room = Room {
            tokens: findings.budget_tokens,
            piece_tokens: findings.piece_tokens,
            deadline: &findings.deadline,
            depth: self.depth.as_ref(),
            preamble: self.preamble.as_ref(),
            tokenizer: findings.tokenizer,
        };
        let mut packed = self.pack.pack(units, &room);
        packed.left_out_total += found.beyond;
        let order = self.order.as_ref();
        Some(assemble(
            packed,
            findings.budget_tokens,
            order,
            findings.tokenizer,
        ))
    }
}
