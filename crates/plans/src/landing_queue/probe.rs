//! What applies can rely on in a workspace, found out before there is anything to apply.

use std::sync::Arc;

use super::LandingQueue;
use super::begin::{ground, in_one_line, land_error};
use super::target::LandingTarget;
use crate::inner::blocking;
use crate::landing::{self, Exchange};
use crate::{PlanError, Workspace};

const THREE_STEPS: &str = "its file system cannot exchange two files in one step: while a plan is applied or undone, a file \
     that is replaced is missing for an instant, and after a crash in that instant until the daemon starts again";

impl LandingQueue {
    /// Tries once in a life of the daemon whether files can be staged for the workspace and exchanged there. That they cannot
    /// is no reason not to open a plan, but one to say so.
    pub(super) async fn probe(&self, workspace: &Workspace) -> Result<(), PlanError> {
        if self.inner.notices.of(self.id).is_some() {
            return Ok(());
        }
        let (inner, place) = (
            Arc::clone(&self.inner),
            LandingTarget::Workspace(workspace.record.root.clone()),
        );
        let probed = blocking(move || {
            let (contents, staging) = (inner.contents.clone(), inner.staging());
            place.with_tree(|tree| {
                let again = landing::NoRemerge;
                ground(tree, &staging, (&contents, &again), &landing::NoSteps).probe()
            })
        });
        let notice = match probed.await?? {
            Ok(Exchange::OneStep) => None,
            Ok(Exchange::ThreeSteps) => Some(THREE_STEPS.to_owned()),
            Err(error) => {
                let why = in_one_line(&land_error(error));
                Some(format!("plans can be opened here but not applied: {why}"))
            }
        };
        self.inner.notices.set(self.id, notice);
        Ok(())
    }
}
