//! The base of a plan: a complete copy of the workspace at one moment.
//!
//! [`Bases`] owns a directory of images. An image is named by its manifest, is built aside and renamed into place when
//! it is complete, and its contents never change. A file that two images share is one file with two names. The mtime of
//! a file in an image may move forward, never back: a workspace that has the same content with a later time must not
//! look older to a build than it is.
//!
//! **What must not happen here:** writing to a workspace, or to the content of an image that is in place.

mod cached_scan;
mod collect;
mod copy;
mod derive;
mod error;
mod image;
mod info;
mod left_out;
mod making;
mod place;
mod read;
mod store;
mod take;
mod times;
mod verify;

pub(crate) use cached_scan::CachedScan;
pub use collect::{CollectMode, Freed};
pub use error::BaseError;
pub use image::Base;
pub(crate) use left_out::uncarried;
pub use left_out::{Ignored, LeftOut, WhyLeftOut};
pub use store::Bases;
pub use take::Taken;
pub(crate) use take::{BaseSource, Retaken};
