//! Requests to the daemon's own routes, from inside.
//!
//! They do not go through a socket, so there is nothing to prove: the routes are those behind the guard, without the guard.
//! Nobody outside can reach them, since nothing listens for them.

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderName, Method, Request, Response};
use axum::Router;
use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use protocol::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bounds::Excerpt;
use crate::access::Transport;
use crate::http::consent::OnBehalfOfAgent;

const ACTOR: HeaderName = HeaderName::from_static("tidelock-actor");

/// The way to the daemon's own routes. Clones are the same way.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    routes: TowerToHyperService<Router>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// The request was understood and not granted.
    #[error("{}: {}", .0.code.as_str(), .0.detail)]
    Problem(Box<Problem>),
    /// It could not be asked or read, which would be a mistake of ours.
    #[error("can't read the daemon's response: {0}")]
    Broken(String),
}

impl From<crate::http::Problem> for Refused {
    fn from(problem: crate::http::Problem) -> Self {
        // There was no request that it could belong to.
        Self::Problem(Box::new(problem.into_body(protocol::RequestId::generate())))
    }
}

impl Inside {
    pub(crate) fn new(routes: Router) -> Self {
        Self {
            routes: TowerToHyperService::new(routes),
        }
    }

    /// Asks for something.
    pub(super) async fn get<A: DeserializeOwned>(&self, actor: &str, path: &str) -> Result<A, Refused> {
        let answer = self.send(actor, Method::GET, path, Bytes::new()).await?;
        read(answer).await
    }

    /// Has something done.
    pub(super) async fn post<A: DeserializeOwned>(
        &self,
        actor: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, Refused> {
        let body = serde_json::to_vec(body).map_err(|error| Refused::Broken(error.to_string()))?;
        let answer = self.send(actor, Method::POST, path, body.into()).await?;
        read(answer).await
    }

    /// Has a command run that the user has said yes to, outside of every sandbox.
    pub(super) async fn start_for_agent<A: DeserializeOwned>(
        &self,
        actor: &str,
        order: &protocol::SubmitJob,
    ) -> Result<A, Refused> {
        let body = serde_json::to_vec(order).map_err(|error| Refused::Broken(error.to_string()))?;
        let mut request = built(actor, Method::POST, "/v1/jobs", body.into())?;
        request.extensions_mut().insert(OnBehalfOfAgent);
        read(self.answer(request).await?).await
    }

    /// Reads an answer that is a text, as much of it as the excerpt has room for.
    pub(super) async fn excerpt(
        &self,
        actor: &str,
        path: &str,
        mut excerpt: Excerpt,
    ) -> Result<Excerpt, Refused> {
        let mut answer = self.send(actor, Method::GET, path, Bytes::new()).await?;
        while let Some(frame) = answer.body_mut().frame().await {
            let frame = frame.map_err(|error| Refused::Broken(error.to_string()))?;
            if let Ok(piece) = frame.into_data() {
                excerpt.add(&piece);
            }
        }
        Ok(excerpt)
    }

    async fn send(
        &self,
        actor: &str,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Body>, Refused> {
        self.answer(built(actor, method, path, body)?).await
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Refused> {
        let Ok(answer) = self.routes.call(request).await;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(answer).await),
        }
    }
}

fn built(actor: &str, method: Method, path: &str, body: Bytes) -> Result<Request<Body>, Refused> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(ACTOR, actor)
        .extension(Transport::Unix);
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request.body(Body::from(body));
    request.map_err(|error| Refused::Broken(error.to_string()))
}

async fn refusal(answer: Response<Body>) -> Refused {
    let status = answer.status();
    match read::<Problem>(answer).await {
        Ok(problem) => Refused::Problem(Box::new(problem)),
        Err(_) => Refused::Broken(format!("unexpected status {status}")),
    }
}

async fn read<A: DeserializeOwned>(answer: Response<Body>) -> Result<A, Refused> {
    let body = answer.into_body().collect().await;
    let body = body.map_err(|error| Refused::Broken(error.to_string()))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| Refused::Broken(error.to_string()))
}
