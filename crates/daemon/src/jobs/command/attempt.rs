//! One child, from its start to its end.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use jobs::OutputError;
use kernel::{CancellationToken, Cause, Clock, Deadline, Scope};
use process::{Child, Ended, StopPlan};
use protocol::JobChannel;

use super::feed::{Content, Fed, feed};
use super::outcome::{Why, with_causes};
use super::streams::{self, Ending, Sink};

/// How a command is stopped: SIGTERM now, SIGKILL two seconds later.
const STOP: StopPlan = StopPlan::PROMPT;
/// How long to read the streams of a command after all its processes have ended. Its own output is there already and is
/// read at once; this only waits for a stream that another process still has open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Supervises a child: feeds its input, takes its output, and stops it when the scope is cancelled or its output is
/// refused. When this returns, none of the child's processes are running.
pub(super) async fn see_through(
    child: &Child,
    content: Content,
    sink: &impl Sink,
    scope: &Scope,
    clock: &Arc<dyn Clock>,
) -> (Why, Ended, Fed) {
    let (gone, over) = (CancellationToken::new(), CancellationToken::new());
    let ending = Ending {
        gone: gone.scope(),
        over: over.scope(),
    };
    let carry = async |outlet, channel| match outlet {
        Some(outlet) => streams::carry(outlet, channel, sink, &ending).await,
        // The child is new, so its stderr can't have been taken before: it goes to the same stream as its
        // stdout.
        None => Ok(()),
    };
    let mut said = pin!(async {
        tokio::try_join!(
            carry(child.stdout(), JobChannel::Stdout),
            carry(child.stderr(), JobChannel::Stderr)
        )
    });
    let mut feeding = pin!(feed(child.stdin(), content, clock));
    let mut end: Pin<Box<dyn Future<Output = Ended> + Send>> = Box::pin(child.ended());
    let (mut is_said, mut is_fed) = (false, false);
    let mut ended = None;
    let mut why = Why::ByItself;
    let mut fed = Fed::Whole;
    let mut last_words = Deadline::never();
    loop {
        // The end goes before a request to stop: what is done is done. Input goes before output, which may be
        // endless, so that neither starves.
        let reason = tokio::select! {
            biased;
            it = &mut end, if ended.is_none() => {
                ended = Some(it);
                gone.cancel(Cause::new("the command", "it has ended"));
                last_words = Deadline::after(clock, LAST_WORDS);
                None
            }
            _ = scope.wait(), if ended.is_none() && why == Why::ByItself => Some(Why::Stopped),
            result = &mut feeding, if !is_fed => {
                is_fed = true;
                match result {
                    Ok(end) => {
                        fed = end;
                        None
                    }
                    Err(error) => Some(Why::Input(with_causes(&error))),
                }
            }
            result = &mut said, if !is_said => {
                is_said = true;
                result.err().map(refused)
            }
            () = last_words.clone().passed(), if !over.is_cancelled() => {
                over.cancel(Cause::new("the command", "it has had time for its last words"));
                None
            }
        };
        if let Some(reason) = reason.filter(|_| why == Why::ByItself) {
            why = reason;
            if ended.is_none() {
                end = Box::pin(child.stop(STOP));
            }
        }
        if let (Some(ended), true) = (&ended, is_said) {
            return (why, ended.clone(), fed);
        }
    }
}

/// Another daemon has the job and this attempt is over, or the log has failed.
fn refused(error: OutputError) -> Why {
    match error {
        OutputError::Fenced | OutputError::Finished => Why::Stopped,
        OutputError::Log(error) => Why::Output(with_causes(&error)),
    }
}
