//! Other plans that touch the same files.

use protocol::PlanOverlap;

use super::labels::short;
use crate::output::{Cell, Palette, Tone, table};
use crate::printable::cut;

const PATHS: usize = 10;
const LINES: usize = 5;
const TITLE_CHARACTERS: usize = 60;

pub(super) fn describe(palette: Palette, overlaps: &[PlanOverlap]) -> String {
    let mut text = String::new();
    for overlap in overlaps {
        let title = cut(&overlap.title, TITLE_CHARACTERS);
        text.push_str(&format!("  {}  {title}\n", short(&overlap.plan)));
        let rows: Vec<Vec<Cell>> = overlap
            .paths
            .iter()
            .take(PATHS)
            .map(|path| {
                let verdict = if path.conflicts {
                    Cell::toned(format!("would conflict{}", at(&path.lines)), Tone::Bad)
                } else {
                    Cell::toned("can be merged", Tone::Quiet)
                };
                vec![Cell::new("   "), Cell::new(&path.path), verdict]
            })
            .collect();
        text.push_str(&table(palette, &rows));
        if overlap.paths.len() > PATHS {
            text.push_str(&format!("     … and {} more\n", overlap.paths.len() - PATHS));
        }
    }
    text
}

fn at(lines: &[u64]) -> String {
    let named: Vec<String> = lines.iter().take(LINES).map(u64::to_string).collect();
    match (lines.len(), named.join(", ")) {
        (0, _) => String::new(),
        (1, line) => format!(" at line {line}"),
        (count, named) if count > LINES => format!(" at lines {named}, …"),
        (_, named) => format!(" at lines {named}"),
    }
}
