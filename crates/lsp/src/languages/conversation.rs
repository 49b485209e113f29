//! One question to one process of one server.

use std::{path::Path, sync::Arc};

use futures_util::future::join_all;
use kernel::{Deadline, Scope};
use lifecycle::RunningServer as _;
use serde_json::Value;

use super::{
    ask::{Ask, Times, none_here},
    choices::Choice,
    disk,
    error::AskError,
    service::Languages,
};
use crate::{
    client::{Reply, RequestError},
    documents::Lease,
    queries::{
        Answer, Capabilities, Conversation, DiagnosticsBy, OpenDocument, Query, QueryError, QueryLimits,
        Reach, ReadyState, Refusal, Request, Step, Surroundings, Texts, answer_from_push,
    },
    server::{Awaited, LanguageServer, Site},
    servers::Chosen,
    text::{LineIndex, PositionEncoding},
};

/// The largest file that is read for an excerpt.
const EXCERPT_LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// The largest answer that is read on the runtime's thread: reading it takes less than a millisecond.
const READ_AT_ONCE_BYTES: usize = 64 * 1024;

pub(super) struct Talk<'a> {
    pub(super) languages: &'a Languages,
    pub(super) site: &'a Arc<Site>,
    pub(super) chosen: &'a Arc<Chosen>,
    pub(super) choice: &'a Choice,
    pub(super) server: &'a LanguageServer,
    pub(super) scope: &'a Scope,
}

/// Why this process didn't answer a question.
#[derive(Debug)]
pub(super) enum Attempt {
    /// It exited; the next process may be asked.
    WentAway,
    /// The server wants the question repeated; after the last attempt, this is the error.
    Again(AskError),
    /// Asking again would not help.
    Failed(AskError),
}

impl From<AskError> for Attempt {
    fn from(error: AskError) -> Self {
        Self::Failed(error)
    }
}

impl From<QueryError> for Attempt {
    fn from(error: QueryError) -> Self {
        Self::Failed(error.into())
    }
}

/// The result of waiting for what a server pushes.
enum Pushed {
    Answer(Box<Answer>),
    NotAnyMore((Arc<Path>, i32, LineIndex)),
}

/// Everything an answer depends on, owned, so that it can be read on another thread.
struct Around {
    server: Arc<str>,
    generation: u64,
    workspace: Arc<Path>,
    encoding: PositionEncoding,
    capabilities: Arc<Capabilities>,
    document: Option<(Arc<Path>, i32, LineIndex)>,
    diagnostics: Arc<[Value]>,
    limits: QueryLimits,
}

impl Around {
    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            server: &self.server,
            generation: self.generation,
            root: &self.workspace,
            encoding: self.encoding,
            capabilities: &self.capabilities,
            document: self.document.as_ref().map(|(path, version, text)| OpenDocument {
                path,
                version: *version,
                text,
            }),
            diagnostics: &self.diagnostics,
            texts: &OnDisk,
            limits: &self.limits,
        }
    }
}

struct OnDisk;

impl Texts for OnDisk {
    fn text(&self, path: &Path) -> Option<Arc<str>> {
        let read = disk::read_text(path, EXCERPT_LIMIT_BYTES);
        read.ok().map(|(text, _)| text)
    }
}

impl Talk<'_> {
    /// Asks. *Cancel safety*: may be dropped at any time.
    pub(super) async fn ask(&self, ask: &Ask, times: &Times) -> Result<Answer, Attempt> {
        let query = ask.query.clone().with_path(Arc::clone(&self.choice.path));
        let reach = query.reach();
        if reach != Reach::File {
            self.wait_until_ready(ask, times).await?;
        }
        let deadline = self.languages.answer_deadline(times, self.chosen);
        let lease = self.open_document().await?;
        if reach == Reach::Workspace {
            // If the watch is behind, the answer is slightly out of date, which is better than no answer.
            if let Err(error) = self.server.catch_up(&deadline, self.scope).await {
                tracing::debug!(server = %self.site.key, %error, "a server may not know of the last changes");
            }
            self.open_changed().await?;
        }
        self.all_sent(&deadline).await?;
        let document = match &lease {
            Some(lease) if reach == Reach::Workspace => Some(self.looked_at(lease, &query, &deadline).await?),
            Some(lease) => Some(self.sent(lease, &deadline).await?),
            None => None,
        };
        let mut around = self.around(document);
        let by = around.capabilities.diagnostics();
        match &query {
            Query::Diagnostics { .. } if by == DiagnosticsBy::Push => {
                let Some(lease) = &lease else {
                    return Err(none_here(self.choice).into());
                };
                match self.pushed(lease, around, &deadline).await? {
                    Pushed::Answer(answer) => return Ok(*answer),
                    Pushed::NotAnyMore(document) => around = self.around(Some(document)),
                }
            }
            Query::CodeActions { .. } => {
                if let Some((path, version, _)) = &around.document
                    && let Some(push) = self.server.told().pushed_already(path, *version)
                {
                    around.diagnostics = push.items;
                }
            }
            _ => {}
        }
        self.converse(query, around, &deadline).await
    }

    async fn wait_until_ready(&self, ask: &Ask, times: &Times) -> Result<(), Attempt> {
        let told = self.server.told();
        if told.readiness() == ReadyState::Ready {
            return Ok(());
        }
        let deadline = self.languages.ready_deadline(times, ask.when_indexing);
        tokio::select! {
            biased;
            ready = told.ready(&deadline, self.scope) => ready.map_err(|progress| {
                Attempt::Failed(AskError::NotReady {
                    server: Arc::clone(&self.site.key.server),
                    progress,
                })
            }),
            _ = self.server.ended() => Err(Attempt::WentAway),
        }
    }

    fn around(&self, document: Option<(Arc<Path>, i32, LineIndex)>) -> Around {
        Around {
            server: Arc::clone(&self.site.key.server),
            generation: self.server.generation().get(),
            workspace: Arc::clone(&self.choice.workspace),
            encoding: self.server.encoding(),
            capabilities: self.server.told().capabilities(),
            document,
            diagnostics: Arc::default(),
            limits: self.languages.shared.limits,
        }
    }

    async fn pushed(
        &self,
        lease: &Lease,
        mut around: Around,
        deadline: &Deadline,
    ) -> Result<Pushed, Attempt> {
        let told = self.server.told();
        let mut document = self.sent(lease, deadline).await?;
        if told.is_out_of_date(&document.0, document.1) {
            lease.touch();
            document = self.sent(lease, deadline).await?;
        }
        loop {
            let (path, version, _) = &document;
            let awaited = tokio::select! {
                biased;
                awaited = told.pushed(path, *version, deadline, self.scope) => awaited?,
                _ = self.server.ended() => return Err(Attempt::WentAway),
            };
            match awaited {
                Awaited::Push(push) => {
                    around.document = Some(document);
                    let answer = answer_from_push(&push, &around.surroundings())?;
                    return Ok(Pushed::Answer(Box::new(answer)));
                }
                Awaited::WantsToBeAsked => return Ok(Pushed::NotAnyMore(document)),
                // The deadline bounds the number of iterations.
                Awaited::Superseded => document = self.sent(lease, deadline).await?,
            }
        }
    }

    /// Requests and replies, until there is an answer.
    async fn converse(&self, query: Query, around: Around, deadline: &Deadline) -> Result<Answer, Attempt> {
        let reach = query.reach();
        let (mut conversation, mut requests) = Conversation::begin(query, &around.surroundings())?;
        let around = Arc::new(around);
        loop {
            let replies = self.request_all(&requests, deadline).await?;
            let bytes: usize = replies.iter().flatten().map(|reply| reply.bytes().len()).sum();
            // The answer depends only on the file itself, which is in memory.
            let step = if reach != Reach::Workspace && bytes <= READ_AT_ONCE_BYTES {
                go_on(conversation, &replies, &around)
            } else {
                let around = Arc::clone(&around);
                let read = self
                    .languages
                    .blocking(move || go_on(conversation, &replies, &around));
                read.await?
            };
            match step? {
                Step::Done(answer) => return Ok(*answer),
                Step::Ask(next, more) => (conversation, requests) = (next, more),
            }
        }
    }

    async fn request_all(
        &self,
        requests: &[Request],
        deadline: &Deadline,
    ) -> Result<Vec<Result<Reply, Refusal>>, Attempt> {
        let client = self.server.client();
        let sent = requests
            .iter()
            .map(|request| client.request(request.method, &request.params, deadline, self.scope));
        let replies = join_all(sent).await;
        replies.into_iter().map(|reply| self.sort_out(reply)).collect()
    }

    fn sort_out(&self, reply: Result<Reply, RequestError>) -> Result<Result<Reply, Refusal>, Attempt> {
        let failed = |source| AskError::Request {
            server: Arc::clone(&self.site.key.server),
            source,
        };
        match reply {
            Ok(reply) => Ok(Ok(reply)),
            Err(error) if error.may_be_sent_again() => Err(Attempt::Again(failed(error))),
            Err(RequestError::Response(error)) => Ok(Err(Refusal {
                code: error.code,
                message: error.message,
            })),
            Err(RequestError::Closed { .. }) => Err(Attempt::WentAway),
            Err(error) => Err(Attempt::Failed(failed(error))),
        }
    }
}

fn go_on(
    conversation: Conversation,
    replies: &[Result<Reply, Refusal>],
    around: &Around,
) -> Result<Step, QueryError> {
    let around = around.surroundings();
    let replies: Vec<_> = replies
        .iter()
        .map(|reply| match reply {
            // A reply that isn't JSON doesn't get this far.
            Ok(reply) => reply.raw().map_err(|error| Refusal {
                code: 0,
                message: error.to_string(),
            }),
            Err(refusal) => Err(refusal.clone()),
        })
        .collect();
    conversation.answered(&replies, &around)
}
