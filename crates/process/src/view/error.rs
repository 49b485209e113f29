//! Errors of making a view.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A view wasn't made. Nothing is left of the attempt: no process, no mount, no descriptor. Missing mount points
/// may have been created.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The system refused a step.
    #[error("{step} `{}`", path.display())]
    Refused {
        /// The step.
        step: ViewStep,
        /// The path concerned.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The daemon lacks descriptors, memory or processes to make one.
    #[error("the daemon has no means to make a view")]
    Means(#[source] io::Error),
    /// The process that makes it ended or went silent.
    #[error("the maker of the view failed")]
    Maker(#[source] io::Error),
    /// Everything is being stopped.
    #[error("no view is made any more, because everything is being stopped")]
    Stopped,
}

/// A step of making a view.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewStep {
    /// Creating a user namespace and a mount namespace.
    Namespaces,
    /// Mapping the user and the group into the user namespace.
    Identity,
    /// Making the mounts of the view private.
    Privacy,
    /// Opening a layer or the source of a bind.
    Source,
    /// Creating or opening a mount point.
    Place,
    /// Mounting layers.
    Overlay,
    /// Mounting a directory in another place.
    Bind,
    /// Hiding something.
    Hide,
    /// Opening the requested directory.
    Root,
}

impl fmt::Display for ViewStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Namespaces => "no namespaces can be made by way of",
            Self::Identity => "the user cannot be mapped by way of",
            Self::Privacy => "mounts cannot be made private at",
            Self::Source => "this directory cannot be used in a view:",
            Self::Place => "nothing can be mounted at",
            Self::Overlay => "layers cannot be mounted at",
            Self::Bind => "a directory cannot be mounted at",
            Self::Hide => "nothing can be hidden at",
            Self::Root => "the root of the view cannot be opened:",
        })
    }
}
