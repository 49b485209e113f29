//! The environments of unfinished commands.
//!
//! A command runs with the environment of its caller, which often contains secrets. The log is kept for weeks, exported
//! and backed up, so an environment never goes into it. It is in a file next to the log, which is created before its
//! job and removed when the job has ended. The next daemon takes over or removes the files of a daemon that was killed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use eventlog::LogError;
use jobs::{Job, Jobs, NewJob, SubmitError, Submitted};
use kernel::{Deadline, Scope};
use process::Tasks;
use protocol::JobId;

/// The variables of a command, or `None` for those that every command of this daemon gets.
pub(crate) type Variables = Option<BTreeMap<String, String>>;

/// The part of an environment that may be stored or passed on: everything except the daemon's own variables.
pub(crate) fn shareable(mut environment: BTreeMap<String, String>) -> BTreeMap<String, String> {
    environment.retain(|name, _| !process::is_private(name));
    environment
}

/// The prefix of files that are being written.
const NEW_PREFIX: &str = "new-";

/// A job, and the environment of its command if that is stored.
#[derive(Debug)]
pub(crate) struct NewCommand {
    pub(crate) job: NewJob,
    pub(crate) environment: Variables,
}

/// The stored environments. Clones share the directory.
#[derive(Clone, Debug)]
pub(crate) struct Environments {
    directory: Arc<PathBuf>,
    tasks: Tasks,
    closing: Scope,
}

impl Environments {
    /// Opens the directory, and creates it if it is missing.
    pub(crate) fn open(directory: PathBuf, tasks: &Tasks, closing: &Scope) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        Ok(Self {
            directory: Arc::new(directory),
            tasks: tasks.clone(),
            closing: closing.clone(),
        })
    }

    /// Submits a job. Its environment is stored before the job, and removed when the job ends.
    ///
    /// *Cancel safety*: if dropped, the job may have been submitted; a file without a job is removed at the next start.
    pub(crate) async fn submit(&self, jobs: &Jobs, new: NewCommand) -> Result<Submitted, SubmitError> {
        let id = new.job.id;
        let is_kept = new.environment.is_some();
        if is_kept {
            self.keep(id, new.environment).await?;
        }
        let submitted = jobs.submit(new.job).await;
        match &submitted {
            Ok(Submitted::New(_)) if is_kept => self.forget_with(jobs, id),
            Err(error) if is_kept && error.may_be_taken() => self.forget_with(jobs, id),
            // Another request for the same job was faster. Its environment may have been removed before this
            // one was stored.
            Ok(Submitted::Known(job)) if is_kept && job.id == id => self.forget_with(jobs, id),
            _ if is_kept => self.forget(id).await,
            _ => {}
        }
        submitted
    }

    /// Resubmits a job that has ended. Its environment is gone, so it gets a new one.
    ///
    /// *Cancel safety*: as for [`submit`](Self::submit).
    pub(crate) async fn retry(
        &self,
        jobs: &Jobs,
        ended: JobId,
        by: &str,
        environment: Variables,
    ) -> Result<Job, jobs::ChangeError> {
        let id = JobId::generate();
        self.keep(id, environment).await?;
        let retried = jobs.retry(ended, id, by).await;
        match &retried {
            Ok(_) => self.forget_with(jobs, id),
            Err(error) if error.may_be_made() => self.forget_with(jobs, id),
            Err(_) => self.forget(id).await,
        }
        retried
    }

    /// The environment of a job, if it is stored.
    pub(crate) async fn read(&self, job: &str) -> io::Result<Option<Variables>> {
        let path = self.directory.join(job);
        blocking(move || match fs::read(&path) {
            // After a power loss, the file may be empty.
            Ok(bytes) if bytes.is_empty() => Ok(None),
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Takes over the files of an earlier daemon: removes the environments of jobs that have ended or were never
    /// submitted.
    pub(crate) async fn take_over(&self, jobs: &Jobs) -> Result<(), LogError> {
        let directory = Arc::clone(&self.directory);
        let names = blocking(move || {
            let names = fs::read_dir(&*directory)?.map(|item| Ok(item?.file_name()));
            names.collect::<io::Result<Vec<_>>>()
        });
        for name in names.await.map_err(not_written)? {
            if name.to_str().is_some_and(|name| name.starts_with(NEW_PREFIX)) {
                let path = self.directory.join(name);
                blocking(move || fs::remove_file(path))
                    .await
                    .map_err(not_written)?;
                continue;
            }
            let Some(id) = name.to_str().and_then(|name| name.parse::<JobId>().ok()) else {
                tracing::warn!(?name, "this is not the environment of a job, and was left alone");
                continue;
            };
            match jobs.get(id).await {
                Ok(Some(job)) if !job.record.state.is_terminal() => self.forget_with(jobs, id),
                Ok(_) => self.forget(id).await,
                // An unreadable job must not prevent the start. Its environment stays with it.
                Err(error) => tracing::warn!(%error, job = %id, "the environment of a job was left alone"),
            }
        }
        Ok(())
    }

    async fn keep(&self, job: JobId, environment: Variables) -> Result<(), LogError> {
        let path = self.directory.join(job.to_string());
        let environment = environment.map(shareable);
        let new = self.directory.join(format!("{NEW_PREFIX}{}", JobId::generate()));
        let kept = blocking(move || {
            let bytes = serde_json::to_vec(&environment)?;
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            let written = options.open(&new).and_then(|mut file| file.write_all(&bytes));
            // Two requests for the same job have the same environment, and one of them may have started the
            // job.
            let kept = written.and_then(|()| fs::rename(&new, path));
            if kept.is_err() {
                // Report the first error. The next start removes what is left.
                drop(fs::remove_file(&new));
            }
            kept
        });
        kept.await.map_err(not_written)
    }

    /// Removes the environment of a job when the job has ended.
    fn forget_with(&self, jobs: &Jobs, job: JobId) {
        let (this, jobs) = (self.clone(), jobs.clone());
        self.tasks.spawn("job-environment", async move {
            // If this daemon ends first, the next one removes it.
            if jobs.wait(job, &Deadline::never(), &this.closing).await.is_ok() {
                this.forget(job).await;
            }
        });
    }

    async fn forget(&self, job: JobId) {
        let path = self.directory.join(job.to_string());
        let removed = blocking(move || match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, %job, "the environment of a job was not removed; the next start tries again");
        }
    }
}

async fn blocking<R: Send + 'static>(work: impl FnOnce() -> io::Result<R> + Send + 'static) -> io::Result<R> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

/// The file is next to the log, so an error with one is an error with the other.
fn not_written(error: io::Error) -> LogError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::DiskFull,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => LogError::ReadOnly,
        _ => LogError::Engine(Arc::new(error)),
    }
}
