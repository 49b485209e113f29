//! The protocol between a daemon and a maker, framed as in `crate::wire`: one message there, one back. The
//! descriptors of the user namespace, the mount namespace and the root travel with [`FromMaker::Made`].

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ViewStep;
use super::spec::{Mount, ViewSpec};
use crate::wire::OsText;

/// How many descriptors a view has.
pub(super) const VIEW_DESCRIPTORS: usize = 3;

/// A view to make.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ToMaker {
    pub(super) mounts: Vec<WireMount>,
    pub(super) root: OsText,
}

/// See [`Mount`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WireMount {
    Overlay {
        lower: Vec<OsText>,
        upper: OsText,
        work: OsText,
        at: OsText,
    },
    Bind {
        source: OsText,
        at: OsText,
    },
    ReadOnly {
        source: OsText,
        at: OsText,
    },
    Hidden {
        at: OsText,
    },
    Terminals {
        at: OsText,
    },
}

/// The result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromMaker {
    Made,
    Refused {
        step: ViewStep,
        path: OsText,
        errno: i32,
    },
}

pub(super) fn text(path: &Path) -> OsText {
    OsText::from(path.as_os_str())
}

pub(super) fn path(text: OsText) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from(text))
}

impl From<&ViewSpec> for ToMaker {
    fn from(spec: &ViewSpec) -> Self {
        let mounts = spec.mounts.iter().map(|mount| match mount {
            Mount::Overlay {
                lower,
                upper,
                work,
                at,
            } => WireMount::Overlay {
                lower: lower.iter().map(|layer| text(layer)).collect(),
                upper: text(upper),
                work: text(work),
                at: text(at),
            },
            Mount::Bind { source, at } => WireMount::Bind {
                source: text(source),
                at: text(at),
            },
            Mount::ReadOnly { source, at } => WireMount::ReadOnly {
                source: text(source),
                at: text(at),
            },
            Mount::Hidden { at } => WireMount::Hidden { at: text(at) },
            Mount::Terminals { at } => WireMount::Terminals { at: text(at) },
        });
        Self {
            mounts: mounts.collect(),
            root: text(&spec.root),
        }
    }
}

impl From<ToMaker> for ViewSpec {
    fn from(message: ToMaker) -> Self {
        let mounts = message.mounts.into_iter().map(|mount| match mount {
            WireMount::Overlay {
                lower,
                upper,
                work,
                at,
            } => Mount::Overlay {
                lower: lower.into_iter().map(path).collect(),
                upper: path(upper),
                work: path(work),
                at: path(at),
            },
            WireMount::Bind { source, at } => Mount::Bind {
                source: path(source),
                at: path(at),
            },
            WireMount::ReadOnly { source, at } => Mount::ReadOnly {
                source: path(source),
                at: path(at),
            },
            WireMount::Hidden { at } => Mount::Hidden { at: path(at) },
            WireMount::Terminals { at } => Mount::Terminals { at: path(at) },
        });
        Self {
            mounts: mounts.collect(),
            root: path(message.root),
        }
    }
}
