//! The two transports: streamable HTTP, and a stream of lines on the socket.

use std::io;
use std::sync::Arc;

use ::http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE};
use ::http::{Method, StatusCode};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http_body_util::Full;
use kernel::CancellationToken;
use protocol::ErrorCode;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken as LibraryToken;

use super::clients::CLIENTS;
use super::handler::{Channel, Handler};
use super::headers::ClientHeaders;
use super::stream;
use crate::app::App;
use crate::http::{EVENT_STREAM, Problem, read_body, take_place};
use crate::server::{KeepsItsPlace, Switch};

/// The protocol that a client of the stream asks to upgrade to.
const PROTOCOL: &str = "tidelock-mcp";

type Service = StreamableHttpService<Handler, LocalSessionManager>;

pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let service = service(app);
    let streamable = move |State(app): State<Arc<App>>, request: Request| {
        let service = service.clone();
        async move { answer(&app, &service, request).await }
    };
    let connect = |State(app): State<Arc<App>>, request: Request| async move { connect(&app, &request) };
    Router::new()
        .route("/mcp", any(streamable))
        .route("/v1/mcp/connect", get(connect))
}

/// The library's side of streamable HTTP. The caller and its origin have been checked before.
fn service(app: &Arc<App>) -> Service {
    let sessions = Arc::new(LocalSessionManager::default());
    let token = LibraryToken::new();
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_cancellation_token(token.clone())
        .with_max_request_body_bytes(app.body_limit_bytes);
    let (stop, ending) = (app.life.scope(), Arc::clone(&sessions));
    app.mcp.tasks.spawn("end of sessions", async move {
        stop.wait().await;
        token.cancel();
        let open: Vec<_> = ending.sessions.read().await.keys().cloned().collect();
        for session in open {
            if let Err(error) = ending.close_session(&session).await {
                tracing::debug!(%error, "a session does not end by itself");
            }
        }
    });
    let app = Arc::clone(app);
    let handler =
        move || -> io::Result<Handler> { Ok(Handler::new(&app, Channel::Http, CancellationToken::new())) };
    StreamableHttpService::new(handler, sessions, config)
}

/// Answers one request over HTTP. Its body is read here, within our limits of size and time.
async fn answer(app: &App, service: &Service, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read_body(app, body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let method = parts.method.clone();
    let request = ::http::Request::from_parts(parts, Full::new(body));
    let mut response = service.handle(request).await.map(Body::new);
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|media_type| media_type == EVENT_STREAM);
    match (is_stream, method) {
        (false, _) => response,
        // A stream that answers one request ends with it.
        (true, Method::POST) => {
            response.extensions_mut().insert(KeepsItsPlace);
            response
        }
        (true, _) => match take_place(app) {
            Ok(place) => response.map(|body| Body::new(Held { body, _place: place })),
            Err(problem) => problem.into_response(),
        },
    }
}

/// Turns a connection into a stream of lines.
fn connect(app: &Arc<App>, request: &Request) -> Response {
    let asks = request
        .headers()
        .get(UPGRADE)
        .is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()));
    if !asks {
        let detail =
            format!("This path only accepts requests with `Upgrade: {PROTOCOL}`; `tidelock mcp` sends them.");
        return Problem::new(ErrorCode::InvalidRequest, detail).into_response();
    }
    if app.mcp.clients.connected() >= CLIENTS {
        let detail = format!("Too many clients: {CLIENTS} are already connected.");
        return Problem::new(ErrorCode::StreamLimitReached, detail).into_response();
    }
    let place = match take_place(app) {
        Ok(place) => place,
        Err(problem) => return problem.into_response(),
    };
    let gone = CancellationToken::new();
    let channel = Channel::Stream(ClientHeaders::read(request.headers()));
    let handler = Handler::new(app, channel, gone.clone());
    let switch = Switch::new(move |switched| async move {
        stream::serve(handler, gone, switched).await;
        drop(place);
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    response.extensions_mut().insert(switch);
    response
}

/// A body that holds a permit for a stream, and returns it at its end.
struct Held {
    body: Body,
    _place: OwnedSemaphorePermit,
}

impl hyper::body::Body for Held {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }
}
