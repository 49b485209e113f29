//! Language servers for finding context. This never waits for a server: one that isn't running, or hasn't read the
//! workspace yet, is skipped and will be ready for the next question.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use context::{CodeLocation, CodeQuestion, Lines, PortError, TreePath};
use kernel::{Deadline, Scope};
use lsp::{
    Answered, Ask, AskError, At, Declarations, Detail, Environment, Query, QueryError, QueryResult,
    ReadyState, RequestError, ServerView, WhenIndexing, WhenStarting, path_of_uri,
};
use protocol::{Position, Range};
use serde::Deserialize;
use serde_json::json;

use super::LanguageServers;

/// How many kinds of files in focus to ask about. Each has its own server.
const MOST_KINDS: usize = 4;
/// How many running servers are asked if there is no focus.
const MOST_SERVERS: usize = 8;
/// How many locations to accept in one answer. A name with more is used everywhere.
const MOST_PLACES: usize = 200;
/// How much of a message is shown.
const MESSAGE_CHARACTERS: usize = 200;

#[async_trait]
impl context::LanguageServers for LanguageServers {
    async fn ask(
        &self,
        root: &Path,
        question: &CodeQuestion,
        scope: &Scope,
        deadline: &Deadline,
    ) -> Result<Vec<CodeLocation>, PortError> {
        match question {
            CodeQuestion::Symbols { name, near } if near.is_empty() => {
                self.symbols_of_running(root, name, scope, deadline).await
            }
            CodeQuestion::Symbols { name, near } => {
                let mut kinds = BTreeSet::new();
                let one_of_each = near
                    .iter()
                    .filter(|file| kinds.insert(file.extension().unwrap_or(file.name())));
                let mut collected = Collected::default();
                for file in one_of_each.take(MOST_KINDS) {
                    let name = name.to_owned();
                    let query = |_| Query::WorkspaceSymbols { name };
                    collected.add(self.ask_about(root, file, query, scope, deadline).await);
                }
                collected.locations()
            }
            CodeQuestion::Diagnostics { file } => {
                let query = |path| Query::Diagnostics { path };
                self.ask_about(root, file, query, scope, deadline).await
            }
            CodeQuestion::References {
                file, line, column, ..
            } => {
                let position = Position {
                    line: *line,
                    column: *column,
                };
                let query = |path| Query::References {
                    at: At { path, position },
                    declarations: Declarations::LeftOut,
                };
                self.ask_about(root, file, query, scope, deadline).await
            }
        }
    }
}

impl LanguageServers {
    /// Asks the servers of a file. One that isn't running is started in the background.
    async fn ask_about(
        &self,
        root: &Path,
        file: &TreePath,
        query: impl FnOnce(Arc<Path>) -> Query + Send,
        scope: &Scope,
        deadline: &Deadline,
    ) -> Result<Vec<CodeLocation>, PortError> {
        let path = root.join(file.as_str());
        let ask = Ask {
            query: query(path.as_path().into()),
            path,
            workspace: Some(root.to_owned()),
            environment: Environment::default(),
            server: None,
            when_starting: WhenStarting::Refuse,
            when_indexing: WhenIndexing::Refuse,
            timeout: Some(time_left(deadline)?),
        };
        match self.languages.ask(ask, scope).await {
            Ok(answered) => Ok(locations_of(answered, root)),
            Err(error) => Err(not_answered(&error)),
        }
    }

    /// Asks the servers that are running and have read the workspace. It doesn't start any.
    async fn symbols_of_running(
        &self,
        root: &Path,
        name: &str,
        scope: &Scope,
        deadline: &Deadline,
    ) -> Result<Vec<CodeLocation>, PortError> {
        let all = self.languages.list(Detail::Known).into_iter();
        let ready = all.filter(|view| is_ready(view) && is_for(&view.status.key.root, root));
        let mut collected = Collected::default();
        for view in ready.take(MOST_SERVERS) {
            let params = json!({ "query": name });
            let asked =
                self.languages
                    .request(&view.id, "workspace/symbol", &params, time_left(deadline)?, scope);
            collected.add(match asked.await {
                Ok((reply, _)) => reply
                    .parse::<Option<Vec<WireSymbol>>>()
                    .map(|symbols| locations_of_symbols(symbols.unwrap_or_default(), root))
                    .map_err(|error| PortError::Failed(format!("{}: {error}", view.id))),
                Err(error) => Err(not_answered(&error)),
            });
        }
        collected.locations()
    }
}

#[derive(Default)]
struct Collected {
    found: Vec<CodeLocation>,
    has_answer: bool,
    failed: Option<PortError>,
}

impl Collected {
    fn add(&mut self, said: Result<Vec<CodeLocation>, PortError>) {
        match said {
            Ok(places) => {
                self.has_answer = true;
                self.found.extend(places);
            }
            // A failure is more useful to report than a missing server.
            Err(error) => match &self.failed {
                Some(PortError::Failed(_)) => {}
                _ => self.failed = Some(error),
            },
        }
    }

    /// One answer is enough; failures of other servers are ignored then.
    fn locations(mut self) -> Result<Vec<CodeLocation>, PortError> {
        match (self.has_answer, self.failed) {
            (true, _) => {
                self.found.truncate(MOST_PLACES);
                Ok(self.found)
            }
            (false, Some(error)) => Err(error),
            (false, None) => Err(PortError::Unavailable(
                "no language server runs for this workspace".to_owned(),
            )),
        }
    }
}

fn is_ready(view: &ServerView) -> bool {
    matches!(view.readiness, Some(ReadyState::Ready))
}

fn is_for(server_root: &Path, root: &Path) -> bool {
    server_root.starts_with(root) || root.starts_with(server_root)
}

fn time_left(deadline: &Deadline) -> Result<Duration, PortError> {
    let left = deadline.remaining().filter(|left| !left.is_zero());
    left.ok_or_else(|| PortError::Failed("the time was over".to_owned()))
}

/// A workspace symbol in the format of the Language Server Protocol.
#[derive(Deserialize)]
struct WireSymbol {
    name: String,
    location: WireLocation,
}

#[derive(Deserialize)]
struct WireLocation {
    uri: String,
    /// Some servers report it only after another request, which isn't worth it here.
    range: Option<lsp::WireRange>,
}

fn locations_of_symbols(symbols: Vec<WireSymbol>, root: &Path) -> Vec<CodeLocation> {
    let place = |symbol: WireSymbol| {
        let path = path_of_uri(&symbol.location.uri).ok()?;
        Some(CodeLocation {
            path: below(root, &path)?,
            lines: Lines::one(symbol.location.range?.start.line.saturating_add(1))?,
            what: symbol.name,
        })
    };
    symbols.into_iter().filter_map(place).take(MOST_PLACES).collect()
}

fn locations_of(answered: Answered, root: &Path) -> Vec<CodeLocation> {
    let workspace = answered.workspace;
    let place = |path: &str, range: Range, what: String| {
        // Content that only the server has comes with a URI. Joining an absolute path replaces the workspace.
        let path = (!path.contains("://")).then(|| workspace.join(path))?;
        let path = below(root, &path)?;
        let (start, end) = (range.start, range.end);
        // The end is exclusive: at the start of a line, it means the line before.
        let last = if end.column <= 1 {
            end.line.saturating_sub(1)
        } else {
            end.line
        };
        Some(CodeLocation {
            path,
            lines: Lines::new(start.line, last.max(start.line))?,
            what,
        })
    };
    let places: Vec<CodeLocation> = match answered.answer.result {
        QueryResult::Symbols(list) => {
            let symbols = list.items.iter();
            symbols
                .filter_map(|one| place(&one.path, one.range?, format!("{} {}", one.kind, one.name)))
                .collect()
        }
        QueryResult::Locations(list) => {
            let locations = list.items.iter();
            locations
                .filter_map(|location| place(&location.path, location.range, "used here".to_owned()))
                .collect()
        }
        QueryResult::Diagnostics(list) => {
            let diagnostics = list.items.iter();
            diagnostics
                .filter_map(|one| place(&one.path, one.range, shortened(&one.message)))
                .collect()
        }
        _ => Vec::new(),
    };
    places.into_iter().take(MOST_PLACES).collect()
}

fn below(root: &Path, path: &Path) -> Option<TreePath> {
    TreePath::new(path.strip_prefix(root).ok()?.to_str()?).ok()
}

fn shortened(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.chars().take(MESSAGE_CHARACTERS).collect()
}

/// A server that doesn't start has its own back-off, so it isn't a failure of the strategy.
fn not_answered(error: &AskError) -> PortError {
    let text = error.to_string();
    match error {
        AskError::Query(QueryError::Unsupported { .. })
        | AskError::Request {
            source: RequestError::Response(_) | RequestError::Cancelled { .. },
            ..
        }
        | AskError::Path(_)
        | AskError::Text(_)
        | AskError::Workspace(_)
        | AskError::NoServer { .. }
        | AskError::OtherServer { .. }
        | AskError::NotInstalled { .. }
        | AskError::UnknownId { .. }
        | AskError::Lifecycle { .. }
        | AskError::Moved { .. }
        | AskError::StopOfAll(_)
        | AskError::NotReady { .. }
        | AskError::ShuttingDown => PortError::Unavailable(text),
        AskError::Document(_)
        | AskError::Query(_)
        | AskError::Request { .. }
        | AskError::Sent { .. }
        | AskError::WentAway { .. } => PortError::Failed(text),
    }
}

#[cfg(test)]
mod tests {
    use protocol::Location;

    use super::*;

    fn found(places: &[CodeLocation]) -> Vec<(String, u32, u32, &str)> {
        let places = places.iter();
        places
            .map(|place| {
                let lines = (place.lines.first(), place.lines.last());
                (place.path.to_string(), lines.0, lines.1, place.what.as_str())
            })
            .collect()
    }

    #[test]
    fn symbols_of_the_protocol_become_places_below_the_root() {
        let symbol = |uri: &str, line: Option<u32>| {
            let range = line.map(|line| {
                let at = json!({ "line": line, "character": 4 });
                json!({ "start": at, "end": at })
            });
            json!({ "name": "A", "kind": 5, "location": { "uri": uri, "range": range } })
        };
        let symbols = json!([
            symbol("file:///r/src/a%20b.rs", Some(0)),
            symbol("file:///elsewhere/a.rs", Some(0)),
            symbol("jdt://x", Some(0)),
            symbol("file:///r/b.rs", None),
            symbol("file:///r", Some(1)),
        ]);
        let symbols: Vec<WireSymbol> = serde_json::from_value(symbols).unwrap();
        let places = locations_of_symbols(symbols, Path::new("/r"));
        assert_eq!(found(&places), [("src/a b.rs".to_owned(), 1, 1, "A")]);
    }

    #[test]
    fn answers_become_places_below_the_root_and_an_end_is_no_part_of_them() {
        let location = |path: &str, start: (u32, u32), end: (u32, u32)| {
            let position = |(line, column)| Position { line, column };
            Location {
                path: path.to_owned(),
                range: Range {
                    start: position(start),
                    end: position(end),
                },
                excerpt: None,
            }
        };
        let items = vec![
            location("a.rs", (3, 5), (3, 9)),
            location("a.rs", (4, 1), (6, 1)),
            location("/r/b.rs", (1, 1), (1, 1)),
            location("/s/b.rs", (1, 1), (1, 1)),
            location("jdt://b.rs", (1, 1), (1, 1)),
        ];
        let answered = Answered {
            answer: lsp::Answer {
                origins: Vec::new(),
                result: QueryResult::Locations(lsp::Listed {
                    total: items.len(),
                    items,
                    truncated: false,
                }),
            },
            not_answered: Vec::new(),
            notes: Vec::new(),
            workspace: Path::new("/r").into(),
            ids: Vec::new(),
        };
        let places = locations_of(answered, Path::new("/r"));
        let used = "used here";
        assert_eq!(
            found(&places),
            [
                ("a.rs".to_owned(), 3, 3, used),
                ("a.rs".to_owned(), 4, 5, used),
                ("b.rs".to_owned(), 1, 1, used)
            ]
        );
    }

    #[test]
    fn one_answer_is_enough_and_a_failure_is_worth_more_than_nobody() {
        let nobody = || Err(PortError::Unavailable("nobody".to_owned()));
        let failed = || Err(PortError::Failed("failed".to_owned()));
        let none = PortError::Unavailable("no language server runs for this workspace".to_owned());
        for (said, expected) in [
            (vec![], Err(none)),
            (vec![nobody()], nobody()),
            (vec![failed(), nobody()], failed()),
            (vec![nobody(), Ok(Vec::new()), failed()], Ok(Vec::new())),
        ] {
            let mut collected = Collected::default();
            said.into_iter().for_each(|one| collected.add(one));
            assert_eq!(collected.locations(), expected);
        }
    }
}
