//! The interface through which the rest of the daemon asks for context.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use context::{
    Answer, BadPath, ContextError, Contexts, FOCUS_LIMIT, IndexInfo, IndexState, Request, StrategyName,
    StrategySettings, TokenizerName,
};
use kernel::{Clock, Deadline, Scope};
use plans::{PlanError, Plans};
use sessions::permissions::Readable;

use super::shown::Shown;
use super::tree::{SearchedTree, TreeRef, blocking};
use super::{focus, wire};
use crate::metrics::ContextMetrics;

/// Answers questions about code. Clones share the service.
#[derive(Clone, Debug)]
pub(crate) struct ContextService {
    pub(super) contexts: Contexts,
    pub(super) plans: Plans,
    pub(super) metrics: ContextMetrics,
    pub(super) clock: Arc<dyn Clock>,
}

#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) tree: TreeRef,
    pub(crate) query: String,
    /// Files that it is about, as the user wrote them.
    pub(crate) focus: Vec<String>,
    /// The base for relative paths in `focus`.
    pub(crate) focus_from: FocusFrom,
    pub(crate) budget_tokens: Option<usize>,
    pub(crate) patience: Option<Duration>,
    pub(crate) only: Vec<String>,
    pub(crate) without: Vec<String>,
    pub(crate) tokenizer: Option<TokenizerName>,
    pub(crate) readable: Readable,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FocusFrom {
    Directory,
    Root,
}

#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) root: PathBuf,
    pub(crate) answer: Answer,
    pub(crate) index: IndexInfo,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QuestionError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(transparent)]
    Focus(BadPath),
    #[error("there is no strategy `{name}`; there are: {known}")]
    NoSuchStrategy {
        /// Where it is named: `only` or `without`, and its index there.
        field: String,
        name: String,
        known: String,
    },
}

impl ContextService {
    /// Answers a question. *Cancel safety*: may be dropped at any time; its work is cancelled, and it counts as
    /// cancelled.
    pub(crate) async fn ask(&self, question: Question, scope: &Scope) -> Result<Answered, QuestionError> {
        let mut counted = self.metrics.begins(&self.clock);
        let answered = self.answer(question, scope).await;
        match &answered {
            Ok(answered) => counted.is_answered(&answered.answer),
            Err(QuestionError::Context(ContextError::Cancelled)) => {}
            Err(_) => counted.is_refused(),
        }
        answered
    }

    async fn answer(&self, question: Question, scope: &Scope) -> Result<Answered, QuestionError> {
        let settings = self.contexts.settings();
        let only = self.strategies_of("only", &question.only)?;
        let without = self.strategies_of("without", &question.without)?;
        // Each file in focus costs a disk access, so check the limit before the first.
        if question.focus.len() > FOCUS_LIMIT {
            return Err(QuestionError::Context(ContextError::TooLarge {
                what: "the focus",
                found: format!("{} files", question.focus.len()),
                most: format!("{FOCUS_LIMIT} files"),
            }));
        }
        let patience = question.patience.unwrap_or(settings.patience);
        let deadline = Deadline::after(&self.clock, patience);
        let found = question.tree.find(&self.plans, deadline.clone()).await?;
        let SearchedTree {
            root,
            directory,
            view,
        } = found;
        let focus = {
            let directory = match question.focus_from {
                FocusFrom::Directory => directory,
                FocusFrom::Root => root.clone(),
            };
            let (written, root) = (question.focus, root.clone());
            let locate = move || -> Result<Vec<_>, QuestionError> {
                let paths = written.iter();
                paths.map(|path| focus::locate(path, &directory, &root)).collect()
            };
            blocking(locate).await??
        };
        let request = Request {
            root: root.clone(),
            view: match question.readable.is_everything() {
                true => view,
                false => Arc::new(Shown {
                    view,
                    readable: question.readable,
                }),
            },
            query: question.query,
            focus,
            budget_tokens: question.budget_tokens.unwrap_or(settings.budget_tokens),
            // The time for finding the tree counts. A limit that is too large is passed on unchanged, and is
            // refused.
            patience: Some(match deadline.remaining() {
                Some(left) if patience <= context::DEADLINE_LIMIT => left,
                _ => patience,
            }),
            only,
            without,
            tokenizer: question.tokenizer,
        };
        let answer = self.contexts.ask(request, scope).await?;
        let index = self.index_of(&root);
        Ok(Answered { root, answer, index })
    }

    fn strategies_of(&self, member: &str, names: &[String]) -> Result<Vec<StrategyName>, QuestionError> {
        let known = self.contexts.strategies();
        let mut found = Vec::new();
        for (place, name) in names.iter().enumerate() {
            match known.iter().find(|known| known.as_str() == name) {
                Some(strategy) => found.push(strategy.clone()),
                None => {
                    let known: Vec<&str> = known.iter().map(StrategyName::as_str).collect();
                    return Err(QuestionError::NoSuchStrategy {
                        field: format!("{member}.{place}"),
                        name: name.chars().take(100).collect(),
                        known: known.join(", "),
                    });
                }
            }
        }
        Ok(found)
    }

    pub(crate) fn indexes(&self) -> Vec<IndexInfo> {
        self.contexts.indexes()
    }

    /// Rebuilds the index of the tree that contains a directory. *Cancel safety*: may be dropped; the index is built in
    /// the background.
    pub(crate) async fn rebuild(&self, directory: PathBuf) -> Result<IndexInfo, QuestionError> {
        let root = self.plans.root_of(directory).await?;
        if let Some(index) = self.contexts.index(&root) {
            index.rebuild();
        }
        Ok(self.index_of(&root))
    }

    /// The state of a tree's index. One that is being removed counts as absent.
    fn index_of(&self, root: &Path) -> IndexInfo {
        match self.contexts.index(root) {
            Some(index) => index.info(),
            None => IndexInfo {
                root: root.to_owned(),
                state: IndexState::Building { files: 0 },
                files: 0,
                source_bytes: 0,
                index_bytes: 0,
                used: SystemTime::now(),
            },
        }
    }

    /// Removes the index of the tree that contains a directory. Returns the tree's root, and whether there was an
    /// index. *Cancel safety*: if dropped, it may or may not be removed.
    pub(crate) async fn forget(
        &self,
        directory: PathBuf,
        scope: &Scope,
    ) -> Result<(PathBuf, bool), QuestionError> {
        let found = self.plans.root_of(directory.clone()).await;
        // A directory that no longer exists may still have an index, under its own name.
        let root = found.as_ref().unwrap_or(&directory).clone();
        let forgotten = self.contexts.forget(&root, scope).await;
        let was_there = forgotten.map_err(|source| ContextError::Unreadable {
            root: root.clone(),
            source,
        })?;
        match found {
            Err(error) if !was_there => Err(error.into()),
            _ => Ok((root, was_there)),
        }
    }

    /// The available strategies in order, with their settings.
    pub(crate) fn strategies(&self) -> Vec<(StrategyName, StrategySettings)> {
        let settings = self.contexts.settings();
        let strategies = self.contexts.strategies().into_iter();
        strategies
            .map(|name| {
                let of_command = || {
                    let mut commands = settings.commands.iter();
                    let command = commands.find(|command| command.name == name.as_str())?;
                    Some(StrategySettings {
                        enabled: true,
                        timeout: command.timeout,
                        weight_percent: command.weight_percent,
                    })
                };
                let own = settings.strategies.get(name.as_str()).cloned();
                let set = own.or_else(of_command).unwrap_or_default();
                (name, set)
            })
            .collect()
    }

    pub(crate) fn counts(&self) -> protocol::ContextCounts {
        wire::counts_to_wire(&self.indexes())
    }

    pub(crate) fn metrics(&self) -> &ContextMetrics {
        &self.metrics
    }

    /// Removes the least recently used indexes if there are too many, and returns how many. *Cancel safety*: may be
    /// dropped; what was removed stays removed.
    pub(crate) async fn collect(&self) -> io::Result<usize> {
        self.contexts.collect().await
    }

    pub(crate) fn close(&self) {
        self.contexts.close();
    }
}
