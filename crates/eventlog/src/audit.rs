//! Whether what a log holds is whole, as far as one can see from outside its engine.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::{
    blob_io::Gathered,
    error::LogError,
    names::{Sequence, StreamId},
    record::{QUEUE_RECORDS, Record},
    store::Store,
};

/// How many problems are listed; more of them say nothing new.
const PROBLEMS: usize = 100;

/// Asks the engine what it finds wrong with itself, then reads everything: each blob must be what its address says,
/// and the events of each stream must follow each other without a gap.
pub(crate) async fn problems(store: &dyn Store) -> Result<Vec<String>, LogError> {
    let mut problems = Vec::new();
    match store.check_integrity().await {
        Ok(found) => problems.extend(found),
        Err(error) => problems.push(damage(error)?),
    }
    let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
    let looking = tokio::task::spawn_blocking(move || look(receiver));
    let dumped = store.dump(sender).await;
    let looked = looking.await;
    problems.extend(looked.map_err(|failed| LogError::Engine(Arc::new(failed)))?);
    if let Err(error) = dumped {
        problems.push(damage(error)?);
    }
    Ok(problems)
}

/// Damage that keeps the log from being read is what was looked for; any other failure is not.
fn damage(error: LogError) -> Result<String, LogError> {
    match error {
        LogError::Corrupt(source) => Ok(format!("not everything can be read: {source}")),
        error => Err(error),
    }
}

/// Where the records are.
#[derive(Default)]
struct Audit {
    gathered: Gathered,
    stream: Option<(StreamId, Sequence, Sequence)>,
    problems: Vec<String>,
}

fn look(mut records: mpsc::Receiver<Record>) -> Vec<String> {
    let mut audit = Audit::default();
    while let Some(record) = records.blocking_recv() {
        audit.take(record);
    }
    audit.problems
}

impl Audit {
    fn take(&mut self, record: Record) {
        match record {
            Record::Chunk { compressed } => drop(self.gathered.add_compressed(&compressed)),
            Record::Blob { id, info } => {
                if !std::mem::take(&mut self.gathered).is_whole(id, info) {
                    self.report(format!("the blob {id} is damaged"));
                }
            }
            Record::Stream { id, first, last, .. } => {
                self.finish_stream();
                self.stream = Some((id, first, last));
            }
            Record::Event { event, .. } => {
                let Some((stream, next, last)) = self.stream.take() else {
                    return;
                };
                if event.sequence != next {
                    self.report(format!(
                        "the stream `{stream}` has event {} where {next} is due",
                        event.sequence
                    ));
                }
                self.stream = Some((stream, event.sequence.next(), last));
            }
            Record::End => self.finish_stream(),
        }
    }

    fn finish_stream(&mut self) {
        if let Some((stream, next, last)) = self.stream.take()
            && next != last.next()
        {
            self.report(format!(
                "the stream `{stream}` should end with event {last}, but event {next} is missing"
            ));
        }
    }

    fn report(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(problem);
        }
    }
}
