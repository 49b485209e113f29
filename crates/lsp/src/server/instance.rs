//! One process of a language server, from the handshake to its end.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use kernel::{CancellationToken, Cause, Clock, Deadline, Generation, Scope};
use lifecycle::{EndReason, Failure, LaunchFailure, RunningServer, ServerGeneration};
use process::{Child, StopPlan, Tasks};

use super::{launcher::exit_of, record::RecordLevel, reports::ServerReports, site::Site};
use crate::{
    client::{Client, RequestError},
    documents::Outbox,
    queries::Capabilities,
    text::PositionEncoding,
};
use watch::{CatchUpError, Deliver, Watch};

/// How long a server may take to answer `shutdown`, unless the configuration says otherwise.
const SHUTDOWN_TIME: Duration = Duration::from_secs(3);
/// Time to end after `exit`, after SIGTERM, and after SIGKILL.
const STOP: StopPlan = StopPlan {
    polite: Duration::from_secs(1),
    term: Duration::from_secs(2),
    kill: Duration::from_secs(5),
};
/// The same for a server that didn't answer `shutdown`, or wasn't sent one.
const STOP_UNASKED: StopPlan = StopPlan {
    polite: Duration::ZERO,
    ..STOP
};

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) site: Arc<Site>,
    pub(super) generation: ServerGeneration,
    pub(super) client: Client,
    /// `None` for a server that we didn't start.
    pub(super) child: Option<Child>,
    pub(super) told: Arc<ServerReports>,
    pub(super) capabilities: Arc<Capabilities>,
}

/// A running language server. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LanguageServer {
    shared: Arc<InstanceShared>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct WeakServer {
    shared: Weak<InstanceShared>,
}

impl WeakServer {
    /// The server, if it still exists.
    pub(crate) fn upgrade(&self) -> Option<LanguageServer> {
        let shared = self.shared.upgrade()?;
        Some(LanguageServer { shared })
    }
}

#[derive(Debug)]
struct InstanceShared {
    instance: Instance,
    encoding: PositionEncoding,
    clock: Arc<dyn Clock>,
    /// Cancelled when the server ends, and its tasks with it.
    ending: CancellationToken,
    /// Guards the watch, which is removed when the server ends.
    watch: Mutex<Option<Arc<Watch>>>,
}

impl LanguageServer {
    pub(super) fn start(
        instance: Instance,
        tasks: &Tasks,
        clock: &Arc<dyn Clock>,
        scratch: &Path,
    ) -> Result<Self, LaunchFailure> {
        let encoding = instance.capabilities.encoding().map_err(Failure::new)?;
        let generation = Generation::from_u64(instance.generation.get());
        let outbox = instance
            .site
            .documents
            .attach(generation, instance.capabilities.sync(), encoding)
            .ok_or_else(|| Failure::new("a newer process of this server is told about documents already"))?;
        // The watch starts before the first question. A server may register for files only later, but what it
        // pushes about one file may be out of date because of another from the beginning.
        let watch = watch_files(&instance, tasks, scratch);
        let ending = CancellationToken::new();
        let (told, client) = (Arc::clone(&instance.told), instance.client.clone());
        let pump = tell_documents(
            outbox,
            client,
            Arc::clone(&told),
            Arc::clone(clock),
            ending.scope(),
        );
        tasks.spawn("lsp-documents", pump);
        let server = Self {
            shared: Arc::new(InstanceShared {
                instance,
                encoding,
                clock: Arc::clone(clock),
                ending,
                watch: Mutex::new(watch.map(Arc::new)),
            }),
        };
        server.shared.instance.site.set_current(server.downgrade());
        Ok(server)
    }

    /// A handle that doesn't keep the server alive.
    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer {
            shared: Arc::downgrade(&self.shared),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.shared.instance.client
    }

    pub(crate) fn told(&self) -> &Arc<ServerReports> {
        &self.shared.instance.told
    }

    pub(crate) fn encoding(&self) -> PositionEncoding {
        self.shared.encoding
    }

    pub(crate) fn generation(&self) -> ServerGeneration {
        self.shared.instance.generation
    }

    /// The process; `None` for a server that we didn't start.
    pub(crate) fn child(&self) -> Option<&Child> {
        self.shared.instance.child.as_ref()
    }

    /// Waits until the server has been notified of all file changes so far.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn catch_up(&self, deadline: &Deadline, scope: &Scope) -> Result<(), CatchUpError> {
        let watch = self
            .shared
            .watch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match watch {
            Some(watch) => watch.catch_up(deadline.clone(), scope).await,
            None => Ok(()),
        }
    }

    fn end(&self, why: &'static str) {
        self.shared.ending.cancel(Cause::new("the language server", why));
        drop(
            self.shared
                .watch
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

impl RunningServer for LanguageServer {
    async fn ended(&self) -> EndReason {
        let instance = &self.shared.instance;
        let Some(child) = &instance.child else {
            return Failure::new(instance.client.closed().await.to_string());
        };
        // Both the end of the process and the end of its output are watched: some servers have a child
        // process that keeps the pipe open, and others close the pipe and keep running.
        tokio::select! {
            biased;
            ended = child.ended() => Failure {
                message: "the process ended".to_owned(),
                exit: exit_of(ended.exit),
                stderr_tail: child.stderr_tail(),
            },
            // Don't wait for the process to end: callers should learn at once that the server is no longer
            // usable.
            closed = instance.client.closed() => Failure {
                message: closed.to_string(),
                exit: None,
                stderr_tail: child.stderr_tail(),
            },
        }
    }

    async fn stop(&self) {
        let instance = &self.shared.instance;
        self.end("it is being stopped");
        let went_away = instance.client.why_closed().is_some();
        let mut plan = STOP_UNASKED;
        if !went_away {
            let time = instance.site.chosen().limits.shutdown.unwrap_or(SHUTDOWN_TIME);
            let deadline = Deadline::after(&self.shared.clock, time);
            let nobody = CancellationToken::new();
            let asked = instance
                .client
                .request("shutdown", &(), &deadline, &nobody.scope())
                .await;
            if asked.is_ok() {
                plan = STOP;
                drop(instance.client.notify("exit", &(), &deadline).await);
                drop(instance.client.flush(&deadline).await);
            }
        }
        instance.client.close("the server was stopped");
        if let Some(child) = &instance.child {
            let ended = child.stop(plan).await;
            let how = match ended.killed.count {
                0 => format!("generation {} ended ({})", instance.generation, ended.exit),
                count => format!(
                    "generation {} ended ({}); {count} of its processes had to be killed",
                    instance.generation, ended.exit
                ),
            };
            if went_away {
                instance.site.note_crash(ended.exit);
            }
            instance
                .site
                .record
                .add(RecordLevel::Stderr, &child.stderr_tail());
            instance.site.record.add(RecordLevel::State, &how);
        }
        instance
            .site
            .documents
            .detach(Generation::from_u64(instance.generation.get()));
        instance.site.add_past(&instance.client.counters());
    }

    /// Calls a method that no server has; the error is an answer, too.
    async fn probe(&self, deadline: &Deadline) -> Result<(), String> {
        let nobody = CancellationToken::new();
        let client = &self.shared.instance.client;
        match client
            .request("tidelock/areYouThere", &(), deadline, &nobody.scope())
            .await
        {
            Ok(_) | Err(RequestError::Response(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Sends messages about documents, in order, as long as the server is running.
async fn tell_documents(
    mut outbox: Outbox,
    client: Client,
    told: Arc<ServerReports>,
    clock: Arc<dyn Clock>,
    scope: Scope,
) {
    let documents = told.site().documents.clone();
    loop {
        let idle = match documents.next_idle() {
            Some(at) => Deadline::at(&clock, at).unwrap_or_else(|_| Deadline::after(&clock, Duration::ZERO)),
            None => Deadline::never(),
        };
        let message = tokio::select! {
            biased;
            message = outbox.next(&scope) => message,
            () = idle.passed() => {
                documents.close_idle();
                continue;
            }
        };
        let Some(message) = message else {
            return;
        };
        told.document_sent(&message);
        // The client closes a server that stops reading after a while, which also ends this wait.
        if client
            .notify(message.method(), &message, &Deadline::never())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Watches the files of the root, and notifies the server of those it registered for.
fn watch_files(instance: &Instance, tasks: &Tasks, scratch: &Path) -> Option<Watch> {
    let (told, client) = (Arc::clone(&instance.told), instance.client.clone());
    let deliver: Deliver = Arc::new(move |batch| {
        let (told, client) = (Arc::clone(&told), client.clone());
        Box::pin(async move {
            if let Some(params) = told.watched(&batch.changes) {
                // If the server has exited, it doesn't need the notification.
                drop(
                    client
                        .notify("workspace/didChangeWatchedFiles", &params, &Deadline::never())
                        .await,
                );
            }
        })
    });
    match Watch::start(&instance.site.key.root, scratch, deliver, tasks) {
        Ok(watch) => Some(watch),
        Err(error) => {
            let text = format!("files are not watched: {error}");
            instance.site.record.add(RecordLevel::State, &text);
            None
        }
    }
}
