//! Who sent a request, for those who write it down.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use protocol::RequestId;

use crate::access::Transport;
use crate::app::App;
use crate::durable::Who;

impl FromRequestParts<Arc<App>> for Who {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Infallible> {
        let extensions = &parts.extensions;
        Ok(Self {
            // Both are put in by the layers around every handler. Without them the change would still be one.
            request_id: extensions.get().copied().unwrap_or_else(RequestId::generate),
            transport: extensions.get().copied().unwrap_or(Transport::Tcp),
        })
    }
}
