//! Follows event streams across restarts of the daemon.
//!
//! Every event has an id. A stream that ends too early is requested again from the last event that was handled, so no
//! event is missed or reported twice. The wait for a daemon that does not answer is bounded.

use std::io::{self, ErrorKind};
use std::mem;
use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, HeaderName};
use serde::de::DeserializeOwned;

use super::stream::Downloaded;
use super::{Client, ClientError, Interrupts, LOOK_AGAIN_AFTER, Paused};
use crate::error::{Failure, UNREACHABLE};
use protocol::sse::{EventReader, ServerEvent};

/// A stream has a heartbeat every 15 seconds. After three missed heartbeats, the daemon counts as gone.
const SILENCE: Duration = Duration::from_secs(45);
/// How long the daemon may be unreachable: long enough for one to end and another one to start.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Handles a stream of events.
pub(crate) trait Follower {
    /// The result that the last event carries.
    type End;

    /// Handles an event. Returns the result if it is the last one.
    fn hear(&mut self, event: &ServerEvent) -> io::Result<Option<Self::End>>;

    /// Called when every event received so far has been handled.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Shows the user something that is not in the stream.
    fn note(&mut self, _text: &str) {}

    /// Looks up the end when the stream is over without one.
    fn look_for_end(&mut self) -> Result<Option<ServerEvent>, Failure> {
        Ok(None)
    }

    /// Restarts a daemon that has crashed.
    fn revive(&mut self) -> Result<Revived, Failure> {
        Ok(Revived::No)
    }

    /// The user pressed Ctrl-C. The second one stops following.
    fn cancel(&mut self) {}

    /// The failure to report when the daemon was unreachable for too long. `None` keeps waiting.
    fn lost(&self, error: Option<ClientError>) -> Option<Failure>;

    /// The failure to report when following cannot continue.
    fn failed(&self, error: ClientError) -> Failure {
        error.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revived {
    No,
    Yes,
}

/// Whether the user pressed Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    No,
    Yes,
}

/// Why following ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// The last event arrived.
    Over { end: T, interrupted: Interrupted },
    /// The user pressed Ctrl-C twice.
    LeftAlone,
    /// The reader of our output has closed it.
    NobodyReads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The stream ended.
    Over,
    /// The reader has seen enough.
    Enough,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Whether to keep reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hear {
    More,
    Enough,
}

impl Client {
    /// Follows a stream from a position to its end.
    pub(crate) fn follow<F: Follower>(
        &self,
        path: &str,
        mut place: Option<String>,
        interrupts: &mut Interrupts,
        follower: &mut F,
    ) -> Result<Ended<F::End>, Failure> {
        let mut interrupted = Interrupted::No;
        let mut silent_since: Option<Instant> = None;
        let mut is_absence_told = false;
        loop {
            let mut end = None;
            let after = place.clone();
            let mut ended = self.read_events(path, after.as_deref(), interrupts, |events| {
                (silent_since, is_absence_told) = (None, false);
                for event in events {
                    end = follower.hear(&event)?;
                    // Move on only past events that were handled.
                    place = event.id.or(place.take());
                    if end.is_some() {
                        break;
                    }
                }
                follower.flush()?;
                Ok(if end.is_some() { Hear::Enough } else { Hear::More })
            });
            if matches!(ended, Ok(StreamEnd::Over))
                && let Some(event) = follower.look_for_end()?
            {
                match follower.hear(&event) {
                    Ok(heard) => end = heard,
                    Err(source) => ended = Err(ClientError::Output { source }),
                }
            }
            match &ended {
                Err(ClientError::Output { source }) if source.kind() == ErrorKind::BrokenPipe => {
                    return Ok(Ended::NobodyReads);
                }
                Err(ClientError::Output { .. }) => {}
                _ => {
                    if let Some(end) = end {
                        return Ok(Ended::Over { end, interrupted });
                    }
                }
            }
            let paused = if matches!(ended, Ok(StreamEnd::Interrupted)) {
                Paused::UntilInterrupted
            } else {
                let error = absence(ended).map_err(|error| follower.failed(error))?;
                if error.is_none() || follower.revive()? == Revived::No {
                    let since = *silent_since.get_or_insert_with(Instant::now);
                    // A stream that merely ended will most likely continue at once.
                    let is_gone = error.is_some();
                    if since.elapsed() >= PATIENCE
                        && let Some(failure) = follower.lost(error)
                    {
                        return Err(failure);
                    }
                    if is_gone && !mem::replace(&mut is_absence_told, true) {
                        follower.note("the daemon is gone; waiting for it to come back");
                    }
                }
                self.pause(LOOK_AGAIN_AFTER, interrupts)
            };
            if paused == Paused::UntilInterrupted {
                if interrupted == Interrupted::Yes {
                    return Ok(Ended::LeftAlone);
                }
                interrupted = Interrupted::Yes;
                follower.cancel();
            }
        }
    }

    /// Waits for the next event after a position, and advances the position. Also returns when the stream ends, and
    /// when something has arrived and `is_enough` returns true.
    pub(crate) fn next_event(
        &self,
        path: &str,
        place: &mut String,
        interrupts: &mut Interrupts,
        mut is_enough: impl FnMut() -> bool,
    ) -> Result<StreamEnd, ClientError> {
        let after = place.clone();
        self.read_events(path, Some(&after), interrupts, |events| {
            let mut hear = if is_enough() { Hear::Enough } else { Hear::More };
            for id in events.into_iter().filter_map(|event| event.id) {
                *place = id;
                hear = Hear::Enough;
            }
            Ok(hear)
        })
    }

    /// Reads one stream. `take` receives the events of each chunk; a heartbeat has none.
    fn read_events(
        &self,
        path: &str,
        after: Option<&str>,
        interrupts: &mut Interrupts,
        mut take: impl FnMut(Vec<ServerEvent>) -> io::Result<Hear>,
    ) -> Result<StreamEnd, ClientError> {
        let mut reader = EventReader::default();
        let mut headers = vec![(ACCEPT, "text/event-stream".to_owned())];
        headers.extend(after.map(|after| (HeaderName::from_static("last-event-id"), after.to_owned())));
        let mut heard = Hear::More;
        let ended = self.download_until(path, &headers, SILENCE, interrupts, |piece| {
            heard = take(reader.read(piece))?;
            match heard {
                Hear::More => Ok(()),
                // The only way to leave a stream that does not end.
                Hear::Enough => Err(ErrorKind::Interrupted.into()),
            }
        });
        match ended {
            Err(ClientError::Output { .. }) if heard == Hear::Enough => Ok(StreamEnd::Enough),
            Ok(Downloaded::Whole) => Ok(StreamEnd::Over),
            Ok(Downloaded::UntilInterrupted) => Ok(StreamEnd::Interrupted),
            Err(error) => Err(error),
        }
    }

    /// Fetches something for a client that stays: keeps retrying for a while across restarts of the daemon.
    pub(crate) fn fetch_patiently<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let give_up_at = Instant::now() + PATIENCE;
        loop {
            match self.fetch(path) {
                Err(failure) if failure.code == UNREACHABLE && Instant::now() < give_up_at => {
                    self.pause(LOOK_AGAIN_AFTER, &mut Interrupts::default());
                }
                answered => return answered,
            }
        }
    }
}

/// Classifies a stream that ended too early. Returns the error if no daemon answers, and `None` if the daemon is
/// stopping or starting.
///
/// # Errors
/// A retry would fail again.
pub(crate) fn absence(ended: Result<StreamEnd, ClientError>) -> Result<Option<ClientError>, ClientError> {
    match ended {
        Ok(_) => Ok(None),
        Err(ClientError::Refused(refusal)) if refusal.is_about_the_daemons_end() => Ok(None),
        Err(
            error @ (ClientError::Unreachable { .. }
            | ClientError::Broken { .. }
            | ClientError::Timeout { .. }),
        ) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}
