//! Sandboxes of every strategy, without a plan around them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use kernel::CancellationToken;
use plans::{Bases, Sandbox, SandboxSpec, Strategies, Strategy, Taken};
use protocol::{PlanId, SandboxStrategy};
use tokio::runtime::Runtime;

use super::service::{Starter, environment};
use crate::statistics::nanoseconds;

pub(super) struct Sandboxes<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) starter: Starter,
    strategies: Strategies,
    workspace: PathBuf,
    scratch: PathBuf,
    warm: Taken,
}

pub(super) struct Made {
    pub(super) sandbox: Arc<dyn Sandbox>,
    /// How long it took to create.
    pub(super) nanoseconds: f64,
    strategy: Arc<dyn Strategy>,
    order: SandboxSpec,
}

impl<'a> Sandboxes<'a> {
    pub(super) fn prepare(
        runtime: &'a Runtime,
        tidelock: &Path,
        directory: &Path,
        workspace: &Path,
    ) -> Result<Self> {
        let directory = directory.canonicalize()?;
        let scratch = directory.join("plans");
        let starter = runtime.block_on(Starter::open(tidelock, &directory))?;
        let environment = environment();
        let probe = Strategies::probe(&starter.processes, &scratch, &[], &environment);
        let strategies = runtime.block_on(probe)?;
        let warm = take(&scratch, "warm", workspace)?;
        Ok(Self {
            runtime,
            starter,
            strategies,
            workspace: workspace.to_owned(),
            scratch,
            warm,
        })
    }

    pub(super) fn warm(&self) -> &Taken {
        &self.warm
    }

    pub(super) fn make(&self, name: SandboxStrategy) -> Result<Made> {
        self.make_on(name, &self.warm, Instant::now())
    }

    /// Creates an image in its own store, which stays, and then an overlay on it.
    pub(super) fn make_from_cold(&self) -> Result<Made> {
        let store = format!("cold-{}", PlanId::generate());
        let began = Instant::now();
        let taken = take(&self.scratch, &store, &self.workspace)?;
        self.make_on(SandboxStrategy::Overlay, &taken, began)
    }

    fn make_on(&self, name: SandboxStrategy, taken: &Taken, began: Instant) -> Result<Made> {
        let strategy = self.strategies.pick(Some(name), &self.workspace)?;
        let plan = PlanId::generate();
        let order = SandboxSpec {
            plan,
            workspace: self.workspace.clone(),
            base: taken.base.clone(),
            ignored: taken.ignored.clone(),
            directory: self.scratch.join("sandboxes").join(plan.to_string()),
        };
        let opened = self.runtime.block_on(async {
            strategy.create(&order).await?;
            strategy.open(&order).await
        });
        Ok(Made {
            nanoseconds: nanoseconds(began.elapsed()),
            sandbox: opened?,
            strategy,
            order,
        })
    }

    /// Closes a sandbox, and removes it if it is small. A whole tree stays until the end.
    pub(super) fn remove(&self, made: Made) -> Result<()> {
        drop(made.sandbox);
        if made.strategy.name() == SandboxStrategy::Overlay {
            self.runtime.block_on(made.strategy.remove(&made.order))?;
        }
        Ok(())
    }

    pub(super) fn close(self) {
        self.runtime.block_on(self.starter.close());
    }
}

/// A base of the workspace as it is now, in a store of this name.
fn take(scratch: &Path, store: &str, workspace: &Path) -> Result<Taken> {
    let bases = Bases::open(scratch.join(store).join("bases"), u64::MAX)?;
    let cache = scratch.join(store).join("stat-cache");
    let scope = CancellationToken::new().scope();
    Ok(bases.take(workspace, &cache, &scope)?)
}
