//! How a feature file is run, on our types and on the faulty ones.

use std::{fmt::Debug, path::Path};

use cucumber::{World, WriterExt as _, codegen::WorldInventory, writer};

/// The tag of scenarios that a faulty algorithm must fail.
const CATCHES: &str = "catches";

/// What became of a feature file.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// Runs a feature file: all of it on ours, only what must catch something on a faulty subject.
pub(crate) fn run<W: World + WorldInventory + Debug>(
    file: &str,
    only_what_catches: bool,
    set_up: fn(&mut W),
) -> Tally {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
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
                !only_what_catches || scenario.tags.iter().any(|tag| tag == CATCHES)
            }),
    );
    let scenarios = writer.scenarios_stats();
    Tally {
        passed: scenarios.passed,
        failed: scenarios.failed,
    }
}
