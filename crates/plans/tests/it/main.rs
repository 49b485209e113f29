//! The tests of the crate that need a file system, a log, or a process.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod base;
mod base_faults;
mod base_ignores;
mod base_model;
mod base_store;
mod base_support;
mod diff_patch;
mod diff_view;
mod explore;
mod landing_ends;
mod landing_git;
mod landing_kill;
mod landing_kit;
mod landing_writers;
mod merge_changes;
mod merge_kit;
mod merge_laws;
mod merge_oracle;
mod merge_text;
mod sandbox_captures;
mod sandbox_git;
mod sandbox_life;
mod sandbox_random;
mod sandbox_support;
mod service_attributes;
mod service_children;
mod service_conflicts;
mod service_growth;
mod service_kit;
mod service_laws;
mod service_life;
mod service_overlaps;
mod service_restart;
mod tree_walls;
