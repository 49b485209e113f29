//! Accepts jobs: validates them, and writes them to disk before the caller gets an answer.

use eventlog::{BlobId, Commit, CommitError, Head, Log, StoredHead, Version, Write};
use protocol::JobId;
use serde::{Deserialize, Serialize};

use crate::{
    PAYLOAD_LIMIT_BYTES,
    answers::Submitted,
    attempt::Payload,
    error::SubmitError,
    history,
    job::{Facts, Job, NewJob, WaitsUntil},
    state,
};
use eventlog::UnixMs;

/// The length limit for a title, which is part of every list.
const TITLE_LIMIT_CHARS: usize = 200;
/// How many jobs one job may wait for. Each is looked up.
const AFTER_LIMIT: usize = 64;
/// How many blobs a job may have.
const BLOBS_LIMIT: usize = 64;
/// The length limit for an idempotency key.
const KEY_LIMIT_BYTES: usize = 256;
/// The length limit for the name of a lane, which is part of the name of a stream.
const LANE_LIMIT_BYTES: usize = 200;
/// How many retries a job may ask for.
const RETRIES_LIMIT: u16 = 1_000;

/// An accepted job, and what it was submitted with.
pub(crate) struct AcceptedJob {
    pub(crate) submitted: Submitted,
    pub(crate) payload: Payload,
    pub(crate) follower: Option<(Job, Payload)>,
}

/// Accepts a job, or finds the one that was accepted before with the same key.
pub(crate) async fn submit(log: &Log, new: NewJob, now: UnixMs) -> Result<AcceptedJob, SubmitError> {
    check(&new)?;
    for id in &new.facts.after {
        if Job::read(log, *id).await?.is_none() {
            return Err(SubmitError::UnknownDependency { id: *id });
        }
    }
    let NewJob {
        id,
        mut facts,
        payload,
        blobs,
        delay,
        essence,
        then,
    } = new;
    let mut follower = then.map(|then| follower(*then, id, now)).transpose()?;
    facts.followed_by = follower.as_ref().map(|(follower, _)| follower.id);
    let key = match facts.idempotency_key.clone() {
        None => None,
        Some(key) => Some(IdempotencyKey {
            job: id.to_string(),
            asks_for: fingerprint(&facts, essence.as_ref().unwrap_or(&payload), &blobs).map_err(refused)?,
            key,
        }),
    };
    let (record, _) = state::submitted(facts, delay, now);
    let mut job = Job::new(id, record);
    let payload = Payload {
        bytes: payload.into(),
        blobs,
    };
    let mut writes = vec![first_write(&job, &payload).map_err(refused)?];
    if let Some(key) = &key {
        writes.push(key.write().map_err(refused)?);
    }
    if let Some((follower, payload)) = &follower {
        writes.push(first_write(follower, payload).map_err(refused)?);
    }
    match log.commit(Commit::all(writes)).await {
        Ok(committed) => {
            if let (Some(first), Some(last)) = (committed.first(), committed.last()) {
                job.committed(*first);
                if let Some((follower, _)) = &mut follower {
                    follower.committed(*last);
                }
            }
            Ok(AcceptedJob {
                submitted: Submitted::New(job),
                payload,
                follower,
            })
        }
        Err(CommitError::Conflict {
            actual: Some(actual), ..
        }) => {
            let submitted = find_existing(log, &actual, key.as_ref()).await?;
            Ok(AcceptedJob {
                submitted,
                payload,
                follower: None,
            })
        }
        Err(error) => Err(refused(error)),
    }
}

/// The write that submits a job, to be included in another caller's commit.
pub(crate) fn submission(mut new: NewJob, now: UnixMs) -> Result<Write, SubmitError> {
    new.facts.waits_until = WaitsUntil::End;
    let (job, payload) = checked(new, now)?;
    first_write(&job, &payload).map_err(refused)
}

/// Creates a job that starts when another one has ended.
fn follower(mut new: NewJob, after: JobId, now: UnixMs) -> Result<(Job, Payload), SubmitError> {
    new.facts.after = vec![after];
    new.facts.waits_until = WaitsUntil::End;
    checked(new, now)
}

fn checked(new: NewJob, now: UnixMs) -> Result<(Job, Payload), SubmitError> {
    check(&new)?;
    let (record, _) = state::submitted(new.facts, new.delay, now);
    let payload = Payload {
        bytes: new.payload.into(),
        blobs: new.blobs,
    };
    Ok((Job::new(new.id, record), payload))
}

fn first_write(job: &Job, payload: &Payload) -> Result<Write, CommitError> {
    let Payload { bytes, blobs } = payload;
    let submitted = history::submitted_event(&job.record.facts.submitted_by, bytes, blobs.clone())?;
    Ok(Write {
        events: vec![submitted],
        ..job.write(&[])?
    })
}

/// The job that was submitted before with the same key, if it has the same parameters.
async fn find_existing(
    log: &Log,
    actual: &StoredHead,
    key: Option<&IdempotencyKey>,
) -> Result<Submitted, SubmitError> {
    let stored: Option<IdempotencyKey> = serde_json::from_slice(&actual.head.body).ok();
    let (Some(stored), Some(key)) = (stored, key) else {
        return Err(invalid(
            "idempotency_key",
            "belongs to something that cannot be read",
        ));
    };
    let Ok(id) = stored.job.parse::<JobId>() else {
        return Err(invalid("idempotency_key", "belongs to something that is no job"));
    };
    if stored.asks_for != key.asks_for {
        return Err(SubmitError::KeyReused { id });
    }
    match Job::read(log, id).await? {
        Some(job) => Ok(Submitted::Known(job)),
        None => Err(invalid(
            "idempotency_key",
            "belongs to a job that was collected a moment ago",
        )),
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IdempotencyKey {
    key: String,
    job: String,
    /// A fingerprint of the parameters, so that a different job with the same key is detected.
    asks_for: String,
}

impl IdempotencyKey {
    fn write(&self) -> Result<Write, CommitError> {
        Ok(Write {
            stream: history::key_stream(&self.key),
            expected: Version::NONE,
            head: Some(Head::json(history::KEY_KIND, "taken", self)?),
            events: Vec::new(),
        })
    }
}

/// The fingerprint of a job's parameters. It excludes the submitter and the deadline, because both may differ
/// when a client retries.
fn fingerprint(facts: &Facts, essence: &[u8], blobs: &[BlobId]) -> Result<String, CommitError> {
    let facts = Facts {
        submitted_by: String::new(),
        deadline: None,
        followed_by: None,
        ..facts.clone()
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&eventlog::json_body(&facts)?);
    hasher.update(essence);
    for blob in blobs {
        hasher.update(blob.as_bytes());
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn check(new: &NewJob) -> Result<(), SubmitError> {
    let facts = &new.facts;
    if facts.title.chars().count() > TITLE_LIMIT_CHARS {
        return Err(invalid(
            "title",
            &format!("has more than {TITLE_LIMIT_CHARS} characters"),
        ));
    }
    if new.payload.len() > PAYLOAD_LIMIT_BYTES {
        let why = format!(
            "has {} bytes; at most {PAYLOAD_LIMIT_BYTES} are taken",
            new.payload.len()
        );
        return Err(invalid("command", &why));
    }
    if new.blobs.len() > BLOBS_LIMIT {
        return Err(invalid("blobs", &format!("has more than {BLOBS_LIMIT} entries")));
    }
    if facts.after.len() > AFTER_LIMIT {
        return Err(invalid("after", &format!("has more than {AFTER_LIMIT} entries")));
    }
    if facts.retry.max_retries > RETRIES_LIMIT {
        return Err(invalid("max_retries", &format!("is more than {RETRIES_LIMIT}")));
    }
    for (field, name, limit) in [
        (
            "lane",
            facts.lane.as_ref().map(|lane| &*lane.name),
            LANE_LIMIT_BYTES,
        ),
        (
            "idempotency_key",
            facts.idempotency_key.as_deref(),
            KEY_LIMIT_BYTES,
        ),
    ] {
        let Some(name) = name else { continue };
        if name.is_empty() || name.len() > limit || name.chars().any(char::is_control) {
            let why = format!("must have 1 to {limit} bytes and no control characters");
            return Err(invalid(field, &why));
        }
    }
    Ok(())
}

fn invalid(field: &'static str, why: &str) -> SubmitError {
    SubmitError::Invalid {
        field,
        why: why.to_owned(),
    }
}

fn refused(error: CommitError) -> SubmitError {
    match error {
        CommitError::Log(error) => SubmitError::Log(error),
        CommitError::BlobMissing(id) => invalid("blobs", &format!("names {id}, which is not there")),
        other => SubmitError::Commit(other),
    }
}
