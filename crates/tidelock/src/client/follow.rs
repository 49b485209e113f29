//! Event streams, followed over restarts of the daemon.
//!
//! Every event has an id. A stream that ends too early is asked for again from the last event that was taken in, so that
//! nothing is missed and nothing is told twice. How long nobody may answer is bounded.

use std::io::{self, ErrorKind};
use std::mem;
use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, HeaderName};
use serde::de::DeserializeOwned;

use super::stream::Downloaded;
use super::{Client, ClientError, Interrupts, LOOK_AGAIN_AFTER, Paused};
use crate::error::{Failure, UNREACHABLE};
use protocol::sse::{EventReader, ServerEvent};

/// A stream has a heartbeat every 15 seconds. After three that did not come, nobody is there.
const SILENCE: Duration = Duration::from_secs(45);
/// How long nobody may answer: long enough for a daemon to end and another one to start.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Takes in a stream of events.
pub(crate) trait Follower {
    /// What the last event tells.
    type End;

    /// Takes in an event, and returns the end if it is that.
    fn hear(&mut self, event: &ServerEvent) -> io::Result<Option<Self::End>>;

    /// Everything that has come so far has been taken in.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Tells people something that is not in the stream.
    fn note(&mut self, _text: &str) {}

    /// Looks for the end when the stream is over and has not told it.
    fn look_for_end(&mut self) -> Result<Option<ServerEvent>, Failure> {
        Ok(None)
    }

    /// Starts a daemon that has crashed.
    fn revive(&mut self) -> Result<Revived, Failure> {
        Ok(Revived::No)
    }

    /// Somebody pressed Ctrl-C. The second one ends the following.
    fn cancel(&mut self) {}

    /// What to report when nobody has answered for too long; without it the wait goes on.
    fn lost(&self, error: Option<ClientError>) -> Option<Failure>;

    /// What to report when following cannot go on.
    fn failed(&self, error: ClientError) -> Failure {
        error.into()
    }
}

/// Whether a daemon was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revived {
    No,
    Yes,
}

/// Whether somebody has pressed Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    No,
    Yes,
}

/// Why following ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// The end was told.
    Over { end: T, interrupted: Interrupted },
    /// Somebody pressed Ctrl-C twice.
    LeftAlone,
    /// Nobody reads what is told.
    NobodyReads,
}

/// How the reading of one stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// With the stream.
    Over,
    /// The reader has heard enough.
    Enough,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// Whether to go on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hear {
    More,
    Enough,
}

impl Client {
    /// Follows a stream from a place to its end.
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
                    // Only what was taken in is not asked for again.
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
                    // A stream that has only ended most likely goes on at once.
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

    /// Waits for the next event after a place, and moves the place on. It also returns when the stream ends, and when
    /// something has come and `is_enough` says so.
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

    /// Reads one stream. `take` gets the events of each piece; a sign of life has none.
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
                // The only way to leave a stream that goes on.
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

    /// Reads something for somebody who stays: a daemon that ends while it answers, and the next one too, is asked again
    /// for a while.
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

/// A stream has ended too early. Returns the error if nobody is there, and nothing if the daemon is about to end or to
/// serve.
///
/// # Errors
/// It would fail again.
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
