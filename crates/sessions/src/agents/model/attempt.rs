//! One step: sends a request, retries it where that makes sense, and streams the answer into the turn.
//!
//! **Invariant:** output that a reader has seen is never retracted. So a step is retried only while none of its answer
//! has arrived; after that, the turn ends with what has arrived so far.

use std::time::Duration;

use bytes::Bytes;
use kernel::{Circuit, CircuitOpen, Deadline, Permit};
use protocol::sse::{EventReader, SseItem};
use protocol::{ToolState, Usage};
use reqwest::Response;

use super::agent::{Core, Ready};
use super::conversation::TOKEN_BYTES;
use super::turn::{Halt, Limit};
use super::wire::{Answer, Chunk, Fault, Piece, Refusal, shown};
use super::{connect, retry};
use crate::agent::AgentTurn;
use crate::sink::{SinkError, ToolSink};

/// How long to wait for the usage after an answer ends. Some servers never close their side.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// How long to wait for the end of the body after `[DONE]`. If it comes later, the next step opens a new connection.
const AFTER_DONE: Duration = Duration::from_millis(100);
/// How long to wait before checking an open circuit again: a probe from another turn may have closed it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The longest line of a stream. A whole file fits as a tool argument; anything longer isn't a plausible answer.
const LINE_LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// The most bytes to read of a refusal, or of an answer that isn't a stream.
const BODY_LIMIT_BYTES: usize = 4 * 1024 * 1024;

pub(super) struct Asking<'a> {
    pub(super) core: &'a Core,
    pub(super) ready: &'a Ready,
    pub(super) turn: &'a AgentTurn,
    /// The turn's deadline.
    pub(super) time: Deadline,
    /// Whether the user has seen the notice that token counts are estimates.
    pub(super) has_told_estimate: bool,
}

/// An answer while it is being streamed into the turn.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) answer: Answer,
    /// The sink of each call, once the call has a name.
    pub(super) calls: Vec<Option<ToolSink>>,
    begun: Begun,
}

/// How far a request got.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Begun {
    /// The server didn't answer.
    #[default]
    No,
    /// The server refused.
    Refused,
    /// An answer began.
    Answer,
}

/// What a step does if its circuit is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum IfOpen {
    /// Fail at once.
    Refuse,
    /// Wait, as long as there is patience left.
    Wait,
}

/// Why an attempt stopped.
enum Trip {
    /// The turn ends.
    Halt(Halt),
    /// Something went wrong with the server.
    Fault(Fault),
}

impl From<Fault> for Trip {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<SinkError> for Trip {
    fn from(_: SinkError) -> Self {
        Self::Halt(Halt::Cancelled)
    }
}

impl Asking<'_> {
    /// One step. *Cancel safety*: if dropped midway, part of the answer may already be in the stream.
    pub(super) async fn step(&mut self, number: u32, request: &Bytes) -> Result<Arrived, Halt> {
        let settings = &self.core.settings;
        let mut patience = settings.wait_limit;
        for repetition in 0.. {
            let if_open = if number == 0 && repetition == 0 {
                IfOpen::Refuse
            } else {
                IfOpen::Wait
            };
            let permit = self.permit(if_open, &mut patience).await?;
            let fault = match self.attempt(number, request, permit).await? {
                Ok(arrived) => return Ok(arrived),
                Err(fault) => fault,
            };
            let pause = retry::pause(repetition, fault.retry_after(), retry::fraction());
            if !fault.may_pass() || repetition >= settings.max_retries || pause > patience {
                return Err(Halt::Fault {
                    fault,
                    streamed: false,
                });
            }
            patience -= pause;
            let text = self.core.shown(&fault.text());
            let told = format!("{text}; trying again in {:.1} s", pause.as_secs_f64());
            self.turn.sink.trouble("model_retry", told).await?;
            self.wait(pause).await?;
        }
        Err(Halt::Cancelled)
    }

    /// Gets a permit from the breaker. While the circuit is open, the first request of a turn fails at once, since
    /// nothing is lost. A turn that has already made progress waits as long as there is patience left.
    async fn permit(&self, if_open: IfOpen, patience: &mut Duration) -> Result<Permit<Circuit>, Halt> {
        let mut has_told = false;
        loop {
            let open = match self.core.breaker.acquire(&self.core.circuit) {
                Ok(permit) => return Ok(permit),
                Err(open) => open,
            };
            let CircuitOpen {
                retry_after: Some(left),
            } = open
            else {
                return Err(Halt::Unavailable(None));
            };
            if if_open == IfOpen::Refuse || left > *patience {
                return Err(Halt::Unavailable(Some(left)));
            }
            if !has_told {
                let text = format!(
                    "the server of the model is left alone for {:.0} s",
                    left.as_secs_f64().ceil()
                );
                self.turn.sink.trouble("model_waits", text).await?;
                has_told = true;
            }
            // Never zero: a circuit that is about to close still uses up patience.
            let pause = left.clamp(Duration::from_millis(10), LOOK_AGAIN);
            *patience = patience.saturating_sub(pause);
            self.wait(pause).await?;
        }
    }

    /// One request. Returns a fault only while none of the answer has arrived.
    async fn attempt(
        &mut self,
        number: u32,
        request: &Bytes,
        permit: Permit<Circuit>,
    ) -> Result<Result<Arrived, Fault>, Halt> {
        let mut arrived = Arrived::default();
        let mut permit = Some(permit);
        let ended = self.exchange(request, &mut arrived, &mut permit).await;
        let ended = ended.and_then(|()| arrived.answer.complete(number).map_err(Trip::Fault));
        let counted = self.count(request, &arrived).await;
        match ended {
            Ok(()) => {
                counted?;
                Ok(Ok(arrived))
            }
            Err(Trip::Halt(halt)) => {
                arrived
                    .give_up(
                        ToolState::Cancelled,
                        "the turn ended before the call was complete",
                    )
                    .await;
                Err(halt)
            }
            Err(Trip::Fault(fault)) => {
                self.report(&fault, permit);
                if !arrived.answer.has_come() {
                    return Ok(Err(fault));
                }
                arrived
                    .give_up(
                        ToolState::Failed,
                        "the answer of the model was cut off before the call was complete",
                    )
                    .await;
                Err(Halt::Fault {
                    fault,
                    streamed: true,
                })
            }
        }
    }

    /// Reports a fault to the breaker. It counts even if the start of the answer has already used up the permit.
    fn report(&self, fault: &Fault, permit: Option<Permit<Circuit>>) {
        match (permit, fault.retry_after()) {
            (Some(permit), _) if !fault.is_outage() => permit.success(),
            (Some(permit), Some(wish)) if retry::is_for_all(wish) => permit.failure_retry_after(wish),
            (Some(permit), _) => permit.failure(),
            (None, _) if fault.is_outage() => self.core.breaker.record_failure(&self.core.circuit),
            (None, _) => {}
        }
    }

    /// Sends the request and reads the answer.
    async fn exchange(
        &self,
        request: &Bytes,
        arrived: &mut Arrived,
        permit: &mut Option<Permit<Circuit>>,
    ) -> Result<(), Trip> {
        let Ready {
            endpoint,
            key,
            client,
        } = self.ready;
        let patience = Patience::new(self, "has not answered", self.core.settings.request_timeout);
        let mut reply = patience
            .wait(connect::post(client, endpoint, key.clone(), request.clone()))
            .await??;
        if !reply.status().is_success() {
            arrived.begun = Begun::Refused;
            let body = self.whole(&mut reply).await?;
            let now = self.core.wall.now().to_system_time();
            let refusal = Refusal::from_parts(reply.status(), reply.headers(), &body, now);
            return Err(Fault::Refused(refusal).into());
        }
        arrived.begun = Begun::Answer;
        if is_json(&reply) {
            let body = self.whole(&mut reply).await?;
            let chunk = Chunk::parse(&String::from_utf8_lossy(&body))?;
            settle(permit);
            return self.take(chunk, request, arrived).await;
        }
        self.stream(&mut reply, request, arrived, permit).await
    }

    /// Reads a stream to its end.
    async fn stream(
        &self,
        reply: &mut Response,
        request: &Bytes,
        arrived: &mut Arrived,
        permit: &mut Option<Permit<Circuit>>,
    ) -> Result<(), Trip> {
        let mut reader = EventReader::with_limit(LINE_LIMIT_BYTES);
        let mut items = Vec::new();
        let mut unknown = None;
        let mut patience = Patience::new(self, "has said nothing", self.core.settings.idle_timeout);
        let mut is_over = false;
        loop {
            for item in items {
                match item {
                    SseItem::Comment => {}
                    SseItem::Event(event) if event.data.trim() == "[DONE]" => {
                        // Reading the body to its end keeps the connection open for the next step. The rest
                        // is ignored.
                        let patience = Patience::new(self, "has not closed its answer", AFTER_DONE);
                        drop(patience.wait(connect::piece(reply)).await);
                        return Ok(());
                    }
                    SseItem::Event(event) => {
                        let chunk = Chunk::parse(&event.data)?;
                        settle(permit);
                        self.take(chunk, request, arrived).await?;
                    }
                    SseItem::Unknown(line) => {
                        unknown.get_or_insert(line);
                        continue;
                    }
                    SseItem::Flaw(flaw) => return Err(Fault::Garbled(flaw.to_string()).into()),
                }
                // Only a whole event is a sign of life; bytes that never form one are not.
                patience = match arrived.answer.finish {
                    None => Patience::new(self, "has said nothing", self.core.settings.idle_timeout),
                    Some(_) => {
                        let limit = self.core.settings.idle_timeout.min(AFTER_FINISH);
                        Patience::new(self, "has not closed its answer", limit)
                    }
                };
            }
            let has_finished = arrived.answer.finish.is_some();
            if is_over {
                return match unknown {
                    _ if has_finished => Ok(()),
                    // Unknown fields do no harm, but a body without an answer may not have been a stream at
                    // all.
                    Some(line) => {
                        Err(Fault::Garbled(format!("a line is no event: `{}`", shown(&line))).into())
                    }
                    None => Err(Fault::Cut("the server closed the connection".to_owned()).into()),
                };
            }
            items = match patience.wait(connect::piece(reply)).await {
                Ok(Ok(Some(bytes))) => reader.items(&bytes),
                Ok(Ok(None)) => {
                    is_over = true;
                    reader.finish()
                }
                // The answer is complete. Whether anything follows makes no difference.
                Ok(Err(_)) | Err(Trip::Fault(_)) if has_finished => return Ok(()),
                Ok(Err(fault)) => return Err(fault.into()),
                Err(trip) => return Err(trip),
            };
        }
    }

    /// Applies an event and sends what it adds to the turn's stream.
    async fn take(&self, chunk: Chunk, request: &Bytes, arrived: &mut Arrived) -> Result<(), Trip> {
        let sink = &self.turn.sink;
        for piece in arrived.answer.apply(chunk)? {
            match piece {
                Piece::Text(text) => sink.text(&text).await?,
                Piece::Reasoning(text) => sink.reasoning(&text).await?,
                Piece::Call(place) => {
                    let call = &arrived.answer.calls[place];
                    let told = sink.tool(&call.name, &call.id).await?;
                    if arrived.calls.len() <= place {
                        arrived.calls.resize(place + 1, None);
                    }
                    arrived.calls[place] = Some(told);
                }
                Piece::Arguments(place, text) => {
                    if let Some(Some(call)) = arrived.calls.get(place) {
                        call.arguments(&text).await?;
                    }
                }
            }
        }
        let more = self.usage(request, &arrived.answer);
        match Limit::passed(&self.core.settings.limits, sink.usage().plus(more)) {
            Some(limit @ Limit::Tokens(_)) => Err(Trip::Halt(Halt::Limit(limit))),
            _ => Ok(()),
        }
    }

    /// The whole body of a response that isn't a stream.
    async fn whole(&self, reply: &mut Response) -> Result<Vec<u8>, Trip> {
        let patience = Patience::new(self, "has not finished", self.core.settings.request_timeout);
        let mut body = Vec::new();
        while let Some(piece) = patience.wait(connect::piece(reply)).await?? {
            body.extend_from_slice(&piece);
            if body.len() > BODY_LIMIT_BYTES {
                return Err(Fault::Garbled(format!("it has more than {BODY_LIMIT_BYTES} bytes")).into());
            }
        }
        Ok(body)
    }

    /// What an answer used: as reported by the server, or an estimate.
    fn usage(&self, request: &Bytes, answer: &Answer) -> Usage {
        let about = |bytes: usize| bytes.div_ceil(TOKEN_BYTES) as u64;
        let (input_tokens, output_tokens) = answer
            .tokens()
            .unwrap_or_else(|| (about(request.len()), about(answer.bytes())));
        let prices = self.core.settings.prices;
        Usage {
            input_tokens,
            output_tokens,
            requests: 1,
            cost_micros: prices.map_or(0, |prices| prices.cost_micros(input_tokens, output_tokens)),
        }
    }

    /// Records what a request used.
    async fn count(&mut self, request: &Bytes, arrived: &Arrived) -> Result<(), SinkError> {
        let sink = &self.turn.sink;
        match arrived.begun {
            Begun::No => Ok(()),
            Begun::Refused => {
                sink.used(Usage {
                    requests: 1,
                    ..Usage::default()
                })
                .await
            }
            Begun::Answer => {
                if arrived.answer.tokens().is_none() && !self.has_told_estimate {
                    self.has_told_estimate = true;
                    let text = "the server does not tell how many tokens it used; they are estimated";
                    sink.trouble("usage_estimated", text).await?;
                }
                sink.used(self.usage(request, &arrived.answer)).await
            }
        }
    }

    /// Waits, unless the turn ends first.
    async fn wait(&self, pause: Duration) -> Result<(), Halt> {
        let pause = Deadline::after(&self.core.clock, pause);
        tokio::select! {
            biased;
            _ = self.turn.scope.wait() => Err(Halt::Cancelled),
            () = self.time.clone().passed() => Err(Halt::Limit(Limit::Time(self.core.settings.limits.time))),
            () = pause.passed() => Ok(()),
        }
    }
}

/// How long something may take within a turn.
struct Patience<'a> {
    asking: &'a Asking<'a>,
    what: &'static str,
    limit: Duration,
    deadline: Deadline,
}

impl<'a> Patience<'a> {
    fn new(asking: &'a Asking<'_>, what: &'static str, limit: Duration) -> Self {
        Self {
            asking,
            what,
            limit,
            deadline: Deadline::after(&asking.core.clock, limit),
        }
    }

    /// Waits for a future, unless the turn ends or time runs out first.
    async fn wait<T>(&self, wanted: impl Future<Output = T>) -> Result<T, Trip> {
        let Asking { turn, time, core, .. } = self.asking;
        tokio::select! {
            biased;
            _ = turn.scope.wait() => Err(Trip::Halt(Halt::Cancelled)),
            came = wanted => Ok(came),
            () = time.clone().passed() => Err(Trip::Halt(Halt::Limit(Limit::Time(core.settings.limits.time)))),
            () = self.deadline.clone().passed() => Err(Fault::Slow(self.what, self.limit).into()),
        }
    }
}

impl Arrived {
    /// Ends the announced calls without making them.
    pub(super) async fn give_up(&self, state: ToolState, why: &str) {
        for call in self.calls.iter().flatten() {
            // If the turn accepts nothing more, there is no one left to inform.
            call.ended(state, why, None).await.ok();
        }
    }
}

/// The server has started a real answer: report success now rather than after the rest.
fn settle(permit: &mut Option<Permit<Circuit>>) {
    if let Some(permit) = permit.take() {
        permit.success();
    }
}

fn is_json(reply: &Response) -> bool {
    let headers = reply.headers();
    let kind = headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("application/json"))
}
