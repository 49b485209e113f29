//! On which machine something is. That matters only if several share a log: what is on this one is not worth a word.

use protocol::Machine;

use super::lsp::printable::cut;
use crate::output::{Cell, Tone};

/// How much of a name is shown.
const NAME_CHARACTERS: usize = 24;

/// The name of a machine that is not this one.
pub(super) fn elsewhere(machine: Option<&Machine>) -> Option<String> {
    let machine = machine.filter(|machine| !machine.here)?;
    Some(cut(&machine.name, NAME_CHARACTERS))
}

/// Adds a column with the machine after the first columns of a table, if anything in it is on another one.
pub(super) fn with_machines(
    rows: &mut [Vec<Cell>],
    after: usize,
    machines: &[Option<&Machine>],
    nowhere: &str,
) {
    if machines.iter().all(|machine| elsewhere(*machine).is_none()) {
        return;
    }
    let heading = std::iter::once(Cell::toned("MACHINE", Tone::Quiet));
    let names = machines.iter().map(|machine| {
        let name = machine.map_or(nowhere, |machine| &machine.name);
        Cell::new(cut(name, NAME_CHARACTERS))
    });
    for (row, cell) in rows.iter_mut().zip(heading.chain(names)) {
        row.insert(after.min(row.len()), cell);
    }
}
