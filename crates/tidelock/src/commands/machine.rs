//! Which machine something is on. That only matters if several share a log; this machine is never mentioned.

use protocol::Machine;

use crate::output::Cell;
use crate::printable::cut;

const NAME_CHARACTERS: usize = 24;
const AFTER: usize = 2;

/// The name of a machine, if it is not this one.
pub(super) fn elsewhere(machine: Option<&Machine>) -> Option<String> {
    let machine = machine.filter(|machine| !machine.here)?;
    Some(cut(&machine.name, NAME_CHARACTERS))
}

/// Adds a machine column after the id and state of a list, if anything in it is on another machine.
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
