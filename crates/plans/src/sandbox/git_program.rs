//! The git program, for what can't be done with files alone.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use process::{Confinement, Exit, Limits, Processes, Spec, StandardError};
use tokio::io::AsyncReadExt;

use super::contract::SandboxError;
use super::surroundings::Surroundings;

/// How much of its output is read. We ask for a line or two; the rest is dropped.
const OUTPUT_LIMIT_BYTES: u64 = 64 * 1024;

/// Runs git, without hooks and with our own environment.
#[derive(Clone, Debug)]
pub(super) struct GitProgram {
    pub(super) processes: Processes,
    pub(super) surroundings: Arc<Surroundings>,
}

impl GitProgram {
    /// Runs it in a directory, and returns its output.
    ///
    /// *Cancel safety*: dropped halfway, git is killed wherever it is.
    pub(super) async fn run(&self, directory: &Path, arguments: &[&OsStr]) -> Result<String, SandboxError> {
        let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        let failed = |said: String| SandboxError::Git {
            command: words.join(" "),
            said,
        };
        let settings = ["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"].map(OsString::from);
        let own = arguments.iter().map(|word| (*word).to_owned());
        let child = self
            .processes
            .spawn(Spec {
                program: "git".into(),
                arguments: settings.into_iter().chain(own).collect(),
                directory: directory.to_owned(),
                environment: self.surroundings.environment(),
                owner: "plans/git".to_owned(),
                reason: format!("git {}", words.join(" ")),
                generation: 1,
                limits: Limits::default(),
                confinement: Confinement::None,
                stderr: StandardError::KeptAsTail,
                terminal: None,
                view: None,
            })
            .await
            .map_err(|error| failed(error.to_string()))?;
        drop(child.stdin());
        let mut said = Vec::new();
        if let Some(output) = child.stdout() {
            let mut limited = output.take(OUTPUT_LIMIT_BYTES);
            let read = limited.read_to_end(&mut said).await;
            read.map_err(|error| failed(error.to_string()))?;
        }
        match child.ended().await.exit {
            Exit::Code(0) => Ok(String::from_utf8_lossy(&said).trim_end().to_owned()),
            exit => Err(failed(format!("{exit}: {}", child.stderr_tail().trim_end()))),
        }
    }
}
