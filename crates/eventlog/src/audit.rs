//! Checks whether a log is intact, as far as that is visible from outside its engine.

use std::{path::Path, sync::Arc};

use tokio::sync::mpsc;

use crate::{
    blob_io::BlobVerifier,
    error::{LogError, OpenError},
    log::HeadCheck,
    names::{Sequence, StreamId},
    quarantine::Quarantined,
    record::{QUEUE_RECORDS, Record},
    sqlite,
    store::Store,
};

/// How many problems are listed. More would add nothing.
const PROBLEMS: usize = 100;

/// Asks the engine for its own problems, then reads everything: each blob must match its address, and the events
/// of each stream must follow each other without a gap.
pub(crate) async fn problems(store: &dyn Store, check: HeadCheck) -> Result<AuditReport, LogError> {
    let mut problems = Vec::new();
    match store.check_integrity().await {
        Ok(found) => problems.extend(found),
        Err(error) => problems.push(damage(error)?),
    }
    let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
    let looking = tokio::task::spawn_blocking(move || look(receiver, check));
    let dumped = store.dump(sender).await;
    let looked = looking
        .await
        .map_err(|failed| LogError::Engine(Arc::new(failed)))?;
    problems.extend(looked.problems);
    if let Err(error) = dumped {
        problems.push(damage(error)?);
    }
    Ok(AuditReport {
        problems,
        unreadable: looked.unreadable,
    })
}

/// Like [`problems`], for a file that no process has open. It changes nothing in the file.
pub(crate) fn problems_of_file(path: &Path, check: HeadCheck) -> Result<Vec<String>, OpenError> {
    let failed = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    let file = sqlite::UnopenedFile::at(path)?;
    let mut problems = match file.problems() {
        Ok(problems) => problems,
        Err(error) => vec![damage(error).map_err(failed)?],
    };
    let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
    let (looked, dumped) = std::thread::scope(|scope| {
        let looking = scope.spawn(move || look(receiver, check));
        let dumped = file.dump(sender);
        (looking.join(), dumped)
    });
    match looked {
        Ok(looked) => problems.extend(looked.problems),
        Err(_) => problems.push("the check itself failed".to_owned()),
    }
    if let Err(error) = dumped {
        problems.push(damage(error).map_err(failed)?);
    }
    Ok(problems)
}

/// Turns damage into a reported problem. Other errors are returned.
fn damage(error: LogError) -> Result<String, LogError> {
    match error {
        LogError::Corrupt(source) => Ok(format!("not everything can be read: {source}")),
        error => Err(error),
    }
}

#[derive(Debug, Default)]
pub(crate) struct AuditReport {
    /// The problems, one sentence each.
    pub(crate) problems: Vec<String>,
    /// The heads that their own writers can't read.
    pub(crate) unreadable: Vec<Quarantined>,
}

/// The position in the records.
struct Audit {
    verifier: BlobVerifier,
    stream: Option<(StreamId, Sequence, Sequence)>,
    found: AuditReport,
    check: HeadCheck,
}

pub(crate) fn look(mut records: mpsc::Receiver<Record>, check: HeadCheck) -> AuditReport {
    let mut audit = Audit {
        verifier: BlobVerifier::default(),
        stream: None,
        found: AuditReport::default(),
        check,
    };
    while let Some(record) = records.blocking_recv() {
        audit.take(record);
    }
    audit.found
}

impl Audit {
    fn take(&mut self, record: Record) {
        match record {
            Record::Chunk { compressed } => drop(self.verifier.add_stored(&compressed)),
            Record::Blob { id, info } => {
                if !std::mem::take(&mut self.verifier).is_whole(id, info) {
                    self.report(format!("the blob {id} is damaged"));
                }
            }
            Record::Stream {
                id,
                head,
                first,
                last,
            } => {
                self.finish_stream();
                if let Some(reason) = (self.check)(&id, &head) {
                    self.report(format!("the head of `{id}` cannot be read: {reason}"));
                    if self.found.unreadable.len() < PROBLEMS {
                        self.found.unreadable.push(Quarantined {
                            stream: id.to_string(),
                            kind: head.kind,
                            reason,
                        });
                    }
                }
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
            Record::LeftOut { what, .. } => self.report(what),
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
        if self.found.problems.len() < PROBLEMS {
            self.found.problems.push(problem);
        }
    }
}
