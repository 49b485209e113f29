//! How a feature file is run, on our types and on the faulty ones.

use std::{fmt::Debug, fs, path::Path};

use cucumber::{World, WriterExt as _, codegen::WorldInventory, writer};

use crate::engines::postgres_is_here;

/// The tag of scenarios that a faulty algorithm must fail.
const CATCHES: &str = "catches";

/// The tag of scenarios that need a Postgres.
const POSTGRES: &str = "postgres";

/// What became of a feature file.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// Which scenarios of a file to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Which {
    /// All, on our types.
    All,
    /// Those that have this tag, on our types: where some take long, they are a test of their own.
    Those(&'static str),
    /// The others.
    AllBut(&'static str),
    /// Those that a faulty algorithm must fail.
    WhatCatches,
    /// Those of them that have this tag too: where a report has several faults, each has scenarios of its own.
    WhatCatchesThe(&'static str),
}

/// Runs a feature file.
pub(crate) fn run<W: World + WorldInventory + Debug>(file: &str, which: Which, set_up: fn(&mut W)) -> Tally {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let wants_postgres = fs::read_to_string(&path)
        .unwrap()
        .contains(&format!("@{POSTGRES}"));
    let has_postgres = wants_postgres && postgres_is_here();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let writer = runtime.block_on(
        W::cucumber()
            .max_concurrent_scenarios(1)
            .before(move |_, _, _, world| {
                set_up(world);
                Box::pin(async {})
            })
            .with_writer(writer::Basic::stdout().summarized())
            // Last, because a new writer brings its own arguments: those of the test runner are not for cucumber.
            .with_default_cli()
            .filter_run(path, move |_, _, scenario| {
                let is_tagged = |tag: &str| scenario.tags.iter().any(|own| own == tag);
                let is_wanted = match which {
                    Which::All => true,
                    Which::Those(tag) => is_tagged(tag),
                    Which::AllBut(tag) => !is_tagged(tag),
                    Which::WhatCatches => is_tagged(CATCHES),
                    Which::WhatCatchesThe(fault) => is_tagged(CATCHES) && is_tagged(fault),
                };
                is_wanted && (has_postgres || !is_tagged(POSTGRES))
            }),
    );
    // A scenario with a step that nobody defined is skipped, and then missing from both counts.
    let scenarios = writer.scenarios_stats();
    Tally {
        passed: scenarios.passed,
        failed: scenarios.failed,
    }
}
