//! Explains an answer: what each strategy did, why each piece is included, and what was left out.

use protocol::{
    ContextAnswer, ContextFragment, ContextIndex, ContextIndexState, ContextLeftOut, ContextStrategy,
};

use super::text::{depth, grouped, state, summary, took};
use crate::output::{Cell, Palette, Tone, fields, list};
use crate::printable::{cut, one_line};
use crate::units::format_count;

const WHY_CHARACTERS: usize = 100;
const SYMBOL_CHARACTERS: usize = 40;

pub(super) fn explained(palette: Palette, answer: &ContextAnswer) -> String {
    let mut blocks = vec![facts(palette, answer), strategies(palette, answer)];
    if !answer.fragments.is_empty() {
        blocks.push(pieces(palette, answer));
    }
    if answer.left_out_total > 0 {
        blocks.push(left_out(palette, answer));
    }
    blocks.join("\n")
}

fn facts(palette: Palette, answer: &ContextAnswer) -> String {
    let mut facts = vec![("workspace", Cell::new(one_line(&answer.root)))];
    if let Some(plan) = &answer.plan {
        facts.push(("plan", Cell::new(plan)));
    }
    facts.push(("index", index(&answer.index)));
    facts.push(("answer", Cell::new(summary(answer))));
    fields(palette, facts)
}

fn index(index: &ContextIndex) -> Cell {
    let files = format!("{} files", grouped(index.files));
    match (index.state, &index.why) {
        (ContextIndexState::Ready, _) => Cell::new(format!("ready, {files}")),
        (ContextIndexState::Building, _) => {
            Cell::toned(format!("being built, {files} so far"), Tone::Warning)
        }
        (ContextIndexState::Failed, Some(why)) => {
            Cell::toned(format!("failed: {}", cut(why, WHY_CHARACTERS)), Tone::Bad)
        }
        (ContextIndexState::Failed, None) => Cell::toned("failed", Tone::Bad),
    }
}

fn strategies(palette: Palette, answer: &ContextAnswer) -> String {
    let row = |strategy: &ContextStrategy| {
        let why = strategy.why.as_deref().unwrap_or_default();
        vec![
            Cell::new(one_line(&strategy.id)),
            state(strategy),
            Cell::new(took(strategy.took_ms)),
            Cell::new(grouped(strategy.hits)),
            Cell::new(cut(why, WHY_CHARACTERS)),
        ]
    };
    let rows = answer.strategies.iter().map(row).collect();
    list(palette, &["STRATEGY", "STATE", "TIME", "HITS", "WHY"], rows, "")
}

/// Each piece, with a line for every strategy that found it.
fn pieces(palette: Palette, answer: &ContextAnswer) -> String {
    let heading = ["PIECE", "WHAT", "DEPTH", "TOKENS", "SCORE", "FOUND BY"];
    let mut rows = Vec::new();
    for fragment in &answer.fragments {
        let mut found_by = found_by(fragment).into_iter();
        rows.push(vec![
            Cell::new(place(&fragment.path, fragment.first_line, fragment.last_line)),
            Cell::new(cut(
                fragment.symbol.as_deref().unwrap_or_default(),
                SYMBOL_CHARACTERS,
            )),
            Cell::new(depth(fragment.depth)),
            Cell::new(grouped(fragment.tokens)),
            Cell::new(score(fragment.score)),
            Cell::new(found_by.next().unwrap_or_default()),
        ]);
        rows.extend(found_by.map(|text| {
            let mut row: Vec<Cell> = (0..5).map(|_| Cell::new("")).collect();
            row.push(Cell::new(text));
            row
        }));
    }
    list(palette, &heading, rows, "")
}

fn found_by(fragment: &ContextFragment) -> Vec<String> {
    let parts = fragment.parts.iter().map(|part| {
        let strategy = one_line(&part.strategy);
        format!("{strategy} #{}: {}", part.rank, cut(&part.why, WHY_CHARACTERS))
    });
    parts.collect()
}

fn left_out(palette: Palette, answer: &ContextAnswer) -> String {
    let count = format_count(answer.left_out_total, "piece");
    let mut text = match answer.left_out.len() as u64 {
        shown if shown < answer.left_out_total => {
            format!("left out for lack of room: {count}, the best {shown}:\n")
        }
        _ => format!("left out for lack of room: {count}\n"),
    };
    let row = |left_out: &ContextLeftOut| {
        vec![
            Cell::new(place(&left_out.path, left_out.first_line, left_out.last_line)),
            Cell::new(grouped(left_out.tokens)),
            Cell::new(score(left_out.score)),
        ]
    };
    let rows = answer.left_out.iter().map(row).collect();
    text.push_str(&list(palette, &["PIECE", "TOKENS", "SCORE"], rows, ""));
    text
}

fn place(path: &str, first_line: u32, last_line: u32) -> String {
    format!("{}:{first_line}-{last_line}", one_line(path))
}

fn score(score: f64) -> String {
    format!("{score:.4}")
}

#[cfg(test)]
mod tests {
    use super::super::samples::{answer, empty};
    use super::*;

    #[test]
    fn an_answer_is_explained() {
        insta::assert_snapshot!(explained(Palette::Plain, &answer()));
        insta::assert_snapshot!(explained(Palette::Plain, &empty()));
    }

    #[test]
    fn an_index_that_failed_says_why() {
        let failed = ContextIndex {
            state: ContextIndexState::Failed,
            why: Some("the disk is full".to_owned()),
            ..empty().index
        };
        let text = fields(Palette::Plain, vec![("index", index(&failed))]);
        assert_eq!(text, "index  failed: the disk is full\n");
    }
}
