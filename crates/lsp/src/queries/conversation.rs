//! The course of a question: the requests to the server, and the answer made from its replies.

use std::path::Path;

use protocol::{CallDirection, Range};
use serde_json::{Value, json, value::RawValue};

use super::{
    actions::{self, Pending},
    answer::{Answer, QueryResult},
    calls,
    capabilities::{DiagnosticsBy, Feature},
    completions, diagnostics, edits,
    error::{QueryError, Refusal},
    hover,
    limits::Listed,
    locations,
    pushed::Push,
    query::{At, Declarations, Indentation, Query},
    reader::{Reader, Surroundings},
    signatures, symbols, tsserver,
};
use crate::text::{LineIndex, WireRange, uri_of_path};

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub method: &'static str,
    pub params: Value,
}

#[derive(Debug)]
pub enum Step {
    /// Send these requests, and pass their replies to [`Conversation::answered`], in this order.
    Ask(Conversation, Vec<Request>),
    Done(Box<Answer>),
}

/// A question to one generation of a server.
#[derive(Debug)]
pub struct Conversation {
    query: Query,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Asked,
    TsserverAsked,
    RenameIsPrepared,
    /// The diagnostics that code actions need.
    ActionsNeedDiagnostics,
    ActionsAreResolved(Listed<Pending>),
    CallsAreAsked(Vec<Value>),
}

const PREPARE_RENAME: &str = "textDocument/prepareRename";
const RESOLVE_ACTION: &str = "codeAction/resolve";

impl Conversation {
    /// Starts a conversation. There is always at least one request.
    pub fn begin(query: Query, around: &Surroundings<'_>) -> Result<(Self, Vec<Request>), QueryError> {
        if let Query::Diagnostics { path } = &query
            && around.capabilities.diagnostics() == DiagnosticsBy::Tsserver
        {
            let requests = tsserver::requests(path);
            let stage = Stage::TsserverAsked;
            return Ok((Self { query, stage }, requests));
        }
        let needed = query.needs();
        if !around.capabilities.offers(needed) {
            return Err(QueryError::Unsupported {
                server: around.server.to_owned(),
                what: needed.what(),
            });
        }
        let (stage, request) = match &query {
            Query::Rename { at, .. } if around.capabilities.offers(Feature::PrepareRename) => {
                let request = Request {
                    method: PREPARE_RENAME,
                    params: position(around, at)?,
                };
                (Stage::RenameIsPrepared, request)
            }
            Query::CodeActions { path, .. } if around.capabilities.offers(Feature::PullDiagnostics) => {
                let asked = question(&Query::Diagnostics { path: path.clone() }, around, &[])?;
                (Stage::ActionsNeedDiagnostics, asked)
            }
            query => (Stage::Asked, question(query, around, around.diagnostics)?),
        };
        Ok((Self { query, stage }, vec![request]))
    }

    /// Continues with the replies to all requests of the last step.
    pub fn answered(
        self,
        replies: &[Result<&RawValue, Refusal>],
        around: &Surroundings<'_>,
    ) -> Result<Step, QueryError> {
        let Self { query, stage } = self;
        match stage {
            Stage::Asked => {
                let method = query.needs().method();
                let answer = only(around, method, replies)?;
                read(query, around, answer)
            }
            Stage::TsserverAsked => {
                let mut reader = Reader::new(around, tsserver::EXECUTE);
                let mut items = Vec::new();
                for reply in replies {
                    let answer = accepted(&reader, reply)?;
                    items.append(&mut tsserver::items(&reader, answer)?);
                }
                let listed = diagnostics::read_pushed(&mut reader, items)?;
                done(around, QueryResult::Diagnostics(listed))
            }
            Stage::RenameIsPrepared => {
                if only(around, PREPARE_RENAME, replies)?.is_null() {
                    let server = around.server.to_owned();
                    return Err(QueryError::NotRenamable { server });
                }
                ask(query, around, &[])
            }
            Stage::ActionsNeedDiagnostics => {
                let method = Feature::PullDiagnostics.method();
                let mut report = only(around, method, replies)?;
                match report.get_mut("items").map(Value::take) {
                    Some(Value::Array(items)) => ask(query, around, &items),
                    _ => Err(Reader::new(around, method).broken("result.items", "expected a list")),
                }
            }
            Stage::ActionsAreResolved(pending) => {
                let mut reader = Reader::new(around, RESOLVE_ACTION);
                let resolved = replies
                    .iter()
                    .map(|reply| match reply {
                        Ok(raw) => Ok(Ok(value(&reader, raw)?)),
                        Err(refusal) => Ok(Err(refusal.clone())),
                    })
                    .collect::<Result<Vec<_>, QueryError>>()?;
                let listed = actions::finish(&mut reader, pending, resolved)?;
                done(around, QueryResult::CodeActions(listed))
            }
            Stage::CallsAreAsked(items) => {
                let Query::Calls { direction, .. } = &query else {
                    return read(query, around, Value::Null);
                };
                let method = calls_method(*direction);
                let mut reader = Reader::new(around, method);
                let answers = replies
                    .iter()
                    .map(|reply| accepted(&reader, reply))
                    .collect::<Result<Vec<_>, QueryError>>()?;
                let listed = calls::read(&mut reader, *direction, &items, answers)?;
                done(around, QueryResult::Calls(listed))
            }
        }
    }
}

/// The answer from pushed diagnostics, instead of a conversation.
pub fn answer_from_push(push: &Push, around: &Surroundings<'_>) -> Result<Answer, QueryError> {
    let mut reader = Reader::new(around, "textDocument/publishDiagnostics");
    let mut listed = diagnostics::read_pushed(&mut reader, push.items.to_vec())?;
    let not_kept = push.total.saturating_sub(push.items.len());
    listed.total += not_kept;
    listed.truncated |= not_kept > 0;
    Ok(Answer::new(around, QueryResult::Diagnostics(listed)))
}

fn ask(query: Query, around: &Surroundings<'_>, known: &[Value]) -> Result<Step, QueryError> {
    let request = question(&query, around, known)?;
    let conversation = Conversation {
        query,
        stage: Stage::Asked,
    };
    Ok(Step::Ask(conversation, vec![request]))
}

fn done(around: &Surroundings<'_>, result: QueryResult) -> Result<Step, QueryError> {
    Ok(Step::Done(Box::new(Answer::new(around, result))))
}

fn read(query: Query, around: &Surroundings<'_>, answer: Value) -> Result<Step, QueryError> {
    let reader = &mut Reader::new(around, query.needs().method());
    let result = match &query {
        Query::Diagnostics { .. } => QueryResult::Diagnostics(diagnostics::read_report(reader, answer)?),
        Query::Hover(_) => QueryResult::Hover(hover::read(reader, answer)?),
        Query::Completions(_) => QueryResult::Completions(completions::read(reader, answer)?),
        Query::Definition(_)
        | Query::Declaration(_)
        | Query::TypeDefinition(_)
        | Query::Implementation(_)
        | Query::References { .. } => QueryResult::Locations(locations::read(reader, answer)?),
        Query::Rename { .. } => QueryResult::Edit(edits::read_workspace(reader, answer, "result")?),
        Query::Format { .. } => QueryResult::Edit(edits::read_document(reader, answer)?),
        Query::SignatureHelp(_) => QueryResult::Signatures(signatures::read(reader, answer)?),
        Query::DocumentSymbols { .. } => QueryResult::Symbols(symbols::read_document(reader, answer)?),
        Query::WorkspaceSymbols { .. } => QueryResult::Symbols(symbols::read_workspace(reader, answer)?),
        Query::CodeActions { .. } => {
            let pending = actions::read(reader, answer)?;
            let requests: Vec<Request> = pending
                .items
                .iter()
                .filter_map(|pending| pending.resolve.clone())
                .map(|params| Request {
                    method: RESOLVE_ACTION,
                    params,
                })
                .collect();
            if requests.is_empty() {
                QueryResult::CodeActions(actions::finish(reader, pending, Vec::new())?)
            } else {
                let stage = Stage::ActionsAreResolved(pending);
                return Ok(Step::Ask(Conversation { query, stage }, requests));
            }
        }
        Query::Calls { direction, .. } => {
            let items = calls::prepared(reader, answer)?;
            let method = calls_method(*direction);
            let requests: Vec<Request> = items
                .iter()
                .map(|item| Request {
                    method,
                    params: json!({ "item": item }),
                })
                .collect();
            if requests.is_empty() {
                QueryResult::Calls(Listed::first(Vec::new(), 0))
            } else {
                let stage = Stage::CallsAreAsked(items);
                return Ok(Step::Ask(Conversation { query, stage }, requests));
            }
        }
    };
    done(around, result)
}

fn calls_method(direction: CallDirection) -> &'static str {
    match direction {
        CallDirection::Incoming => "callHierarchy/incomingCalls",
        CallDirection::Outgoing => "callHierarchy/outgoingCalls",
    }
}

fn only(
    around: &Surroundings<'_>,
    method: &'static str,
    replies: &[Result<&RawValue, Refusal>],
) -> Result<Value, QueryError> {
    let reader = Reader::new(around, method);
    match replies {
        [reply] => accepted(&reader, reply),
        _ => Err(reader.broken("result", format!("{} replies to one request", replies.len()))),
    }
}

fn accepted(reader: &Reader<'_>, reply: &Result<&RawValue, Refusal>) -> Result<Value, QueryError> {
    match reply {
        Ok(raw) => value(reader, raw),
        Err(refusal) => Err(QueryError::Refused {
            server: reader.around.server.to_owned(),
            method: reader.method,
            refusal: refusal.clone(),
        }),
    }
}

fn value(reader: &Reader<'_>, raw: &RawValue) -> Result<Value, QueryError> {
    serde_json::from_str(raw.get()).map_err(|error| reader.broken("result", error.to_string()))
}

fn question(query: &Query, around: &Surroundings<'_>, known: &[Value]) -> Result<Request, QueryError> {
    let params = match query {
        Query::Diagnostics { path } => {
            let mut params = json!({ "textDocument": document(path)? });
            if let Some(identifier) = around.capabilities.diagnostics_identifier() {
                params["identifier"] = json!(identifier);
            }
            params
        }
        Query::Hover(at)
        | Query::Definition(at)
        | Query::Declaration(at)
        | Query::TypeDefinition(at)
        | Query::Implementation(at)
        | Query::SignatureHelp(at)
        | Query::Calls { at, .. } => position(around, at)?,
        Query::Completions(at) => {
            let mut params = position(around, at)?;
            params["context"] = json!({ "triggerKind": 1 });
            params
        }
        Query::References { at, declarations } => {
            let mut params = position(around, at)?;
            let include = *declarations == Declarations::Included;
            params["context"] = json!({ "includeDeclaration": include });
            params
        }
        Query::Rename { at, new_name } => {
            let mut params = position(around, at)?;
            params["newName"] = json!(new_name);
            params
        }
        Query::CodeActions { path, range, kinds } => {
            let range = wire_range(around, path, *range)?;
            let mut context = json!({ "diagnostics": touching(known, range), "triggerKind": 1 });
            if !kinds.is_empty() {
                context["only"] = json!(kinds);
            }
            json!({ "textDocument": document(path)?, "range": range, "context": context })
        }
        Query::Format {
            path,
            range,
            indentation,
        } => {
            let options = match indentation {
                Indentation::Tabs(size) => json!({ "tabSize": size, "insertSpaces": false }),
                Indentation::Spaces(size) => json!({ "tabSize": size, "insertSpaces": true }),
            };
            let mut params = json!({ "textDocument": document(path)?, "options": options });
            if let Some(range) = range {
                params["range"] = json!(wire_range(around, path, *range)?);
            }
            params
        }
        Query::DocumentSymbols { path } => json!({ "textDocument": document(path)? }),
        Query::WorkspaceSymbols { name } => json!({ "query": name }),
    };
    Ok(Request {
        method: query.needs().method(),
        params,
    })
}

fn document(path: &Path) -> Result<Value, QueryError> {
    Ok(json!({ "uri": uri_of_path(path)? }))
}

fn position(around: &Surroundings<'_>, at: &At) -> Result<Value, QueryError> {
    let position = opened(around, &at.path)?.wire_of(at.position, around.encoding)?;
    Ok(json!({ "textDocument": document(&at.path)?, "position": position }))
}

fn wire_range(around: &Surroundings<'_>, path: &Path, range: Range) -> Result<WireRange, QueryError> {
    Ok(opened(around, path)?.wire_of_range(range, around.encoding)?)
}

fn opened<'a>(around: &Surroundings<'a>, path: &Path) -> Result<&'a LineIndex, QueryError> {
    match around.document {
        Some(document) if document.path == path => Ok(document.text),
        _ => Err(QueryError::NotOpen { path: path.into() }),
    }
}

/// The diagnostics that touch a range; a server offers fixes only for those.
fn touching(known: &[Value], range: WireRange) -> Vec<&Value> {
    let touches = |diagnostic: &&Value| {
        let place = diagnostic.get("range").cloned().unwrap_or_default();
        serde_json::from_value::<WireRange>(place)
            .is_ok_and(|place| place.start <= range.end && range.start <= place.end)
    };
    known.iter().filter(touches).collect()
}
