//! Runs the pipeline.

use std::sync::Arc;
use std::time::Duration;

use kernel::{CancellationToken, Deadline, Scope};
use tokenizer::Tokenizer;

use super::allocate::allocate;
use super::assemble::{Assembled, assemble};
use super::deduplicate::deduplicate;
use super::pack::{Room, pack};
use super::score::score;
use super::select::{select, settings_of};
use super::source::Sources;
use crate::answer::{Answer, StrategyOutcome, StrategyReport};
use crate::executor::{CancelOnDrop, Execute, Ran};
use crate::query::Query;
use crate::request::{ContextError, Request};
use crate::settings::ContextSettings;
use crate::strategy::{Ask, SearchTree, Strategy, StrategyName};

/// The steps, wired together: select, allocate, execute, deduplicate, resolve depth, score, pack, order,
/// preamble. Many questions may run at once.
#[derive(Debug)]
pub struct Pipeline {
    settings: ContextSettings,
    strategies: Vec<Arc<dyn Strategy>>,
    executor: Box<dyn Execute>,
}

impl Pipeline {
    /// A pipeline with these strategies, in this order.
    #[must_use]
    pub fn new(
        settings: ContextSettings,
        strategies: Vec<Arc<dyn Strategy>>,
        executor: impl Execute + 'static,
    ) -> Self {
        Self {
            settings,
            strategies,
            executor: Box::new(executor),
        }
    }

    #[must_use]
    pub fn strategies(&self) -> &[Arc<dyn Strategy>] {
        &self.strategies
    }

    /// Answers a question. With a budget of zero nothing is searched: the answer is empty, and all strategies are
    /// reported as left out. *Cancel safety*: the future may be dropped at any time; running strategies are cancelled.
    ///
    /// # Errors
    /// The request is invalid, or was cancelled. A failed strategy isn't an error: it is in the answer.
    pub async fn answer(
        &self,
        request: &Request,
        searched: SearchTree,
        tokenizer: &'static Tokenizer,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<Answer, ContextError> {
        let clock = Arc::clone(self.executor.clock());
        let begun = clock.now();
        let took = || clock.now().saturating_duration_since(begun);
        let mut selected = select(request, &self.settings, &self.strategies)?;
        if request.budget_tokens == 0 {
            selected.clear();
        }
        if selected.is_empty() {
            return Ok(self.answer_of(request, &[], Vec::new(), Assembled::default(), took()));
        }
        let set = |place: &usize| settings_of(&self.settings, &self.strategies[*place].name());
        let set: Vec<_> = selected.iter().map(set).collect();
        let budget = request.budget_tokens;
        let allocation = allocate(&set, budget, deadline.remaining());
        let ask = Arc::new(Ask {
            query: Query::parse(&request.query),
            focus: request.focus.clone(),
            searched: searched.clone(),
            most_hits: allocation.most_hits,
        });
        let asked = selected.iter().map(|place| Arc::clone(&self.strategies[*place]));
        let asked: Vec<_> = asked.zip(allocation.times).collect();
        let together = allocation
            .together
            .map_or_else(Deadline::never, |time| Deadline::after(&clock, time));
        let ran = self.executor.run(&ask, &asked, &together, scope).await;
        if scope.is_cancelled() {
            return Err(ContextError::Cancelled);
        }
        let findings = Findings {
            ran,
            weights: allocation.weights,
            searched,
            tokenizer,
            budget_tokens: budget,
            piece_tokens: allocation.piece_tokens,
            deadline: deadline.clone(),
        };
        let (ran, assembled) = Self::assemble(findings, scope).await?;
        Ok(self.answer_of(request, &selected, ran, assembled, took()))
    }

    /// Assembles the answer on a thread, which ends soon if the caller no longer waits.
    async fn assemble(findings: Findings, scope: &Scope) -> Result<(Vec<Ran>, Assembled), ContextError> {
        let question = CancelOnDrop(CancellationToken::new());
        let stop = question.0.scope();
        let work = tokio::task::spawn_blocking(move || {
            let assembled = assemble_findings(&findings, &stop)?;
            Some((findings.ran, assembled))
        });
        tokio::select! {
            biased;
            _ = scope.wait() => Err(ContextError::Cancelled),
            done = work => {
                // Only the line above cancels it. A panic would be a bug, and is in the log.
                done.ok().flatten().ok_or(ContextError::Cancelled)
            }
        }
    }

    fn answer_of(
        &self,
        request: &Request,
        selected: &[usize],
        ran: Vec<Ran>,
        assembled: Assembled,
        took: Duration,
    ) -> Answer {
        let mut reports: Vec<StrategyReport> = self
            .strategies
            .iter()
            .map(|strategy| StrategyReport {
                strategy: strategy.name(),
                outcome: StrategyOutcome::LeftOut,
                took: Duration::ZERO,
            })
            .collect();
        for (place, ran) in selected.iter().zip(ran) {
            reports[*place].outcome = ran.outcome;
            reports[*place].took = ran.took;
        }
        Answer {
            fragments: assembled.fragments,
            text: assembled.text,
            tokens: assembled.tokens,
            budget_tokens: request.budget_tokens,
            strategies: reports,
            left_out: assembled.left_out,
            left_out_total: assembled.left_out_total,
            took,
        }
    }
}

/// What the strategies have found, and the limits of the answer.
#[derive(Debug)]
struct Findings {
    ran: Vec<Ran>,
    weights: Vec<f64>,
    searched: SearchTree,
    tokenizer: &'static Tokenizer,
    budget_tokens: usize,
    /// The token limit of one piece, as long as other pieces need tokens.
    piece_tokens: usize,
    deadline: Deadline,
}

/// Assembles an answer from the findings. It reads files, so it blocks. `None` if the scope is cancelled.
fn assemble_findings(findings: &Findings, scope: &Scope) -> Option<Assembled> {
    let mut sources = Sources::new(&findings.searched, &findings.deadline, scope);
    let found = deduplicate(&findings.ran, &mut sources);
    if scope.is_cancelled() {
        return None;
    }
    let mut units = found.units;
    let names = findings.ran.iter().map(|ran| ran.strategy.clone());
    let weights = findings.weights.iter().copied();
    let strategies: Vec<(StrategyName, f64)> = names.zip(weights).collect();
    score(&mut units, &strategies);
    let room = Room {
        tokens: findings.budget_tokens,
        piece_tokens: findings.piece_tokens,
        deadline: &findings.deadline,
        tokenizer: findings.tokenizer,
    };
    let mut packed = pack(units, &room);
    packed.left_out_total += found.beyond;
    Some(assemble(packed, findings.budget_tokens, findings.tokenizer))
}
