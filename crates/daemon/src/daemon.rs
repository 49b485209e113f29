//! The daemon as a value: start it, wait for it, drop it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kernel::{CancellationToken, Cause, CircuitBreaker, Clock, Deadline};
use protocol::BootId;

use tokio::sync::mpsc;

use crate::access::load_or_create;
use crate::app::{App, AppParts, Started};
use crate::configuration;
use crate::durable::{Note, Subjects, keep_up};
use crate::http;
use crate::life::{Life, Phase};
use crate::options::{Options, Upkeep};
use crate::ownership::Ownership;
use crate::processes;
use crate::scratch::Scratch;
use crate::server::{self, BindError, Exposure, Kept, Remade, Server, SocketFile, SocketKeeper};
use crate::signals::SignalWatch;
use crate::start_error::StartError;
use process::{Processes, Tasks};

/// How long to wait for recording the changes of commands that were stopped because the daemon stops.
const CAPTURES_GRACE: Duration = Duration::from_secs(5);
/// How long the last notes and changes may take to reach the log after all requests are answered. On a healthy disk
/// this takes milliseconds.
const CLOSING_GRACE: Duration = Duration::from_secs(5);

/// How long language servers may take to shut down cleanly. After that they are stopped like any other process.
const LANGUAGE_SERVERS_GRACE: Duration = Duration::from_secs(5);

/// A running daemon. Dropping it without [`Daemon::wait`] ends it without waiting for anything.
#[derive(Debug)]
pub struct Daemon {
    app: Arc<App>,
    server: Server,
    cut: CancellationToken,
    background: Tasks,
    /// Cancelled after the last request, to end the background tasks.
    closing: CancellationToken,
    notes: mpsc::Sender<Note>,
    signals: SignalWatch,
    shutdown_grace: Duration,
    // Fields are dropped in this order: the socket is removed while we still own the home.
    _scratch: Scratch,
    _remade: Remade,
    _socket: SocketFile,
    _ownership: Ownership,
}

impl Daemon {
    /// Starts a daemon. When this returns, it answers requests.
    ///
    /// *Cancel safety*: if dropped, nothing keeps running; a token that was already created stays.
    ///
    /// # Errors
    /// See [`StartError`]; its advice says what to do.
    pub async fn start(options: Options, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let breakers = CircuitBreaker::new(options.breaker.clone(), Arc::clone(&clock))?;
        let written = configuration::load(options.configuration.as_deref())?;
        let mut settings = options.settings.clone();
        settings.extend(configuration::survey(&written, &options.languages.environment)?);
        let boot_id = BootId::generate();
        options.home.prepare()?;
        let ownership = Ownership::take(&options.home, boot_id)?;
        let signals = SignalWatch::new(options.signals).map_err(StartError::Signals)?;
        let (exposure, token_file) = match &options.token_file {
            Some(path) => (Exposure::Anyone, path.clone()),
            None => (Exposure::LoopbackOnly, options.home.token_file()),
        };
        let tcp = server::bind_tcp(options.listen, exposure)?;
        let address = tcp.local_addr().map_err(|source| BindError::Tcp {
            address: options.listen.address,
            source,
        })?;
        let token = load_or_create(&token_file, boot_id)?;
        let (unix, socket) = server::bind_unix(&options.home)?;

        let (background, closing) = (Tasks::default(), CancellationToken::new());
        let (home, upkeep, shutdown_grace) = (options.home.clone(), options.upkeep, options.shutdown_grace);
        let Started { app, scratch, notes } = App::start(
            options,
            written.configuration,
            AppParts {
                boot_id,
                breakers,
                settings,
                token,
                address,
                tasks: &background,
                closing: &closing,
                clock: &clock,
            },
        )
        .await?;
        let cut = CancellationToken::new();
        let server = Server::start(
            tcp,
            unix,
            http::router(&app),
            Arc::clone(&clock),
            app.life.scope(),
            cut.scope(),
        );
        app.life.become_ready();
        let remade = Remade::default();
        let keeper = SocketKeeper {
            home,
            boot_id,
            remade: remade.clone(),
        };
        background.spawn(
            "keeping the socket",
            keep_socket(keeper, server.clone(), app.life.clone(), Arc::clone(&clock)),
        );
        note(
            &notes,
            Note::Ready {
                address: address.to_string(),
            },
        );
        if let Upkeep::AtStartAndEvery(interval) = upkeep {
            let subjects = Subjects {
                log: app.durable.log.clone(),
                jobs: app.jobs.clone(),
                plans: app.plans.clone(),
                sessions: app.sessions.clone(),
                contexts: app.contexts.clone(),
            };
            let health = Arc::clone(&app.durable.health);
            background.spawn(
                "upkeep",
                keep_up(subjects, health, clock, interval, closing.scope()),
            );
        }
        tracing::info!(%boot_id, %address, socket = %app.socket.display(), "the daemon answers requests");
        Ok(Self {
            app,
            server,
            cut,
            background,
            closing,
            notes,
            signals,
            shutdown_grace,
            _scratch: scratch,
            _remade: remade,
            _socket: socket,
            _ownership: ownership,
        })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.app.address
    }

    #[must_use]
    pub fn boot_id(&self) -> BootId {
        self.app.boot_id
    }

    /// The breakers that this daemon owns. Clones share them.
    #[must_use]
    pub fn breakers(&self) -> CircuitBreaker {
        self.app.breakers.clone()
    }

    /// The processes that this daemon owns. Clones share them.
    #[must_use]
    pub fn processes(&self) -> Processes {
        self.app.processes.clone()
    }

    #[must_use]
    pub fn phase(&self) -> Arc<Phase> {
        self.app.life.phase()
    }

    #[must_use]
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        ShutdownHandle {
            life: self.app.life.clone(),
        }
    }

    /// Runs until something stops the daemon, then drains: requests in flight may finish within the grace period, and
    /// the rest are cut off. A second signal cuts them off at once.
    ///
    /// *Cancel safety*: dropping the future ends the daemon without waiting for anything.
    pub async fn wait(mut self) -> Ended {
        let stop = self.app.life.scope();
        let cause = tokio::select! {
            cause = stop.wait() => cause,
            signal = self.signals.next() => {
                self.app.life.stop(Cause::new(signal, "the process was told to end"));
                stop.wait().await
            }
        };
        tracing::info!(%cause, connections = self.server.connections(), "the daemon is draining");
        note(
            &self.notes,
            Note::Draining {
                cause: cause.to_string(),
            },
        );

        let grace = Deadline::after(&self.app.clock, self.shutdown_grace);
        // Running work may end while requests finish; nothing new starts. Turns are stopped at once: their
        // readers are being disconnected anyway, and the next prompt can continue each of them.
        self.app.sessions.close();
        self.app.jobs.close().await;
        let why = tokio::select! {
            biased;
            () = self.server.finished() => None,
            signal = self.signals.next() => Some(Cause::new(signal, "a second signal came while draining")),
            () = grace.clone().passed() => Some(Cause::new("the daemon", "the grace was over")),
        };
        let connections = match why {
            None => Connections::Finished,
            Some(why) => {
                let count = self.server.connections();
                tracing::warn!(%why, connections = count, "connections are cut off");
                self.cut.cancel(why);
                self.server.finished().await;
                Connections::Cut { count }
            }
        };
        let cut_connections = match connections {
            Connections::Finished => 0,
            Connections::Cut { count } => count,
        };
        // Jobs get the rest of the grace period. After that they are stopped and marked as interrupted.
        let rest = match cut_connections {
            0 => grace,
            _ => Deadline::after(&self.app.clock, Duration::ZERO),
        };
        // Commands that ended may have changed a lot. If time runs out, the next daemon records it.
        let (plans, patience, clock) = (self.app.plans.clone(), rest.clone(), Arc::clone(&self.app.clock));
        let mut captures = std::pin::pin!(async move {
            patience.passed().await;
            Deadline::after(&clock, CAPTURES_GRACE).passed().await;
            plans.stop_captures();
            std::future::pending::<()>().await;
        });
        // Turns first: they use jobs and plans.
        tokio::select! {
            () = self.app.sessions.drain(&rest) => {}
            () = &mut captures => {}
            signal = self.signals.next() => {
                tracing::warn!(signal, "a second signal came while draining; turns are left as they are");
            }
        }
        tokio::select! {
            () = self.app.jobs.drain(&rest) => {}
            () = &mut captures => {}
            signal = self.signals.next() => {
                tracing::warn!(signal, "a second signal came while draining; jobs are stopped");
                self.app.jobs.drain(&Deadline::after(&self.app.clock, Duration::ZERO)).await;
            }
        }
        // No command runs in a sandbox any more. An apply in progress is finished before the daemon closes,
        // or by the next one.
        self.app.plans.close();
        // What was indexed so far is on disk; the next daemon continues from there.
        self.app.contexts.close();
        // All requests are answered, so nothing needs the servers now. The log is still open to record their
        // end.
        let patience = Deadline::after(&self.app.clock, LANGUAGE_SERVERS_GRACE);
        self.app
            .language_servers
            .close(&patience, &self.cut.scope())
            .await;
        self.app.processes.stop_all(processes::AT_THE_END).await;
        note(&self.notes, Note::Stopped { cut_connections });
        self.close().await;
        self.app.life.become_stopped();
        Ended { cause, connections }
    }

    async fn close(&self) {
        let patience = Deadline::after(&self.app.clock, CLOSING_GRACE).passed();
        self.closing
            .cancel(Cause::new("the daemon", "everybody has been answered"));
        tokio::select! {
            biased;
            () = self.background.finished() => {}
            () = patience => tracing::warn!("the log does not take the last notes of this daemon"),
        }
    }
}

/// Recreates the socket and listens on it whenever it is removed, until the daemon stops.
async fn keep_socket(keeper: SocketKeeper, server: Server, life: Life, clock: Arc<dyn Clock>) {
    let stop = life.scope();
    while let Some(kept) = keeper.next(&clock, &stop).await {
        match kept {
            Kept::Again(listener) => server.listen(listener),
            Kept::HomeGone => {
                life.stop(Cause::new("the daemon", "its home was removed"));
                return;
            }
        }
    }
}

/// Records a note about this boot. The queue has room for all notes of a boot.
fn note(notes: &mpsc::Sender<Note>, note: Note) {
    if let Err(error) = notes.try_send(note) {
        tracing::warn!(%error, "a note on this life was lost");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.app.life.stop(Cause::new("the daemon", "it was dropped"));
        self.app.sessions.close();
        self.app.processes.begin_stop_all(processes::AT_THE_END);
        self.app.plans.close();
        self.app.contexts.close();
        for token in [&self.cut, &self.closing] {
            token.cancel(Cause::new("the daemon", "it was dropped"));
        }
        self.app.life.become_stopped();
    }
}

#[derive(Clone, Debug)]
pub struct ShutdownHandle {
    life: Life,
}

impl ShutdownHandle {
    /// Stops the daemon. The first cause counts; later calls change nothing.
    pub fn stop(&self, cause: Cause) {
        self.life.stop(cause);
    }
}

#[derive(Clone, Debug)]
pub struct Ended {
    pub cause: Arc<Cause>,
    pub connections: Connections,
}

/// What happened to the connections that were open when the daemon began to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    Finished,
    /// Some took longer than the grace period, or a second signal came.
    Cut {
        count: usize,
    },
}
