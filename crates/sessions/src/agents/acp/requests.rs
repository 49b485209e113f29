//! Requests that an agent makes while it answers a prompt. Each request is a task, so that a slow one doesn't hold up
//! anything else; they all end with the turn.

use std::sync::Arc;

use process::Tasks;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::files::Files;
use super::permission::{self, Ends, Wish};
use super::terminals::{Terminals, line_of};
use super::wire::{
    CreateTerminal, NamedTerminal, Outbox, ReadTextFile, RequestId, RequestPermission, RpcError,
    WriteTextFile,
};
use crate::asking::Asker;

/// How many requests of an agent are handled at once. Further ones are refused.
const REQUESTS_LIMIT: u32 = 64;

/// Answers an agent's requests. Clones share the same state.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    shared: Arc<RequestContext>,
}

#[derive(Debug)]
struct RequestContext {
    outbox: Outbox,
    files: Files,
    terminals: Arc<Terminals>,
    asker: Asker,
    tasks: Tasks,
    ends: Ends,
    places: Arc<Semaphore>,
}

/// A parsed request.
#[derive(Debug)]
pub(super) enum Request {
    /// A question for the user.
    Permission(Box<RequestPermission>, Wish),
    Other {
        method: String,
        params: Value,
    },
}

impl Requests {
    pub(super) fn new(
        outbox: Outbox,
        files: Files,
        terminals: Arc<Terminals>,
        asker: Asker,
        tasks: Tasks,
        ends: Ends,
    ) -> Self {
        Self {
            shared: Arc::new(RequestContext {
                outbox,
                files,
                terminals,
                asker,
                tasks,
                ends,
                places: Arc::new(Semaphore::new(REQUESTS_LIMIT as usize)),
            }),
        }
    }

    /// Handles a request in a task, which also sends the answer to the agent.
    pub(super) async fn take(&self, id: RequestId, request: Request) {
        let shared = Arc::clone(&self.shared);
        let Ok(place) = Arc::clone(&shared.places).try_acquire_owned() else {
            let busy = RpcError::failed(format!("{REQUESTS_LIMIT} requests are being answered already"));
            shared.outbox.answer(&id, Err(busy)).await;
            return;
        };
        self.shared.tasks.spawn("acp-request", async move {
            let answer = shared.answer(request).await;
            // An agent that doesn't read its input must not hold up the end of the turn.
            tokio::select! {
                biased;
                () = shared.outbox.answer(&id, answer) => {}
                _ = shared.ends.over.wait() => {}
            }
            drop(place);
        });
    }

    /// Waits until no request is being handled. The turn's token must be cancelled first.
    pub(super) async fn all_ended(&self) {
        drop(self.shared.places.acquire_many(REQUESTS_LIMIT).await);
    }
}

impl RequestContext {
    async fn answer(&self, request: Request) -> Result<Value, RpcError> {
        let (method, params) = match request {
            Request::Permission(request, wish) => {
                return permission::answer(&self.asker, wish, &request, &self.ends).await;
            }
            Request::Other { method, params } => (method, params),
        };
        match method.as_str() {
            "fs/read_text_file" => {
                let wanted: ReadTextFile = parsed(params)?;
                let path = self.files.roots.path(&wanted.path)?;
                self.allows("read", &path.to_string()).await?;
                self.files.read(path, &wanted).await
            }
            "fs/write_text_file" => {
                let wanted: WriteTextFile = parsed(params)?;
                let path = self.files.roots.path(&wanted.path)?;
                self.allows("write", &path.to_string()).await?;
                self.files.write(path, wanted).await
            }
            "terminal/create" => {
                let wanted: CreateTerminal = parsed(params)?;
                self.allows("shell", &line_of(&wanted)).await?;
                self.terminals.create(wanted)
            }
            "terminal/output" => self.terminals.output(&named(params)?),
            "terminal/wait_for_exit" => self.terminals.wait(&named(params)?, &self.ends.over).await,
            "terminal/kill" => self.terminals.kill(&named(params)?),
            "terminal/release" => self.terminals.release(&named(params)?),
            method => Err(RpcError::no_method(method)),
        }
    }

    async fn allows(&self, tool: &str, subject: &str) -> Result<(), RpcError> {
        let wish = Wish {
            item: None,
            tool: tool.to_owned(),
            subject: subject.to_owned(),
        };
        permission::allows(&self.asker, wish, &self.ends).await
    }
}

fn named(params: Value) -> Result<String, RpcError> {
    parsed::<NamedTerminal>(params).map(|named| named.terminal_id)
}

/// Parses the parameters of a request.
pub(super) fn parsed<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::refused(error.to_string()))
}
