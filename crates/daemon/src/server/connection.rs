//! One connection: serves requests one after another, within limits, until one side closes it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use kernel::{Clock, Deadline, Scope};
use protocol::{ErrorCode, PROBLEM_MEDIA_TYPE, RequestId};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::connections::{ConnectionState, PooledConnection, TrackedBody};
use super::event_stream::{self, LastAnswer, LetGo, StreamAnswer};
use super::switch::{Switch, Switched};
use super::timer::ClockTimer;
use super::trim_memory::MemoryTrimmer;
use super::write_limit::WriteLimit;
use crate::access::Transport;
use crate::http::consent::Peer;
use crate::http::{EVENT_STREAM, Problem, REQUEST_ID_HEADER};

/// How long the head of a request may take, and how long a connection may be idle.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How large the head of a request may be. Ours have a few hundred bytes, those of browsers a few thousand.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How many headers a request may have.
const MAX_HEADERS: usize = 64;

/// How much to read ahead, per connection.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) router: Router,
    pub(super) clock: Arc<dyn Clock>,
    /// Cancelled when no new requests are accepted.
    pub(super) stop: Scope,
    /// Cancelled when requests in flight are dropped, too.
    pub(super) cut: Scope,
    pub(super) trimmer: MemoryTrimmer,
}

/// How long the rest of an answer may take when its connection is evicted. It has already been written, so only a peer
/// that doesn't read needs longer.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Serves one connection to its end. It holds its permit until then, or until the answer is a stream.
pub(super) async fn serve<S>(
    stream: S,
    transport: Transport,
    peer: Peer,
    context: Context,
    pooled: PooledConnection,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (stop, cut, trimmer) = (context.stop.clone(), context.cut.clone(), context.trimmer.clone());
    let pooled = Arc::new(pooled);
    // Box the future, so that the memory of the HTTP part is freed afterwards: some connections stay open for
    // hours.
    match Box::pin(speak_http(stream, transport, peer, context, Arc::clone(&pooled))).await {
        Afterwards::Nothing => {}
        Afterwards::Stream(stream, answer) => {
            if let Err(error) = event_stream::serve(stream, answer, cut).await {
                tracing::debug!(%error, ?transport, "a stream broke");
            }
            trimmer.stream_ended();
        }
        Afterwards::Switched(stream, read, next) => {
            pooled.release_permit();
            next(Switched::new(stream, read, stop, cut)).await;
        }
    }
}

/// What a connection does after its last HTTP request.
enum Afterwards<S> {
    Nothing,
    Stream(WriteLimit<S>, StreamAnswer),
    /// Another protocol, which may have started in the bytes that were already read.
    Switched(WriteLimit<S>, Bytes, super::switch::Next),
}

/// Answers requests one after another.
async fn speak_http<S>(
    stream: S,
    transport: Transport,
    peer: Peer,
    context: Context,
    pooled: Arc<PooledConnection>,
) -> Afterwards<S>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let stream = WriteLimit::new(stream, Arc::clone(&context.clock));
    let router = TowerToHyperService::new(context.router);
    let (switch, last) = (Agreed::default(), LastAnswer::default());
    let (of_service, agreed, stream_answer) = (Arc::clone(&pooled), switch.clone(), last.clone());
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        of_service.start_request();
        request.extensions_mut().insert(transport);
        request.extensions_mut().insert(peer);
        let (has_body, version) = (request.method() != Method::HEAD, request.version());
        let (answered, pooled) = (router.call(request), Arc::clone(&of_service));
        let (agreed, stream_answer) = (agreed.clone(), stream_answer.clone());
        async move {
            let Ok(mut response) = answered.await;
            if has_body && is_stream(&response) {
                pooled.release_permit();
                stream_answer.put(StreamAnswer::new(response, version));
                return Err(LetGo);
            }
            agreed.note(&mut response);
            Ok(response.map(|body| TrackedBody::new(body, pooled)))
        }
    });
    let mut connection = http1::Builder::new()
        .timer(ClockTimer::new(Arc::clone(&context.clock)))
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);

    let evicted = pooled.evicted();
    let ended = tokio::select! {
        // A request that has arrived takes precedence over an eviction.
        biased;
        ended = &mut connection => ended,
        _ = context.stop.wait() => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                ended = &mut connection => ended,
                _ = context.cut.wait() => return Afterwards::Nothing,
            }
        }
        _ = evicted.wait() => {
            let patience = match pooled.state() {
                // No request was started, so there is nothing to answer.
                ConnectionState::New { .. } => return Afterwards::Nothing,
                ConnectionState::Answered { .. } => Some(Deadline::after(&context.clock, LEAVE_WITHIN)),
                ConnectionState::Working => None,
            };
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                ended = &mut connection => ended,
                _ = context.cut.wait() => return Afterwards::Nothing,
                () = passed(patience) => return Afterwards::Nothing,
            }
        }
    };
    if let Some(answer) = last.take() {
        return Afterwards::Stream(connection.into_parts().io.into_inner(), answer);
    }
    if let Some(next) = switch.take() {
        let rest = connection.into_parts();
        return Afterwards::Switched(rest.io.into_inner(), rest.read_buf, next);
    }
    if let Err(error) = ended {
        tracing::debug!(%error, ?transport, "a connection broke");
        let rest = connection.into_parts();
        // Without any bytes of a request, it was merely idle, and there is nothing to answer.
        if error.is_timeout() && !rest.read_buf.is_empty() {
            answer_timeout(rest.io.into_inner(), context.cut).await;
        }
    }
    Afterwards::Nothing
}

/// Waits for the deadline, if there is one.
async fn passed(patience: Option<Deadline>) {
    match patience {
        Some(deadline) => deadline.passed().await,
        None => std::future::pending().await,
    }
}

/// Whether an answer is a stream, which has its own permit. The connection ends with it, because it can't take another
/// request.
fn is_stream<B>(response: &http::Response<B>) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    media_type.is_some_and(|media_type| media_type == EVENT_STREAM)
        && response.extensions().get::<KeepsItsPlace>().is_none()
}

/// Marks an answer that is written as a stream but ends like any other: its connection keeps its permit and accepts
/// further requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepsItsPlace;

/// The protocol that both sides have agreed to switch to.
#[derive(Clone, Debug, Default)]
struct Agreed(
    /// Guards the value; held only to set or take it.
    Arc<Mutex<Option<Switch>>>,
);

impl Agreed {
    fn note<B>(&self, response: &mut http::Response<B>) {
        if let Some(switch) = response.extensions_mut().remove::<Switch>() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(switch);
        }
    }

    fn take(&self) -> Option<super::switch::Next> {
        let switch = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        switch.and_then(|switch| switch.take())
    }
}

/// Answers a client whose request head did not arrive in time. hyper would close the connection without an answer.
async fn answer_timeout<S: AsyncWrite + Unpin>(mut stream: S, cut: Scope) {
    let request_id = RequestId::generate();
    let detail = format!(
        "The head of the request did not arrive within {} seconds.",
        HEAD_TIMEOUT.as_secs()
    );
    let problem = Problem::new(ErrorCode::RequestTimeout, detail).into_body(request_id);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\n\
         {REQUEST_ID_HEADER}: {request_id}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len(),
    );
    // A few hundred bytes fit into any socket buffer, so this doesn't wait for the caller. If it did,
    // stopping the daemon would end it.
    tokio::select! {
        written = stream.write_all(answer.as_bytes()) => {
            if let Err(error) = written {
                tracing::debug!(%error, "a caller did not wait for its answer");
            }
        }
        _ = cut.wait() => {}
    }
}

#[cfg(test)]
mod tests {
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use kernel::CancellationToken;
    use tokio::io::{AsyncReadExt, duplex};

    use super::super::connections::ConnectionPool;
    use super::*;
    use crate::app::tests::detached;
    use crate::http::finish;

    async fn stumble() -> &'static str {
        panic!("on purpose")
    }

    async fn fine() -> &'static str {
        "fine"
    }

    #[tokio::test]
    async fn a_handler_that_panics_ends_its_request_and_nothing_else() {
        let app = detached().await;
        let context = Context {
            router: Router::new()
                .route("/stumble", get(stumble))
                .route("/fine", get(fine))
                .layer(from_fn_with_state(Arc::clone(&app), finish)),
            clock: Arc::clone(&app.clock),
            stop: CancellationToken::new().scope(),
            cut: CancellationToken::new().scope(),
            trimmer: MemoryTrimmer::new(),
        };
        let (mut client, server) = duplex(MAX_BUFFER_BYTES);
        let requests = "GET /stumble HTTP/1.1\r\n\r\nGET /fine HTTP/1.1\r\nConnection: close\r\n\r\n";
        client.write_all(requests.as_bytes()).await.unwrap();
        let pooled = ConnectionPool::new(1).take().await.unwrap();
        serve(server, Transport::Unix, Peer(None), context, pooled).await;
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();

        let (first, second) = answers
            .split_once("}HTTP/1.1 ")
            .unwrap_or_else(|| panic!("{answers}"));
        assert!(first.starts_with("HTTP/1.1 500 "), "{first}");
        let (_, body) = first.split_once("\r\n\r\n").unwrap();
        let problem: protocol::Problem = serde_json::from_str(&format!("{body}}}")).unwrap();
        assert_eq!(problem.code, ErrorCode::Internal);
        assert!(!body.contains("on purpose"), "the cause is for the log: {body}");
        assert!(second.starts_with("200 ") && second.ends_with("fine"), "{second}");
    }
}
