//! A turn whose tools a test calls, with a shell and languages that do what the test says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kernel::SystemClock;
use protocol::{AgentChoice, JobId, PermissionRule, RulePermission, ToolState, TurnId};
use serde_json::{Value, json};
use sessions::tools::{ToolAnswer, ToolCall, ToolboxOptions};
use sessions::{
    ContextFinder, LanguageError, LanguageOrder, Languages, NewSession, Ports, Shell, ShellEnd, ShellError,
    ShellOrder, Toolbox, TurnEvent,
};
use tokio::sync::{Barrier, mpsc};

use super::finder::FakeFinder;
use super::kit::{Kit, Led, prompt};

/// A turn and its tools.
pub(crate) struct Bench {
    pub(crate) kit: Kit,
    pub(crate) led: Led,
    pub(crate) turn: TurnId,
    pub(crate) toolbox: Toolbox,
    pub(crate) shell: Arc<FakeShell>,
    pub(crate) finder: Arc<FakeFinder>,
}

/// Runs nothing. A line is a script: `say TEXT`, `flood BYTES`, `write PATH`, `hang`, `exit CODE`, split at `;`.
#[derive(Debug, Default)]
pub(crate) struct FakeShell {
    pub(crate) orders: Mutex<Vec<(String, String, Duration)>>,
}

#[async_trait]
impl Shell for FakeShell {
    async fn run(&self, order: ShellOrder, output: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError> {
        let seen = (order.line.clone(), order.directory.clone(), order.timeout);
        self.orders.lock().unwrap().push(seen);
        let end = |exit_code: Option<i32>, text: &str| {
            Ok(ShellEnd {
                job: JobId::generate(),
                exit_code,
                text: text.to_owned(),
            })
        };
        for step in order.line.split(';') {
            match step.trim().split_once(' ').unwrap_or((step.trim(), "")) {
                ("say", text) => output.send(Bytes::from(text.to_owned())).await.unwrap(),
                ("flood", bytes) => {
                    let mut left: usize = bytes.parse().unwrap();
                    while left > 0 {
                        let piece = left.min(1000);
                        output.send(Bytes::from(vec![b'x'; piece])).await.unwrap();
                        left -= piece;
                    }
                }
                ("hang", _) => {
                    order.scope.wait().await;
                    return end(None, "cancelled");
                }
                ("exit", code) => return end(code.parse().ok(), &format!("exit {code}")),
                ("refuse", why) => {
                    return Err(ShellError { text: why.to_owned() });
                }
                _ => {}
            }
        }
        end(Some(0), "exit 0")
    }
}

/// Says what it was asked. Two that ask to `meet` wait for each other.
#[derive(Debug)]
pub(crate) struct FakeLanguages {
    meeting: Barrier,
}

#[async_trait]
impl Languages for FakeLanguages {
    fn verbs(&self) -> Vec<&'static str> {
        vec!["hover", "symbols", "fail", "flood", "hang", "meet"]
    }

    async fn ask(&self, order: LanguageOrder) -> Result<String, LanguageError> {
        match order.verb.as_str() {
            "fail" => Err(LanguageError {
                code: "server_not_found".to_owned(),
                text: "there is no server for this language".to_owned(),
            }),
            "flood" => Ok("x".repeat(100_000)),
            "meet" => {
                self.meeting.wait().await;
                Ok(json!("met").to_string())
            }
            "hang" => std::future::pending().await,
            verb => {
                let path = order.path.strip_prefix(&order.workspace).unwrap();
                Ok(json!([verb, path, order.line, order.column, order.name]).to_string())
            }
        }
    }
}

/// `allow|ask|deny TOOL [PATTERN]`.
pub(crate) fn rule(text: &str) -> PermissionRule {
    let mut words = text.splitn(3, ' ');
    let permission = match words.next() {
        Some("allow") => RulePermission::Allow,
        Some("ask") => RulePermission::Ask,
        Some("deny") => RulePermission::Deny,
        other => panic!("{other:?}"),
    };
    PermissionRule {
        tool: words.next().unwrap().to_owned(),
        pattern: words.next().map(str::to_owned),
        permission,
    }
}

impl Bench {
    /// A turn in a workspace with these files besides those of the kit.
    pub(crate) async fn with(files: &[(&str, &str)], rules: &[&str]) -> Self {
        Self::with_timeout(files, rules, Duration::from_secs(300)).await
    }

    pub(crate) async fn with_timeout(files: &[(&str, &str)], rules: &[&str], timeout: Duration) -> Self {
        let kit = Kit::new().await;
        for (path, content) in files {
            let path = kit.workspace.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let created = kit.sessions.create(NewSession {
            directory: kit.workspace.clone(),
            title: String::new(),
            agent: AgentChoice {
                name: "puppet".to_owned(),
                ..AgentChoice::default()
            },
            rules: rules.iter().map(|text| rule(text)).collect(),
            plan: None,
            by: "ann".into(),
        });
        let session = created.await.unwrap().id;
        let accepted = kit.sessions.start_turn(session, prompt("work")).await.unwrap();
        let led = kit.puppet.next().await;
        let shell = Arc::new(FakeShell::default());
        let finder = Arc::new(FakeFinder::default());
        let toolbox = Toolbox::new(ToolboxOptions {
            desk: led.turn.desk.clone(),
            asker: led.turn.asker.clone(),
            ports: Ports {
                shell: Arc::clone(&shell) as Arc<dyn Shell>,
                finisher: Arc::new(sessions::NoPlanFinisher),
                languages: Arc::new(FakeLanguages {
                    meeting: Barrier::new(2),
                }),
                context: Arc::clone(&finder) as Arc<dyn ContextFinder>,
            },
            scope: led.turn.scope.clone(),
            timeout,
            clock: SystemClock::shared(),
        });
        Self {
            kit,
            turn: accepted.turn.id,
            led,
            toolbox,
            shell,
            finder,
        }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolAnswer {
        let sink = self.led.turn.sink.tool(tool, "").await.unwrap();
        let call = ToolCall {
            tool: tool.to_owned(),
            arguments,
        };
        self.toolbox.call(call, sink).await
    }

    /// Calls a tool, and says how it ended and what it said.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> (ToolState, String) {
        let answer = self.call(tool, arguments).await;
        (answer.state, answer.text)
    }

    pub(crate) async fn call_all(&self, calls: Vec<(&str, Value)>) -> Vec<ToolAnswer> {
        let mut all = Vec::new();
        for (tool, arguments) in calls {
            let call = ToolCall {
                tool: tool.to_owned(),
                arguments,
            };
            all.push((call, self.led.turn.sink.tool(tool, "").await.unwrap()));
        }
        self.toolbox.call_all(all).await
    }

    /// What the turn's stream says by now.
    pub(crate) async fn events(&self) -> Vec<TurnEvent> {
        self.led.turn.sink.flush().await.unwrap();
        self.kit.events(self.turn).await
    }
}
