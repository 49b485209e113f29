//! `plan_diff`: what the plan changes so far.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use plans::{Change, RelPath, write_patch};
use serde::Deserialize;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::text::SHOWN_LIMIT_BYTES;
use super::tool::{About, Tool, ToolOutput};
use crate::ports::Ports;

/// How many paths are listed when the patch doesn't fit.
const NAMED_PATHS: usize = 100;

#[derive(Debug)]
pub(super) struct PlanDiff {
    place: SandboxPath,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: Option<String>,
}

#[async_trait]
impl Tool for PlanDiff {
    type Arguments = Arguments;
    const NAME: &'static str = "plan_diff";
    const DESCRIPTION: &'static str = "Shows what this plan has changed so far, as a unified diff against the workspace as it \
        was when the plan was opened.";
    const ACCESS: Access = Access::Reads;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![optional("path", Takes::Text, "Only this file or directory.")]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        Ok(Self {
            place: running::place_or_root(options, arguments.path.as_deref()).await?,
        })
    }

    fn about(&self) -> About {
        About {
            title: match &self.place {
                SandboxPath::Root => "what the plan changes".to_owned(),
                SandboxPath::Path(path) => format!("what the plan changes in {path}"),
            },
            subjects: vec![self.place.to_string()],
            touches: Touches::Reads(vec![self.place.clone()]),
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let nothing = ToolOutput::done("[nothing is changed]");
        let desk = &running.options.desk;
        let Some(plan) = desk.opened() else {
            return Ok(nothing);
        };
        let changes = running
            .patience
            .within(desk.plans().changes(plan, None))
            .await??;
        let is_meant = |path: &RelPath| SandboxPath::Path(path.clone()).overlaps(&self.place);
        let changes: Vec<Change> = changes
            .into_iter()
            .filter(|change| is_meant(&change.path) || change.from.as_ref().is_some_and(is_meant))
            .collect();
        if changes.is_empty() {
            return Ok(nothing);
        }
        let (changes, contents) = (Arc::new(changes), desk.plans().contents());
        let compared = Arc::clone(&changes);
        let patch = running
            .explore(move |_, _| {
                let mut patch = Bounded::default();
                match write_patch(&compared, contents.as_ref(), &mut patch) {
                    Err(error) if !patch.is_full => {
                        Err(ToolError::Refused(format!("the diff cannot be made: {error}.")))
                    }
                    _ => Ok(patch),
                }
            })
            .await?;
        Ok(output(patch, &changes).with_plan(plan.to_string()))
    }
}

/// A patch, and whether it is complete.
struct ShownPatch {
    text: String,
    is_cut: bool,
}

impl ShownPatch {
    fn with_plan(self, plan: String) -> ToolOutput {
        let told = ToolOutput::done(self.text);
        if self.is_cut { told.with_full(plan) } else { told }
    }
}

fn output(patch: Bounded, changes: &[Change]) -> ShownPatch {
    let text = String::from_utf8_lossy(&patch.kept).into_owned();
    if !patch.is_full {
        let text = if text.is_empty() { named(changes) } else { text };
        return ShownPatch { text, is_cut: false };
    }
    // Show whole lines, and list the other paths so that the agent can ask for them.
    let end = text.rfind('\n').map_or(text.len(), |newline| newline + 1);
    let room = SHOWN_LIMIT_BYTES / 2;
    let end = text.floor_char_boundary(end.min(room));
    let text = format!(
        "{}\n[the diff is cut; name a `path` to see more. What is changed:]\n{}",
        &text[..end],
        named(changes)
    );
    ShownPatch { text, is_cut: true }
}

fn named(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes.iter().take(NAMED_PATHS) {
        let what = match (&change.before, &change.after) {
            (None, _) => "new",
            (_, None) => "deleted",
            _ if change.from.is_some() => "moved",
            _ => "changed",
        };
        let path = super::text::one_line(&change.path.to_string());
        text.push_str(&format!("{what} {path}\n"));
    }
    if changes.len() > NAMED_PATHS {
        text.push_str(&format!("and {} more\n", changes.len() - NAMED_PATHS));
    }
    text
}

/// Keeps the start of what is written, then fails further writes.
#[derive(Debug, Default)]
struct Bounded {
    kept: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = SHOWN_LIMIT_BYTES - self.kept.len();
        if bytes.len() > room {
            self.kept.extend_from_slice(&bytes[..room]);
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
