//! The whole of it, over real processes: the service, and a fault server that it has found in the user's configuration.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use eventlog::{Log, SqliteOptions};
use kernel::{Clock, SystemClock};
use lsp::{
    Answered, Ask, AskError, At, Detail, DocumentSettings, Languages, LanguagesOptions, LifecycleSettings,
    Query, QueryLimits, QueryResult, Registry, ServerView, WhenIndexing, WhenStarting,
};
use process::{KeeperProgram, Processes, ProcessesOptions, Tasks};
use protocol::{BootId, HomeId};
use protocol::{Diagnostic, Position};
use serde_json::{Value, json};

use crate::{
    faults_server::{is_alive, kill_pid},
    servers_tree::{Tree, nothing},
    support::{LONG, live, patient, soon, until},
};

/// A service, and everything that it works on.
pub(crate) struct House {
    pub(crate) tree: Tree,
    pub(crate) languages: Languages,
    pub(crate) processes: Processes,
    pub(crate) tasks: Tasks,
}

/// How to build one.
pub(crate) struct Plan {
    /// What the fault server does.
    pub(crate) script: Value,
    /// Members of its configuration that replace others.
    pub(crate) configuration: Value,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) lifecycle: LifecycleSettings,
    pub(crate) documents: DocumentSettings,
}

impl Plan {
    pub(crate) fn with(script: Value) -> Self {
        Self {
            script,
            configuration: json!({}),
            clock: SystemClock::shared(),
            lifecycle: LifecycleSettings::default(),
            documents: DocumentSettings::default(),
        }
    }

    /// Builds it in a tree whose workspace is still empty.
    pub(crate) async fn build(self) -> House {
        self.build_in(Tree::new()).await
    }

    pub(crate) async fn build_in(mut self, tree: Tree) -> House {
        for name in ["pids", "record"] {
            self.script[name] = json!(tree.path(name));
        }
        tree.write("script.json", &self.script.to_string());
        let mut server = json!({"command": command(&tree), "extensions": {".fault": "fault"}});
        let members = self.configuration.as_object().cloned().unwrap_or_default();
        server.as_object_mut().unwrap().extend(members);
        tree.write("user.json", &json!({"servers": {"fault": server}}).to_string());
        let registry = tree.registry(nothing);
        self.build_with(tree, registry).await
    }

    pub(crate) async fn build_with(self, tree: Tree, registry: Registry) -> House {
        fs::create_dir_all(tree.path("scratch")).unwrap();
        let options = SqliteOptions {
            path: tree.path("log.sqlite"),
        };
        let tasks = Tasks::default();
        let processes = Processes::open(ProcessesOptions {
            log: Log::open_sqlite(&options, SystemClock::shared()).unwrap(),
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(program().into()),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let languages = Languages::new(LanguagesOptions {
            registry,
            processes: processes.clone(),
            tasks: tasks.clone(),
            clock: self.clock,
            scratch: tree.path("scratch"),
            lifecycle: self.lifecycle,
            documents: self.documents,
            limits: QueryLimits::default(),
        });
        House {
            tree,
            languages,
            processes,
            tasks,
        }
    }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_fault-server")
}

/// The command of the fault server with the script of a tree.
pub(crate) fn command(tree: &Tree) -> Vec<String> {
    let script = tree.path("script.json").display().to_string();
    [program(), "--script", &script].map(str::to_owned).to_vec()
}

impl House {
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.tree.workspace().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.tree.write(&format!("workspace/{name}"), text);
    }

    /// Asks, and does not wait for ever.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Answered, AskError> {
        soon(self.languages.ask(ask, &live())).await
    }

    pub(crate) async fn hover(&self, name: &str) -> Result<(String, u64), AskError> {
        let answered = self.ask(hover(&self.file(name))).await?;
        Ok((hover_text(&answered), generation(&answered)))
    }

    /// The only server that was used.
    pub(crate) fn view(&self) -> ServerView {
        let mut views = self.languages.list(Detail::Known);
        assert_eq!(views.len(), 1, "{views:?}");
        views.remove(0)
    }

    /// What the server itself says of its documents: version and text by the name of the file.
    pub(crate) async fn documents_in_server(&self) -> BTreeMap<String, (i64, String)> {
        let state = self.request("fault/state", json!({})).await;
        let documents = state["documents"].as_object().unwrap().iter();
        let read = documents.map(|(uri, document)| {
            let version = document["version"].as_i64().unwrap();
            let text = document["text"].as_str().unwrap().to_owned();
            (name_of(uri), (version, text))
        });
        read.collect()
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        let id = self.view().id;
        let scope = live();
        let request = self.languages.request(&id, method, &params, LONG, &scope);
        soon(request).await.unwrap().0.parse().unwrap()
    }

    /// The processes in this role, of all starts.
    pub(crate) fn pids(&self, role: &str) -> Vec<u32> {
        let lines = fs::read_to_string(self.tree.path("pids")).unwrap_or_default();
        let lines = lines.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines
            .filter(|line| line[1] == role)
            .map(|line| line[0].parse().unwrap())
            .collect()
    }

    /// Waits until so many servers were started, and kills the last one.
    pub(crate) async fn kill_start(&self, number: usize) {
        until("a start", || self.pids("server").len() == number).await;
        kill_pid(self.pids("server")[number - 1]);
    }

    /// The messages that servers have taken so far.
    pub(crate) fn recorded(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.tree.path("record")).unwrap_or_default();
        // The last line may be on its way.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// How often a method was heard.
    pub(crate) fn heard(&self, method: &str) -> usize {
        let heard = self.recorded();
        heard.iter().filter(|message| message["method"] == method).count()
    }

    /// What was said about each document, as the method's last word and the version.
    pub(crate) fn histories(&self) -> BTreeMap<String, Vec<(String, Option<i64>)>> {
        let mut histories: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for message in self.recorded() {
            let method = message["method"].as_str().unwrap_or_default();
            let Some(said) = method.strip_prefix("textDocument/did") else {
                continue;
            };
            let document = &message["params"]["textDocument"];
            let name = name_of(document["uri"].as_str().unwrap());
            let event = (said.to_lowercase(), document["version"].as_i64());
            histories.entry(name).or_default().push(event);
        }
        histories
    }

    /// Closes the service, and sees that nothing is left of it.
    pub(crate) async fn leave(self) {
        let pids: Vec<u32> = ["server", "grandchild"]
            .iter()
            .flat_map(|role| self.pids(role))
            .collect();
        soon(self.languages.close(&patient(), &live())).await;
        for view in self.languages.list(Detail::Known) {
            assert_eq!(view.documents, lsp::DocumentCounts::default(), "{view:?}");
            assert_eq!(view.pid, None, "{view:?}");
        }
        drop(self.languages);
        until("children are gone", || self.processes.count() == 0).await;
        let alive: Vec<u32> = pids.into_iter().filter(|pid| is_alive(*pid)).collect();
        assert!(alive.is_empty(), "processes were left: {alive:?}");
        soon(self.tasks.finished()).await;
        assert_eq!(self.tasks.running(), 0);
        assert_eq!(fs::read_dir(self.tree.path("scratch")).unwrap().count(), 0);
    }
}

fn name_of(uri: &str) -> String {
    uri.rsplit('/').next().unwrap().to_owned()
}

/// A question that waits for everything.
pub(crate) fn question(query: Query, path: &Path) -> Ask {
    Ask {
        environment: lsp::Environment::default(),
        query,
        path: path.to_owned(),
        workspace: None,
        server: None,
        when_starting: WhenStarting::Wait,
        when_indexing: WhenIndexing::Wait,
        timeout: None,
    }
}

pub(crate) fn at(path: &Path, line: u32, column: u32) -> At {
    At {
        path: path.into(),
        position: Position { line, column },
    }
}

pub(crate) fn hover(path: &Path) -> Ask {
    question(Query::Hover(at(path, 1, 1)), path)
}

pub(crate) fn diagnostics(path: &Path) -> Ask {
    question(Query::Diagnostics { path: path.into() }, path)
}

pub(crate) fn definition(path: &Path, line: u32, column: u32) -> Ask {
    question(Query::Definition(at(path, line, column)), path)
}

pub(crate) fn generation(answered: &Answered) -> u64 {
    answered.answer.origins[0].generation
}

pub(crate) fn hover_text(answered: &Answered) -> String {
    match &answered.answer.result {
        QueryResult::Hover(Some(hover)) => hover.text.clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn found(answered: &Answered) -> &[Diagnostic] {
    match &answered.answer.result {
        QueryResult::Diagnostics(list) => &list.items,
        other => panic!("{other:?}"),
    }
}

/// Settings under which a server that fails is tried again at once.
pub(crate) fn hasty() -> LifecycleSettings {
    LifecycleSettings {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(1),
        ..LifecycleSettings::default()
    }
}
