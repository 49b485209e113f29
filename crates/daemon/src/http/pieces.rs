//! A body that is sent piece by piece, as the connection has room.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::Frame;

/// The source of a body.
pub(crate) trait Source: Send + Sized + 'static {
    /// The next piece, and the source for the one after; `None` at the end. After an error there is no other, and the
    /// connection is aborted, so that the client doesn't take a partial body for the whole.
    fn next(self) -> impl Future<Output = Piece<Self>> + Send;
}

pub(crate) type Piece<S> = Option<(S, io::Result<Bytes>)>;

/// The body of a source. Dropping it drops the source.
pub(crate) fn body_of<S: Source>(source: S) -> Body {
    Body::new(Pieces {
        next: Some(Box::pin(source.next())),
    })
}

struct Pieces<S> {
    next: Option<Pin<Box<dyn Future<Output = Piece<S>> + Send>>>,
}

impl<S: Source> hyper::body::Body for Pieces<S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(next) = &mut self.next else {
            return Poll::Ready(None);
        };
        let piece = ready!(next.as_mut().poll(context));
        self.next = None;
        let Some((source, bytes)) = piece else {
            return Poll::Ready(None);
        };
        if bytes.is_ok() {
            self.next = Some(Box::pin(source.next()));
        }
        Poll::Ready(Some(bytes.map(Frame::data)))
    }
}
