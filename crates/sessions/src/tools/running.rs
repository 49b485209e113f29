//! What a tool works with while it runs: the plan, the time left, and cancellation.

use std::path::PathBuf;
use std::time::Duration;

use kernel::{Deadline, Scope};
use plans::{ChangeFiles, Explorer, FileOperation};
use protocol::{PermissionRule, PlanId};

use super::error::ToolError;
use super::path::SandboxPath;
use super::spec::ToolboxOptions;
use crate::sink::ToolSink;

/// What a tool works with while it runs.
#[derive(Debug)]
pub(super) struct Running<'a> {
    pub(super) options: &'a ToolboxOptions,
    pub(super) sink: &'a ToolSink,
    /// The rules that allowed the call.
    pub(super) rules: Vec<PermissionRule>,
    pub(super) patience: Patience,
}

/// How long a tool may go on.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    scope: Scope,
    deadline: Deadline,
    total: Duration,
}

impl Patience {
    pub(super) fn new(options: &ToolboxOptions) -> Self {
        Self::of(options, options.timeout)
    }

    /// With a timeout other than that of the tools.
    pub(super) fn of(options: &ToolboxOptions, total: Duration) -> Self {
        Self {
            scope: options.scope.clone(),
            deadline: Deadline::after(&options.clock, total),
            total,
        }
    }

    /// Whether to go on. Blocking code checks this between two steps.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.scope.is_cancelled() {
            Err(ToolError::Cancelled)
        } else if self.deadline.has_passed() {
            Err(ToolError::TimedOut { after: self.total })
        } else {
            Ok(())
        }
    }

    /// Waits for something that may be dropped midway.
    pub(super) async fn within<T>(&self, coming: impl Future<Output = T>) -> Result<T, ToolError> {
        self.check()?;
        tokio::select! {
            biased;
            value = coming => Ok(value),
            _ = self.scope.wait() => Err(ToolError::Cancelled),
            () = self.deadline.clone().passed() => Err(ToolError::TimedOut { after: self.total }),
        }
    }
}

impl Running<'_> {
    /// The plan, opened if necessary.
    pub(super) async fn plan(&self) -> Result<PlanId, ToolError> {
        Ok(self.patience.within(self.options.desk.plan()).await??)
    }

    /// Reads files in the sandbox. The closure checks the patience between two steps.
    pub(super) async fn explore<R: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Explorer<'_, '_>, &Patience) -> Result<R, ToolError> + Send + 'static,
    ) -> Result<R, ToolError> {
        explore(self.options, &self.patience, look).await
    }

    /// Writes to the sandbox and tells the turn's stream. It always waits for the end, whatever the patience, since a
    /// write under way can't be undone. Returns the paths that changed if all went well; on failure, the stream still
    /// hears about the paths that changed before.
    pub(super) async fn change(
        &self,
        tool: &'static str,
        operation: FileOperation,
    ) -> Result<Vec<String>, ToolError> {
        let plan = self.plan().await?;
        self.patience.check()?;
        let desk = &self.options.desk;
        let order = ChangeFiles {
            by: desk.actor(),
            changeset: None,
            tool: tool.to_owned(),
            reason: String::new(),
            operations: vec![operation],
        };
        let changed = desk.plans().change_files(plan, order).await?;
        let paths: Vec<String> = changed
            .changes
            .iter()
            .map(|recorded| recorded.change.path.to_string())
            .collect();
        if !paths.is_empty() {
            desk.tell_changes(paths.clone()).await;
        }
        match changed.stopped_by {
            Some(error) => Err(error.into()),
            None => Ok(paths),
        }
    }
}

/// Reads files in the sandbox.
pub(super) async fn explore<R: Send + 'static>(
    options: &ToolboxOptions,
    patience: &Patience,
    look: impl FnOnce(&mut Explorer<'_, '_>, &Patience) -> Result<R, ToolError> + Send + 'static,
) -> Result<R, ToolError> {
    let plan = patience.within(options.desk.plan()).await??;
    let asked = patience.clone();
    let looking = options
        .desk
        .plans()
        .explore(plan, move |explorer| look(explorer, &asked));
    patience.within(looking).await??
}

/// Resolves a path from an agent. An absolute path is accepted if it lies in the workspace, either at its own path or
/// at the one a command sees in the sandbox.
pub(super) async fn place(options: &ToolboxOptions, text: &str) -> Result<SandboxPath, ToolError> {
    if !text.starts_with('/') {
        return SandboxPath::relative(text);
    }
    let (root, sandbox) = roots(options).await?;
    SandboxPath::absolute(text, &[root, sandbox])
}

/// The root of the workspace, and the path where commands find it.
pub(super) async fn roots(options: &ToolboxOptions) -> Result<(PathBuf, PathBuf), ToolError> {
    let patience = Patience::new(options);
    let plans = options.desk.plans();
    let looked = patience.within(async {
        let plan = plans.get(options.desk.plan().await?).await?;
        let sandbox = plans.sandbox_root(&plan);
        Ok::<_, plans::PlanError>((plan.record.facts.root, sandbox))
    });
    Ok(looked.await??)
}

/// Like [`place`], for a path that may be left out.
pub(super) async fn place_or_root(
    options: &ToolboxOptions,
    text: Option<&str>,
) -> Result<SandboxPath, ToolError> {
    match text {
        Some(text) => place(options, text).await,
        None => Ok(SandboxPath::Root),
    }
}
