//! Reads what the editor sends, and dispatches it.
//!
//! One thread reads. It handles at once what depends on message order: initialization, incoming prompts, cancel
//! requests. Requests to the daemon run on other threads, so that a cancel request is read while a prompt runs.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use kernel::{CancellationToken, Deadline, Slot, SystemClock};
use serde_json::{Value, json};

use super::converse::message;
use super::message::{Message, RequestId};
use super::open::Open;
use super::outbox::Outbox;
use super::questions::{Asked, Questions};
use super::refusal::Refused;
use super::schema::{self, CancelRequest, OfSession, PROTOCOL_VERSION, PromptRequest};
use super::setup::{self, Past};
use super::updates::{Voice, chunk};
use super::{converse, slash};
use crate::cli::AcpArguments;
use crate::client::Client;
use crate::commands::lines::{self, Read};
use crate::context::{Context, VERSION};
use crate::error::{Exit, Failure};
use crate::output::Report;

/// The longest message. An image or file that comes with a prompt is part of one line; the daemon accepts less, and
/// reports that.
const LINE_LIMIT_BYTES: usize = 32 << 20;
/// How many sessions an editor may have open. Each has a thread and a daemon stream; the daemon allows at least 64.
pub(super) const SESSIONS_LIMIT: usize = 32;
/// How many requests run at once. An editor needs one or two; one that sends more is asked to wait.
const REQUESTS_LIMIT: usize = 64;
/// How long pending requests may still take once the editor has closed our input. Prompts are not waited for: they
/// keep running.
const LAST_REQUESTS_LIMIT: Duration = Duration::from_secs(5);
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Site {
    pub(super) context: Context,
    pub(super) arguments: AcpArguments,
    pub(super) outbox: Outbox,
    pub(super) questions: Questions,
    /// The open sessions by id. Locked only to look up, insert or remove.
    pub(super) sessions: Mutex<BTreeMap<String, Arc<Open>>>,
    running: Slot<Running>,
}

impl Site {
    /// Sends a message that belongs to no turn. If the editor is gone, that is detected elsewhere.
    pub(super) fn say(&self, session: &str, voice: Voice, text: &str) {
        drop(self.outbox.update(session, &chunk(voice, &message(), text)));
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Running {
    prompts: usize,
    others: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Prompt,
    Other,
}

/// The result, and the session that the editor now knows and gets updates about.
pub(super) type Done = Result<(Value, Option<Arc<Open>>), Refused>;

pub(in crate::commands) fn run(arguments: AcpArguments, context: Context) -> Result<Report, Failure> {
    let no_thread = |error: io::Error| {
        Failure::new(
            Exit::Failed,
            "no_resources",
            format!("can't start a thread: {error}"),
        )
    };
    let site = Arc::new(Site {
        context,
        arguments,
        outbox: Outbox::start(io::stdout()).map_err(no_thread)?,
        questions: Questions::default(),
        sessions: Mutex::default(),
        running: Slot::new(Running::default()),
    });
    let mut reader = BufReader::new(io::stdin());
    let (mut phase, mut line) = (Phase::New, Vec::new());
    loop {
        let read = lines::read(&mut reader, &mut line, LINE_LIMIT_BYTES);
        match read {
            Ok(Read::TooLong) => {
                let message = format!("a message of more than {LINE_LIMIT_BYTES} bytes was ignored");
                site.outbox.answer(None, Err(Refused::no_request(message)));
            }
            // The last message may lack a newline.
            Ok(Read::Line | Read::End) if !line.trim_ascii().is_empty() => match Message::parse(&line) {
                Ok(message) => take(&site, &mut phase, message),
                Err(refused) => site.outbox.answer(None, Err(refused)),
            },
            Ok(Read::Line | Read::End) => {}
            Err(error) => {
                note(&format!("the input cannot be read: {error}"));
                break;
            }
        }
        if matches!(read, Ok(Read::End)) {
            break;
        }
    }
    // The editor is gone, or wants us to exit. Requests received before that are still answered; turns keep
    // running on their own.
    let deadline = Deadline::after(&SystemClock::shared(), LAST_REQUESTS_LIMIT);
    let scope = CancellationToken::new().scope();
    drop(
        site.running
            .wait_until_blocking(|running| running.others == 0, deadline, &scope),
    );
    site.outbox.finish(LAST_WORDS_LIMIT);
    Ok(Report::already_told())
}

pub(super) fn note(text: &str) {
    // Without standard error there is no way to report it.
    drop(writeln!(io::stderr(), "tidelock acp: {text}"));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not initialized yet.
    New,
    Ready,
}

fn take(site: &Arc<Site>, phase: &mut Phase, message: Message) {
    match message {
        Message::Request { id, method, params } => match (method.as_str(), *phase) {
            ("initialize", _) => {
                let answer = schema::read::<schema::Initialize>(params).map(|_| {
                    *phase = Phase::Ready;
                    capabilities()
                });
                site.outbox.answer(Some(&id), answer);
            }
            (_, Phase::New) => {
                let refused = Refused::no_request("send `initialize` first");
                site.outbox.answer(Some(&id), Err(refused));
            }
            // There is nothing to sign in to: anyone who can start this program may use it.
            ("authenticate", _) => site.outbox.answer(Some(&id), Ok(json!({}))),
            ("session/prompt", _) => prompt(site, id, params),
            _ => other(site, id, method, params),
        },
        Message::Notification { method, params } => notified(site, &method, params),
        Message::Answer { id, result } => {
            // A withdrawn question is no longer there. The first answer counts.
            let Some(asked) = id.and_then(|id| site.questions.take(id)) else {
                return;
            };
            answered(site, asked, result);
        }
    }
}

fn capabilities() -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": false },
            "sessionCapabilities": { "list": {}, "resume": {}, "close": {}, "delete": {} },
        },
        "agentInfo": { "name": "tidelock", "title": "Tidelock", "version": VERSION },
        "authMethods": [],
    })
}

fn prompt(site: &Arc<Site>, id: RequestId, params: Value) {
    let read = schema::read::<PromptRequest>(params);
    let found = read.and_then(|request| Ok((site.session(&request.session_id)?, request.prompt)));
    let (open, blocks) = match found {
        Ok(found) => found,
        Err(refused) => return site.outbox.answer(Some(&id), Err(refused)),
    };
    if let Some(command) = slash::asked_for(&blocks) {
        in_thread(site, Kind::Other, id, move |site, client| {
            Ok((slash::run(command, site, &open, client), None))
        });
        return;
    }
    let ticket = open.enter(&id);
    let leaving = Arc::clone(&open);
    let begun = in_thread(site, Kind::Prompt, id, move |site, client| {
        let answer = converse::prompt(site, &open, ticket, &blocks, client);
        open.leave(ticket);
        answer.map(|answer| (answer, None))
    });
    if begun == Begun::No {
        leaving.leave(ticket);
    }
}

fn other(site: &Arc<Site>, id: RequestId, method: String, params: Value) {
    in_thread(site, Kind::Other, id, move |site, client| match method.as_str() {
        "session/new" => setup::new(site, params, client),
        "session/load" => setup::existing(site, params, Past::Told, client),
        "session/resume" => setup::existing(site, params, Past::Known, client),
        "session/list" => setup::list(params, client),
        "session/close" => setup::close(site, params, client),
        "session/delete" => setup::delete(site, params, client),
        "session/set_config_option" => setup::set_config_option(site, params, client),
        method => Err(Refused::no_method(method)),
    });
}

fn notified(site: &Arc<Site>, method: &str, params: Value) {
    let wanted = match method {
        "session/cancel" => {
            let open = schema::read::<OfSession>(params).and_then(|of| site.session(&of.session_id));
            open.map(|open| (open.cancel_all(), open))
        }
        "$/cancel_request" => schema::read::<CancelRequest>(params).and_then(|request| {
            let id = RequestId(request.request_id);
            let mut all = site.all().into_iter();
            let found = all.find_map(|open| Some((open.cancel_request(&id)?, open)));
            found.ok_or_else(|| Refused::params("no prompt with that id is running"))
        }),
        // Unknown notifications need no answer.
        _ => return,
    };
    let (turns, open) = match wanted {
        Ok(wanted) => wanted,
        Err(refused) => return note(&format!("{method} was ignored: {}", refused.in_words())),
    };
    if turns.is_empty() {
        return;
    }
    beside(site, "can't cancel a turn", move |site, client| {
        for turn in turns {
            converse::cancel(site, &open, &turn, client);
        }
    });
}

fn answered(site: &Arc<Site>, asked: Asked, result: Option<Value>) {
    beside(site, "can't send an answer", move |site, client| {
        converse::answer(site, &asked, result, client);
    });
}

/// Runs something on a thread that is not joined.
fn beside(site: &Arc<Site>, if_not: &str, work: impl FnOnce(&Site, &Client) + Send + 'static) {
    let Some(place) = RequestPermit::take(site, Kind::Other) else {
        return note(&format!(
            "{if_not}: {REQUESTS_LIMIT} requests are already running"
        ));
    };
    let client = match Client::new(&site.context) {
        Ok(client) => client,
        Err(error) => return note(&format!("{if_not}: {error}")),
    };
    let thread = thread::Builder::new().name("acp-beside".to_owned());
    let spawned = thread.spawn(move || work(&place.site, &client));
    if let Err(error) = spawned {
        note(&format!("{if_not}: {error}"));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Yes,
    No,
}

fn in_thread(
    site: &Arc<Site>,
    kind: Kind,
    id: RequestId,
    work: impl FnOnce(&Arc<Site>, &Client) -> Done + Send + 'static,
) -> Begun {
    let Some(place) = RequestPermit::take(site, kind) else {
        let message = format!("too many requests: {REQUESTS_LIMIT} are already running");
        let refused = Refused::too_many(message).advise("wait until one of them ends");
        site.outbox.answer(Some(&id), Err(refused));
        return Begun::No;
    };
    let worker = Arc::clone(site);
    let name = id.clone();
    let spawned = thread::Builder::new()
        .name("acp-request".to_owned())
        .spawn(move || {
            let _place = place;
            let done = match Client::new(&worker.context) {
                Ok(client) => work(&worker, &client),
                Err(error) => Err(Refused::too_many(format!("can't wait for input: {error}"))),
            };
            match done {
                Ok((answer, session)) => {
                    worker.outbox.answer(Some(&name), Ok(answer));
                    // Only now does the editor know the session.
                    if let Some(open) = session {
                        drop(worker.outbox.update(&open.id, &slash::available()));
                    }
                }
                Err(refused) => worker.outbox.answer(Some(&name), Err(refused)),
            }
        });
    match spawned {
        Ok(_) => Begun::Yes,
        Err(error) => {
            let refused = Refused::too_many(format!("can't start a thread: {error}"));
            site.outbox.answer(Some(&id), Err(refused));
            Begun::No
        }
    }
}

/// A slot among the running requests. Dropping it frees the slot.
#[derive(Debug)]
struct RequestPermit {
    site: Arc<Site>,
    kind: Kind,
}

impl RequestPermit {
    fn take(site: &Arc<Site>, kind: Kind) -> Option<RequestPermit> {
        let is_taken = site.count(|running| {
            if running.prompts + running.others >= REQUESTS_LIMIT {
                return false;
            }
            match kind {
                Kind::Prompt => running.prompts += 1,
                Kind::Other => running.others += 1,
            }
            true
        });
        is_taken.then(|| RequestPermit {
            site: Arc::clone(site),
            kind,
        })
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let kind = self.kind;
        self.site.count(|running| match kind {
            Kind::Prompt => running.prompts -= 1,
            Kind::Other => running.others -= 1,
        });
    }
}

impl Site {
    pub(super) fn session(&self, id: &str) -> Result<Arc<Open>, Refused> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(id).cloned().ok_or_else(|| Refused::not_open(id))
    }

    fn all(&self) -> Vec<Arc<Open>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().cloned().collect()
    }

    fn count<T>(&self, change: impl Fn(&mut Running) -> T) -> T {
        let mut seen = self.running.read();
        loop {
            let mut next = *seen.state;
            let outcome = change(&mut next);
            match self.running.transition(seen.generation, next) {
                Ok(_) => return outcome,
                Err(stale) => seen = stale.current,
            }
        }
    }
}
