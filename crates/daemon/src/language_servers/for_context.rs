//! Language servers for whoever looks for context. Nobody waits for a server here: one that is not up, or has not read the
//! workspace yet, is passed over, and is there for the next question.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use context::{Lines, Place, PortError, TreePath};
use kernel::{Deadline, Scope};
use lsp::{
    Answered, Ask, AskError, At, Declarations, Detail, Environment, Location, Outcome, Position, Query,
    QueryError, ReadyState, RequestError, ServerView, Standing, WhenIndexing, WhenStarting, path_of_uri,
};
use serde::Deserialize;
use serde_json::json;

use super::LanguageServers;

/// How many kinds of files in focus are asked for. Each is a server of its own.
const MOST_KINDS: usize = 4;
/// How many servers that run are asked, for a question without a focus. Few workspaces have more languages.
const MOST_SERVERS: usize = 8;
/// How many places one answer may have. More of them than this is a name that is used everywhere.
const MOST_PLACES: usize = 200;
/// How much of a message is shown.
const MESSAGE_CHARACTERS: usize = 200;

/// Until when somebody waits, and what stops it.
type Time<'a> = (&'a Scope, &'a Deadline);

#[async_trait]
impl context::LanguageServers for LanguageServers {
    async fn symbols(
        &self,
        root: &Path,
        near: &[TreePath],
        name: &str,
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError> {
        if near.is_empty() {
            return self.symbols_of_running(root, name, time).await;
        }
        let mut kinds = BTreeSet::new();
        let one_of_each = near
            .iter()
            .filter(|file| kinds.insert(file.extension().unwrap_or(file.name())));
        let mut together = Together::default();
        for file in one_of_each.take(MOST_KINDS) {
            let name = name.to_owned();
            let asked = self.ask_about(root, file, |_| Query::WorkspaceSymbols { name }, time);
            together.add(asked.await);
        }
        together.places()
    }

    async fn references(
        &self,
        root: &Path,
        file: &TreePath,
        (line, column): (u32, u32),
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError> {
        let position = Position { line, column };
        let query = |path| Query::References {
            at: At { path, position },
            declarations: Declarations::LeftOut,
        };
        self.ask_about(root, file, query, time).await
    }

    async fn diagnostics(
        &self,
        root: &Path,
        file: &TreePath,
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError> {
        self.ask_about(root, file, |path| Query::Diagnostics { path }, time)
            .await
    }
}

impl LanguageServers {
    /// Asks the servers of a file. One that is not up is started, and not waited for.
    async fn ask_about(
        &self,
        root: &Path,
        file: &TreePath,
        query: impl FnOnce(Arc<Path>) -> Query + Send,
        (scope, deadline): Time<'_>,
    ) -> Result<Vec<Place>, PortError> {
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
            Ok(answered) => Ok(places_of(answered, root)),
            Err(error) => Err(not_answered(&error)),
        }
    }

    /// Asks the servers that are up and have read the workspace. None is started.
    async fn symbols_of_running(
        &self,
        root: &Path,
        name: &str,
        (scope, deadline): Time<'_>,
    ) -> Result<Vec<Place>, PortError> {
        let all = self.languages.list(Detail::Known).into_iter();
        let ready = all.filter(|view| is_ready(view) && is_for(&view.status.key.root, root));
        let mut together = Together::default();
        for view in ready.take(MOST_SERVERS) {
            let params = json!({ "query": name });
            let asked =
                self.languages
                    .request(&view.id, "workspace/symbol", &params, time_left(deadline)?, scope);
            together.add(match asked.await {
                Ok((reply, _)) => reply
                    .parse::<Option<Vec<WireSymbol>>>()
                    .map(|symbols| places_of_symbols(symbols.unwrap_or_default(), root))
                    .map_err(|error| PortError::Failed(format!("{}: {error}", view.id))),
                Err(error) => Err(not_answered(&error)),
            });
        }
        together.places()
    }
}

#[derive(Default)]
struct Together {
    found: Vec<Place>,
    has_answer: bool,
    failed: Option<PortError>,
}

impl Together {
    fn add(&mut self, said: Result<Vec<Place>, PortError>) {
        match said {
            Ok(places) => {
                self.has_answer = true;
                self.found.extend(places);
            }
            // That something went wrong is worth more than that there was nobody.
            Err(error) => match &self.failed {
                Some(PortError::Failed(_)) => {}
                _ => self.failed = Some(error),
            },
        }
    }

    /// One answer is enough; what others could not say is passed over then.
    fn places(mut self) -> Result<Vec<Place>, PortError> {
        match (self.has_answer, self.failed) {
            (true, _) => {
                self.found.truncate(MOST_PLACES);
                Ok(self.found)
            }
            (false, Some(error)) => Err(error),
            (false, None) => Err(PortError::Nobody(
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

/// A symbol of a workspace as the protocol has it.
#[derive(Deserialize)]
struct WireSymbol {
    name: String,
    location: WireLocation,
}

#[derive(Deserialize)]
struct WireLocation {
    uri: String,
    /// Some servers tell it only when asked again, which costs more than it is worth here.
    range: Option<lsp::WireRange>,
}

fn places_of_symbols(symbols: Vec<WireSymbol>, root: &Path) -> Vec<Place> {
    let place = |symbol: WireSymbol| {
        let path = path_of_uri(&symbol.location.uri).ok()?;
        Some(Place {
            path: below(root, &path)?,
            lines: Lines::one(symbol.location.range?.start.line.saturating_add(1))?,
            what: symbol.name,
        })
    };
    symbols.into_iter().filter_map(place).take(MOST_PLACES).collect()
}

fn places_of(answered: Answered, root: &Path) -> Vec<Place> {
    let workspace = answered.workspace;
    let place = |location: &Location, what: String| {
        let path = path_of(&location.place, &workspace, root)?;
        let (start, end) = (location.range.start, location.range.end);
        // The end is not part of it: one at the beginning of a line is before that line.
        let last = if end.column <= 1 {
            end.line.saturating_sub(1)
        } else {
            end.line
        };
        Some(Place {
            path,
            lines: Lines::new(start.line, last.max(start.line))?,
            what,
        })
    };
    let places: Vec<Place> = match answered.answer.outcome {
        Outcome::Symbols(list) => {
            let symbols = list.items.into_iter();
            symbols
                .filter_map(|symbol| {
                    place(
                        symbol.location.as_ref()?,
                        format!("{} {}", symbol.kind, symbol.name),
                    )
                })
                .collect()
        }
        Outcome::Locations(list) => {
            let locations = list.items.iter();
            locations
                .filter_map(|location| place(location, "used here".to_owned()))
                .collect()
        }
        Outcome::Diagnostics(list) => {
            let diagnostics = list.items.iter();
            diagnostics
                .filter_map(|diagnostic| place(&diagnostic.location, shortened(&diagnostic.message)))
                .collect()
        }
        _ => Vec::new(),
    };
    places.into_iter().take(MOST_PLACES).collect()
}

fn path_of(place: &lsp::Place, workspace: &Path, root: &Path) -> Option<TreePath> {
    match place.standing {
        Standing::Workspace => below(root, &workspace.join(&place.path)),
        Standing::Outside => below(root, Path::new(&place.path)),
        Standing::Virtual => None,
    }
}

fn below(root: &Path, path: &Path) -> Option<TreePath> {
    TreePath::new(path.strip_prefix(root).ok()?.to_str()?).ok()
}

fn shortened(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.chars().take(MESSAGE_CHARACTERS).collect()
}

/// A server that does not come up has a back-off of its own, so that is nobody's failure here.
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
        | AskError::ShuttingDown => PortError::Nobody(text),
        AskError::Document(_)
        | AskError::Query(_)
        | AskError::Request { .. }
        | AskError::Sent { .. }
        | AskError::WentAway { .. } => PortError::Failed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(places: &[Place]) -> Vec<(String, u32, u32, &str)> {
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
        let places = places_of_symbols(symbols, Path::new("/r"));
        assert_eq!(found(&places), [("src/a b.rs".to_owned(), 1, 1, "A")]);
    }

    #[test]
    fn answers_become_places_below_the_root_and_an_end_is_no_part_of_them() {
        let location = |standing, path: &str, start: (u32, u32), end: (u32, u32)| Location {
            place: lsp::Place {
                standing,
                path: path.to_owned(),
            },
            range: lsp::Range {
                start: Position {
                    line: start.0,
                    column: start.1,
                },
                end: Position {
                    line: end.0,
                    column: end.1,
                },
            },
            precision: lsp::Precision::Exact,
            excerpt: None,
        };
        let items = vec![
            location(Standing::Workspace, "a.rs", (3, 5), (3, 9)),
            location(Standing::Workspace, "a.rs", (4, 1), (6, 1)),
            location(Standing::Outside, "/r/b.rs", (1, 1), (1, 1)),
            location(Standing::Outside, "/s/b.rs", (1, 1), (1, 1)),
            location(Standing::Virtual, "b.rs", (1, 1), (1, 1)),
        ];
        let answered = Answered {
            answer: lsp::Answer {
                origins: Vec::new(),
                outcome: Outcome::Locations(lsp::Listed {
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
        let places = places_of(answered, Path::new("/r"));
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
        let nobody = || Err(PortError::Nobody("nobody".to_owned()));
        let failed = || Err(PortError::Failed("failed".to_owned()));
        let none = PortError::Nobody("no language server runs for this workspace".to_owned());
        for (said, expected) in [
            (vec![], Err(none)),
            (vec![nobody()], nobody()),
            (vec![failed(), nobody()], failed()),
            (vec![nobody(), Ok(Vec::new()), failed()], Ok(Vec::new())),
        ] {
            let mut together = Together::default();
            said.into_iter().for_each(|one| together.add(one));
            assert_eq!(together.places(), expected);
        }
    }
}
