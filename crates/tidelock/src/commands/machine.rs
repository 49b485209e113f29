//! On which machine something is. That matters only if several share a log: what is on this one is not worth a word.

use protocol::Machine;

use crate::output::Cell;
use crate::printable::cut;

const NAME_CHARACTERS: usize = 24;
const AFTER: usize = 2;

/// The name of a machine that is not this one.
pub(super) fn elsewhere(machine: Option<&Machine>) -> Option<String> {
    let machine = machine.filter(|machine| !machine.here)?;
    Some(cut(&machine.name, NAME_CHARACTERS))
}

/// Adds a column with the machine behind the id and the state of a list, if anything in it is on another one.
pub(super) fn with_machines(
    heading: &mut Vec<&str>,
    rows: &mut [Vec<Cell>],
    machines: &[Option<&Machine>],
    nowhere: &str,
) {
    if machines.iter().all(|machine| elsewhere(*machine).is_none()) {
        return;
    }
    heading.insert(AFTER, "MACHINE");
    for (row, machine) in rows.iter_mut().zip(machines) {
        let name = machine.map_or(nowhere, |machine| &machine.name);
        row.insert(AFTER, Cell::new(cut(name, NAME_CHARACTERS)));
    }
}
