//! Real servers through the whole service: what a newcomer gets, and what becomes of it when the server is killed.
//!
//! Each server has a test of its own, so that they run side by side. One that is not here is skipped, with a note.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
    time::Duration,
};

use lsp::{Answered, Ask, Declarations, Detail, Query, QueryResult, Registry, RegistrySettings, ServerState};
use protocol::Diagnostic;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    fixtures::{FIXTURES, Fixture, Mistake, Place, Says},
    languages_house::{House, Plan, at, diagnostics, found, generation, question},
    servers_real::{environment, report_missing},
    servers_tree::{Tree, nothing},
    support::{live, until},
};

/// For one question, a start and reading the project included, on a machine that is busy with others.
const PATIENCE: Duration = Duration::from_secs(150);

/// Where the process is that does the work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Worker {
    /// It is the one that was started.
    Itself,
    /// The one that was started only waits for it.
    BehindShim,
}

/// Whether a mistake in one file shows in another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Looks {
    AcrossFiles,
    AtOneFile,
}

/// A server and what is known of it.
#[derive(Debug)]
struct Case {
    server: &'static str,
    fixture: &'static str,
    worker: Worker,
    looks: Looks,
}

const fn case(server: &'static str, fixture: &'static str, worker: Worker, looks: Looks) -> Case {
    Case {
        server,
        fixture,
        worker,
        looks,
    }
}

macro_rules! servers {
    ($($test:ident: $case:expr;)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                check($case).await;
            }
        )*
    };
}

servers! {
    ruff: case("ruff", "python", Worker::Itself, Looks::AtOneFile);
    ty: case("ty", "python", Worker::Itself, Looks::AcrossFiles);
    basedpyright: case("basedpyright", "python", Worker::BehindShim, Looks::AcrossFiles);
    pyright: case("pyright", "python", Worker::Itself, Looks::AcrossFiles);
    clangd: case("clangd", "cpp", Worker::BehindShim, Looks::AcrossFiles);
    typescript_language_server:
        case("typescript-language-server", "typescript", Worker::Itself, Looks::AcrossFiles);
    tsgo: case("tsgo", "typescript", Worker::BehindShim, Looks::AcrossFiles);
    yaml_language_server: case("yaml-language-server", "yaml", Worker::Itself, Looks::AtOneFile);
    bash_language_server: case("bash-language-server", "bash", Worker::Itself, Looks::AtOneFile);
    rust_analyzer: case("rust-analyzer", "rust", Worker::Itself, Looks::AcrossFiles);
    gopls: case("gopls", "go", Worker::Itself, Looks::AcrossFiles);
}

/// Everything that a server has to go through.
async fn check(case: Case) {
    let fixture = fixture(&case);
    let tree = Tree::new();
    fixture.copy_to(&tree.workspace());
    tree.write("user.json", &configuration(&case).to_string());
    let settings = RegistrySettings {
        environment: environment(),
        user_configuration: Some(tree.path("user.json")),
        data_directory: tree.path("data"),
    };
    let registry = Registry::new(settings, Arc::new(nothing));
    let file = tree.workspace().join(fixture.asked.file);
    let selection = registry.servers_for(&file, &tree.workspace()).unwrap();
    let is_here = |chosen: &&lsp::Chosen| *chosen.name == *case.server;
    if !selection
        .primary
        .iter()
        .chain(&selection.supplements)
        .any(|chosen| is_here(&chosen))
    {
        report_missing(case.server);
        return;
    }
    let house = Plan::with(json!({})).build_with(tree, registry).await;
    let real = Real { house, case, fixture };
    real.finds_things().await;
    real.sees_mistakes().await;
    if real.case.looks == Looks::AcrossFiles {
        real.sees_what_others_do().await;
    }
    real.outlives_a_kill().await;
    real.leaves_nothing().await;
}

fn fixture(case: &Case) -> &'static Fixture {
    FIXTURES
        .iter()
        .find(|fixture| fixture.name == case.fixture)
        .unwrap()
}

/// The server before others of its language, and nothing that needs the network or much time.
fn configuration(case: &Case) -> Value {
    let prefer: BTreeMap<&str, [&str; 1]> =
        ["python", "typescript", "cpp", "rust", "go", "yaml", "shellscript"]
            .into_iter()
            .map(|language| (language, [case.server]))
            .collect();
    let rust_analyzer = json!({
        "env": {"CARGO_NET_OFFLINE": "true"},
        "initialization_options": {
            "checkOnSave": false,
            "diagnostics": {"experimental": {"enable": true}},
            "cachePriming": {"enable": false},
            "procMacro": {"enable": false},
            "cargo": {"buildScripts": {"enable": false}},
        },
    });
    match case.server {
        "ruff" => json!({}),
        "rust-analyzer" => json!({"prefer": prefer, "servers": {"rust-analyzer": rust_analyzer}}),
        _ => json!({"prefer": prefer}),
    }
}

/// A server that is being looked at.
struct Real {
    house: House,
    case: Case,
    fixture: &'static Fixture,
}

impl Real {
    async fn ask(&self, ask: Ask) -> Answered {
        let ask = Ask {
            server: Some(self.case.server.to_owned()),
            workspace: Some(self.house.tree.workspace()),
            timeout: Some(PATIENCE),
            ..ask
        };
        let asked = ask.query.name();
        let answered = self.house.languages.ask(ask, &live()).await;
        answered.unwrap_or_else(|error| panic!("{asked}: {error}\n{:?}", self.said()))
    }

    /// What the server said about itself, for a test that fails.
    fn said(&self) -> Vec<lsp::RecordLine> {
        let id = self.house.view().id;
        self.house.languages.record(&id).unwrap()
    }

    fn is_supplement(&self) -> bool {
        !self.fixture.servers.contains(&self.case.server)
    }

    fn mistake(&self) -> &'static Mistake {
        let mut mistakes = self.fixture.mistakes.iter();
        mistakes
            .find(|mistake| mistake.servers.contains(&self.case.server))
            .unwrap()
    }

    fn definition(&self) -> Ask {
        let Place { file, line, column } = self.fixture.asked;
        let path = self.house.file(file);
        question(Query::Definition(at(&path, line, column)), &path)
    }

    async fn finds_things(&self) {
        if self.is_supplement() {
            return;
        }
        let answered = self.ask(self.definition()).await;
        assert_eq!(
            places(&answered),
            BTreeSet::from([shown(self.fixture.definition)]),
            "{:?}",
            self.said()
        );
        let Place { file, line, column } = self.fixture.asked;
        let path = self.house.file(file);
        if !self.fixture.references.is_empty() {
            let references = Query::References {
                at: at(&path, line, column),
                declarations: Declarations::Included,
            };
            let answered = self.ask(question(references, &path)).await;
            let found = places(&answered);
            let expected: BTreeSet<String> = self.fixture.references.iter().copied().map(shown).collect();
            assert!(
                found.is_superset(&expected),
                "{found:?} lacks some of {expected:?}"
            );
        }
    }

    /// The mistake is seen in the first answer after it was made, and not any more after it was repaired; so are edits
    /// that are of no importance.
    async fn sees_mistakes(&self) {
        let mistake = self.mistake();
        let path = self.house.file(mistake.file);
        let right = fs::read_to_string(&path).unwrap();
        let wrong = mistake.make(&right);
        let harmless = format!("{right}\n");
        for (text, expected) in [
            (&right, 0),
            (&harmless, 0),
            (&wrong, 1),
            (&right, 0),
            (&wrong, 1),
            (&harmless, 0),
            (&right, 0),
        ] {
            fs::write(&path, text).unwrap();
            let answered = self.ask(diagnostics(&path)).await;
            let said = found(&answered);
            let complaints = said.iter().filter(|said| is_about(said, mistake)).count();
            assert_eq!(complaints.min(1), expected, "{text}\n{said:?}");
        }
    }

    /// Another file has another name for what is used here, for a while.
    async fn sees_what_others_do(&self) {
        let path = self.house.file(self.fixture.asked.file);
        let other = self.house.file(self.fixture.definition.file);
        let right = fs::read_to_string(&other).unwrap();
        let symbol = word(&right, self.fixture.definition);
        let wrong = right.replace(&symbol, &format!("{symbol}2"));
        for round in 0..3 {
            for (text, is_wrong) in [(&right, false), (&wrong, true)] {
                fs::write(&other, text).unwrap();
                let answered = self.ask(diagnostics(&path)).await;
                let said = found(&answered);
                let complaints = said
                    .iter()
                    .filter(|said| said.severity == protocol::DiagnosticSeverity::Error)
                    .count();
                assert_eq!(complaints > 0, is_wrong, "round {round}: {said:?}");
            }
        }
        fs::write(&other, &right).unwrap();
    }

    /// A question that is under way when the server is killed is answered by the next process.
    async fn outlives_a_kill(&self) {
        let ask = || match self.is_supplement() {
            false => self.definition(),
            true => diagnostics(&self.house.file(self.mistake().file)),
        };
        let before = self.ask(ask()).await;
        let first = self.house.view().pid.unwrap();
        let worker = match self.case.worker {
            Worker::Itself => first,
            Worker::BehindShim => {
                let mut behind = children(first);
                assert_eq!(behind.len(), 1, "{behind:?}");
                behind.remove(0)
            }
        };
        // A process that is held does not answer, so that the question is certainly under way.
        send(worker, Signal::STOP);
        until("the process is held", || is_halted(worker)).await;
        let (answered, ()) = tokio::join!(self.ask(ask()), async {
            until("the question is under way", || self.house.view().pending > 0).await;
            send(worker, Signal::KILL);
        });
        assert_eq!(generation(&answered), generation(&before) + 1);
        assert_eq!(
            outcome(&answered),
            outcome(&before),
            "the same question has the same answer"
        );
        let status = self.house.view().status;
        assert_eq!((status.crashes, &status.state), (1, &ServerState::Ready));
    }

    /// A stop ends all of its processes, and the service ends with nothing left.
    async fn leaves_nothing(self) {
        let view = self.house.view();
        let family = family(view.pid.unwrap());
        assert!(!family.is_empty());
        let stopped = self
            .house
            .languages
            .stop(&view.id, lsp::ExpectedProcess::Any, &live())
            .await
            .unwrap();
        assert_eq!(stopped.pid, None);
        let left: Vec<&(u32, String)> = family
            .iter()
            .filter(|(pid, start)| started(*pid).as_ref() == Some(start))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(self.house.languages.list(Detail::Known).len(), 1);
        self.house.leave().await;
    }
}

fn outcome(answered: &Answered) -> String {
    match &answered.answer.result {
        QueryResult::Diagnostics(list) => format!(
            "{:?}",
            list.items.iter().map(|item| &item.message).collect::<Vec<_>>()
        ),
        other => format!("{other:?}"),
    }
}

fn shown(place: Place) -> String {
    format!("{}:{}:{}", place.file, place.line, place.column)
}

fn places(answered: &Answered) -> BTreeSet<String> {
    let QueryResult::Locations(list) = &answered.answer.result else {
        panic!("{answered:?}");
    };
    let place = |location: &protocol::Location| format!("{}:{}", location.path, location.range.start);
    list.items.iter().map(place).collect()
}

fn is_about(said: &Diagnostic, mistake: &Mistake) -> bool {
    said.range.start.line == mistake.line
        && match mistake.says {
            Says::Code(code) => said.code.as_deref() == Some(code),
            Says::Message(part) => said.message.contains(part),
        }
}

/// The word at a place.
fn word(text: &str, place: Place) -> String {
    let line = text.lines().nth(place.line as usize - 1).unwrap();
    let rest = line.chars().skip(place.column as usize - 1);
    rest.take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect()
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Whether each thread has stopped. Until it runs next and takes the signal, a process goes on.
fn is_halted(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut states = threads.map(|thread| fs::read_to_string(thread.path().join("status")));
    states.all(|state| state.is_ok_and(|state| state.contains("State:\tT")))
}

/// What `/proc` says of a process: its parent, and when it was started. A zombie has ended.
fn look(pid: u32) -> Option<(u32, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (fields[0] != "Z").then(|| (fields[1].parse().unwrap(), fields[19].to_owned()))
}

fn started(pid: u32) -> Option<String> {
    look(pid).map(|(_, start)| start)
}

fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| look(*pid).is_some_and(|(above, _)| above == parent))
        .collect()
}

/// A process and all below it, with their starts.
fn family(first: u32) -> Vec<(u32, String)> {
    let mut rest = vec![first];
    let mut all = Vec::new();
    while let Some(pid) = rest.pop() {
        all.extend(started(pid).map(|start| (pid, start)));
        rest.extend(children(pid));
    }
    all
}
