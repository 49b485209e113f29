//! Waits for the end of a job, on any machine.

use eventlog::{Log, TailEnd};
use kernel::Scope;
use protocol::JobId;

use crate::{history, job::Job, output::FollowEnd};

pub(crate) async fn ended(log: &Log, id: JobId, scope: &Scope) -> Result<Job, FollowEnd> {
    let stream = history::job_stream(id);
    loop {
        let stored = log.head(&stream).await?.ok_or(FollowEnd::NotFound)?;
        let job = Job::of_head(log, &stored).map_err(|_| FollowEnd::NotFound)?;
        if job.record.state.is_terminal() {
            return Ok(job);
        }
        // Whatever the next event is, read the head again.
        let mut tail = log.tail(&stream, stored.last_sequence, scope);
        match tail.next().await {
            Ok(_) => {}
            Err(TailEnd::Cancelled(cause)) => return Err(FollowEnd::Cancelled(cause)),
            Err(TailEnd::Log(error)) => return Err(FollowEnd::Log(error)),
        }
    }
}
