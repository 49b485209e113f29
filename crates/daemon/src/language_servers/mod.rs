//! Language servers as the rest of the daemon sees them, with the types of the API.
//!
//! The crate `lsp` runs the servers; this module converts its types for the wire, and its errors to problems.

mod answers;
mod for_context;
pub(crate) mod problems;
mod questions;
mod servers;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::{Cause, Clock, Deadline, Scope};
use lsp::{
    AskError, ConfigHash, Detail, DocumentSettings, Environment, ExpectedProcess, Languages,
    LanguagesOptions, LifecycleSettings, QueryLimits, Registry, RegistrySettings, ServerView,
};
use process::{Processes, Tasks};
use protocol::{
    CodeAnswer, CodeQuery, CodeVerb, ConfigNote, ErrorCode, LspConfig, RawAnswer, RawRequest, Server,
    ServerHealth, ServerLog, StartServer, TrustConfig, Trusted,
};

use crate::app::App;
use crate::durable::TrustedConfigs;
use crate::home::Home;
use crate::http::Problem;
use crate::options::LanguageOptions;

pub(crate) use text::answer_text;

use problems::to_problem;

/// The default timeout of a raw request.
const RAW_TIME: Duration = Duration::from_secs(30);
/// The file name of the configuration in a repository.
const REPOSITORY_FILE: &str = ".lsp.json";

/// The language servers of this daemon. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct LanguageServers {
    languages: Languages,
    trusted: TrustedConfigs,
    clock: Arc<dyn Clock>,
}

/// Starts the service. No server is running yet.
pub(crate) fn start(
    home: &Home,
    options: LanguageOptions,
    processes: &Processes,
    trusted: &TrustedConfigs,
    scratch: &Path,
    tasks: &Tasks,
    clock: &Arc<dyn Clock>,
) -> LanguageServers {
    let settings = RegistrySettings {
        environment: Environment::new(options.environment),
        user_configuration: options.configuration,
        data_directory: home.language_server_data(),
    };
    let known = trusted.clone();
    let trust = move |hash: &ConfigHash| known.contains(&hash.to_string());
    let languages = Languages::new(LanguagesOptions {
        registry: Registry::new(settings, Arc::new(trust)),
        processes: processes.clone(),
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
        scratch: scratch.to_owned(),
        lifecycle: LifecycleSettings::default(),
        documents: DocumentSettings::default(),
        limits: QueryLimits::default(),
    });
    LanguageServers {
        languages,
        trusted: trusted.clone(),
        clock: Arc::clone(clock),
    }
}

/// Asks a question for a client, and counts it.
pub(crate) async fn ask(app: &App, verb: CodeVerb, query: CodeQuery) -> Result<CodeAnswer, Problem> {
    let asked_at = app.clock.now();
    let answer = app.language_servers.ask(verb, query, &app.life.scope()).await?;
    let elapsed = app.clock.now().saturating_duration_since(asked_at);
    app.metrics.query_answered(verb, &answer, elapsed);
    Ok(answer)
}

impl LanguageServers {
    /// All servers that were used, sorted by root and name.
    pub(crate) fn list(&self) -> Vec<Server> {
        let all = self.languages.list(Detail::Memory);
        all.iter()
            .map(|view| servers::to_wire(view, &self.clock))
            .collect()
    }

    /// The same without their memory use, which requires inspecting each of their processes.
    pub(crate) fn states(&self) -> Vec<Server> {
        let all = self.languages.list(Detail::Known);
        all.iter()
            .map(|view| servers::to_wire(view, &self.clock))
            .collect()
    }

    pub(crate) fn find(&self, id: &str) -> Result<Server, Problem> {
        let view = self.languages.find(id, Detail::Memory).map_err(to_problem)?;
        Ok(servers::to_wire(&view, &self.clock))
    }

    pub(crate) fn views(&self) -> Vec<lsp::ServerView> {
        self.languages.list(Detail::Memory)
    }

    /// Starts the servers for a path, or one of them, and waits until they answer.
    pub(crate) async fn start(&self, request: StartServer, scope: &Scope) -> Result<Vec<Server>, Problem> {
        let workspace = request.workspace.as_deref().map(Path::new);
        let started = self
            .languages
            .start(
                Path::new(&request.path),
                workspace,
                request.server.as_deref(),
                &questions::searched(request.environment),
                scope,
            )
            .await
            .map_err(to_problem)?;
        Ok(started
            .iter()
            .map(|view| servers::to_wire(view, &self.clock))
            .collect())
    }

    /// Starts a server that was used before, if its state is still what the caller saw, and waits until it responds.
    pub(crate) async fn start_again(
        &self,
        id: &str,
        seen: ExpectedProcess,
        scope: &Scope,
    ) -> Result<Server, Problem> {
        let started = self.languages.start_again(id, seen, scope).await;
        changed_by_hand(started, &self.clock)
    }

    /// Stops a server, if its state is still what the caller saw, until it is started by hand.
    pub(crate) async fn stop(
        &self,
        id: &str,
        seen: ExpectedProcess,
        scope: &Scope,
    ) -> Result<Server, Problem> {
        let stopped = self.languages.stop(id, seen, scope).await;
        changed_by_hand(stopped, &self.clock)
    }

    /// Restarts a server, if its state is still what the caller saw, and waits until it responds. Concurrent restarts
    /// are merged.
    pub(crate) async fn restart(
        &self,
        id: &str,
        seen: ExpectedProcess,
        scope: &Scope,
    ) -> Result<Server, Problem> {
        let restarted = self.languages.restart(id, seen, scope).await;
        changed_by_hand(restarted, &self.clock)
    }

    /// Stops all servers at once. Returns those that had a process.
    pub(crate) async fn stop_all(&self, scope: &Scope) -> Result<Vec<Server>, Problem> {
        let stopped = self.languages.stop_all(scope).await.map_err(to_problem)?;
        Ok(stopped
            .iter()
            .map(|view| servers::to_wire(view, &self.clock))
            .collect())
    }

    pub(crate) async fn health(&self, id: &str) -> Result<ServerHealth, Problem> {
        let check = self.languages.health(id).await.map_err(to_problem)?;
        Ok(servers::health_to_wire(&check, &self.clock))
    }

    pub(crate) fn log(&self, id: &str) -> Result<ServerLog, Problem> {
        let lines = self.languages.record(id).map_err(to_problem)?;
        Ok(servers::log_to_wire(lines))
    }

    pub(crate) async fn ask(
        &self,
        verb: CodeVerb,
        query: CodeQuery,
        scope: &Scope,
    ) -> Result<CodeAnswer, Problem> {
        let ask = questions::read(verb, query)?;
        let answered = self.languages.ask(ask, scope).await.map_err(to_problem)?;
        Ok(answers::answer(verb, answered))
    }

    pub(crate) async fn request(
        &self,
        id: &str,
        request: RawRequest,
        scope: &Scope,
    ) -> Result<RawAnswer, Problem> {
        let time = request.timeout_ms.map_or(RAW_TIME, Duration::from_millis);
        let asked = self
            .languages
            .request(id, &request.method, &request.params, time, scope);
        let (reply, generation) = asked.await.map_err(to_problem)?;
        let result = reply.parse().map_err(Problem::internal)?;
        let server = id.rsplit_once('@').map_or(id, |(server, _)| server).to_owned();
        Ok(RawAnswer {
            result,
            answered_by: protocol::AnsweredBy {
                id: id.to_owned(),
                server,
                generation,
                document_version: None,
            },
        })
    }

    pub(crate) async fn config(&self, workspace: &str) -> Result<LspConfig, Problem> {
        let path = Path::new(workspace);
        let overview = self.languages.overview(path).await.map_err(to_problem)?;
        let hash = self
            .languages
            .hash_to_trust(path)
            .await
            .map_err(to_problem)?
            .to_string();
        Ok(LspConfig {
            workspace: workspace.to_owned(),
            trusted: self.trusted.contains(&hash),
            hash,
            servers: overview.servers.iter().map(servers::entry_to_wire).collect(),
            notes: overview.notes.iter().map(note_to_wire).collect(),
        })
    }

    /// Trusts a repository's configuration and its programs as they are now.
    pub(crate) async fn trust(&self, request: TrustConfig) -> Result<Trusted, Problem> {
        let path = Path::new(&request.path);
        let workspace = match path.file_name() {
            Some(name) if name == REPOSITORY_FILE => path.parent().unwrap_or(path),
            _ => path,
        };
        let current = self
            .languages
            .hash_to_trust(workspace)
            .await
            .map_err(to_problem)?
            .to_string();
        if current != request.hash {
            let detail = format!("What is there now has the hash {current}; look at it again.");
            return Err(Problem::new(ErrorCode::StaleGeneration, detail));
        }
        let added = self.trusted.add(&request.hash, &request.path).await;
        added?;
        self.languages.trust_has_changed();
        tracing::info!(
            path = request.path,
            "a configuration of language servers is trusted"
        );
        Ok(Trusted {
            path: request.path,
            hash: request.hash,
        })
    }

    /// A count of all state changes; wait for another value to see the next one.
    pub(crate) async fn changed(&self, seen: u64, scope: &Scope) -> Result<u64, Arc<Cause>> {
        self.languages.changed_since(seen, scope).await
    }

    /// Stops all servers, and prevents new ones from starting.
    pub(crate) async fn close(&self, deadline: &Deadline, scope: &Scope) {
        let stopped = self.languages.close(deadline, scope).await;
        if !stopped.still_stopping.is_empty() {
            tracing::warn!(servers = ?stopped.still_stopping, "language servers do not stop");
        }
    }
}

/// A caller that saw another process gets the current server.
fn changed_by_hand(changed: Result<ServerView, AskError>, clock: &Arc<dyn Clock>) -> Result<Server, Problem> {
    changed
        .map(|view| servers::to_wire(&view, clock))
        .map_err(|error| match &error {
            AskError::Moved { current, .. } => {
                let current = servers::to_wire(current, clock);
                to_problem(error).with_current(current)
            }
            _ => to_problem(error),
        })
}

fn note_to_wire(note: &lsp::ConfigNote) -> ConfigNote {
    use lsp::ConfigNote as Note;
    let (path, hash): (PathBuf, Option<String>) = match note {
        Note::Untrusted { path, hash, .. } => (path.clone(), Some(hash.to_string())),
        Note::Broken(error) => (error.path().to_owned(), None),
        Note::LocalProgramNotUsed { program, .. } => (program.clone(), None),
        Note::NoRoot { .. } => (PathBuf::new(), None),
    };
    let message = match note {
        // The caller knows how to trust it in its own interface.
        Note::Untrusted { .. } => "not used: it can name programs to run, and is not trusted".to_owned(),
        // The file is shown next to it.
        Note::Broken(error) => {
            let text = error.to_string();
            let rest = text.strip_prefix(&*path.to_string_lossy()).unwrap_or(&text);
            rest.trim_start_matches([':', ' ']).to_owned()
        }
        _ => note.to_string(),
    };
    ConfigNote {
        path: path.to_string_lossy().into_owned(),
        message,
        hash,
    }
}

#[cfg(test)]
mod tests {
    use kernel::SystemClock;
    use lsp::{ServerGeneration, ServerKey, ServerState, ServerStatus};
    use protocol::RequestId;

    use super::*;

    #[test]
    fn who_saw_another_generation_gets_the_current_state() {
        let clock: Arc<dyn Clock> = SystemClock::shared();
        let view = ServerView {
            id: "ruff@1a2b".to_owned(),
            status: ServerStatus {
                key: ServerKey::new("ruff", Path::new("/r")),
                state: ServerState::Ready,
                since: None,
                generation: ServerGeneration::from_u64(4),
                leases: 1,
                restarts: 3,
                crashes: 0,
                last_error: None,
                late_events: 0,
            },
            readiness: None,
            pid: None,
            rss_bytes: None,
            last_exit: None,
            documents: Default::default(),
            pending: 0,
            queued: 0,
            counters: Default::default(),
        };
        let current = servers::to_wire(&view, &clock);
        assert_eq!(
            (current.generation, current.state),
            (4, protocol::ServerState::Ready)
        );
        let moved = AskError::Moved {
            seen: ServerGeneration::from_u64(3),
            current: Box::new(view),
        };
        let request_id = RequestId::generate();
        let found = changed_by_hand(Err(moved), &clock)
            .unwrap_err()
            .into_body(request_id);
        let detail = "You saw generation 3, and it is 4 now.";
        let expected = protocol::Problem {
            current: Some(current.into()),
            ..protocol::Problem::new(ErrorCode::StaleGeneration, detail, request_id.to_string())
        };
        assert_eq!(found, expected);
        // A client reads the current state from the wire.
        let read: protocol::Problem =
            serde_json::from_value(serde_json::to_value(&expected).unwrap()).unwrap();
        assert_eq!(read, expected);
    }
}
