//! Inserts or removes one entry of a YAML text, line by line.
//!
//! Only top-level tables with their entries on separate lines are edited. The caller compares the meaning of the text
//! before and after, so a text with another layout is refused and never broken.

use serde_json::{Map, Value};

use super::entry::Entry;

/// The default indentation, if the text doesn't show one.
const USUAL_STEP: &str = "  ";

pub(super) fn parse(text: &str) -> Result<Value, String> {
    let is_empty = text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim().starts_with('#'));
    if is_empty {
        return Ok(Value::Object(Map::new()));
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    })
}

pub(super) fn insert(text: &str, table: &str, name: &str, entry: &Entry) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    // An empty table has yet to get its first entry.
    let empty = format!("{table}: {{}}");
    let opened = |line: &str| match line.strip_prefix(&empty) {
        Some(rest) => format!("{table}:{rest}"),
        None => line.to_owned(),
    };
    let lines: Vec<String> = text.split_inclusive('\n').map(opened).collect();
    let head = lines.iter().position(|line| is_key(line, table));
    let inside = head.map(|head| &lines[head + 1..]).unwrap_or_default();
    let margin = inside
        .iter()
        .find(|line| !is_blank(line))
        .map(|line| margin(line))
        .filter(|margin| !margin.is_empty())
        .unwrap_or(USUAL_STEP);
    let fields = entry.yaml(&format!("{margin}{margin}"), margin, newline);
    let added = format!("{margin}{name}:{newline}{fields}");
    let end_of = |text: String| {
        let ends = text.is_empty() || text.ends_with('\n');
        if ends { text } else { format!("{text}{newline}") }
    };
    match head {
        Some(head) => {
            let (before, behind) = lines.split_at(head + 1);
            format!("{}{added}{}", end_of(before.concat()), behind.concat())
        }
        None => format!("{}{table}:{newline}{added}", end_of(text.to_owned())),
    }
}

pub(super) fn remove(text: &str, table: &str, name: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(head) = lines.iter().position(|line| is_key(line, table)) else {
        return text.to_owned();
    };
    let is_inside = |line: &&&str| is_blank(line) || !margin(line).is_empty();
    let length = lines[head + 1..].iter().take_while(is_inside).count();
    let block = head + 1..head + 1 + length;
    let Some(start) = lines[block.clone()]
        .iter()
        .position(|line| is_key(line.trim_start_matches([' ', '\t']), name))
        .map(|position| block.start + position)
    else {
        return text.to_owned();
    };
    let depth = margin(lines[start]).len();
    let deeper = lines[start + 1..block.end]
        .iter()
        .take_while(|line| margin(line).len() > depth);
    let end = start + 1 + deeper.count();
    // A table without entries would no longer be a table.
    let mut head_line = lines[head].to_owned();
    let is_last = lines[block.start..start]
        .iter()
        .chain(&lines[end..block.end])
        .all(|line| is_blank(line));
    if is_last {
        head_line = head_line.replacen(':', ": {}", 1);
    }
    format!(
        "{}{head_line}{}{}",
        lines[..head].concat(),
        lines[block.start..start].concat(),
        lines[end..].concat()
    )
}

/// Whether a line starts a table of that name and contains nothing else.
fn is_key(line: &str, name: &str) -> bool {
    let rest = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
    rest.is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('#'))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn margin(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[cfg(test)]
mod tests {
    use super::super::entry::Field;
    use super::*;

    #[test]
    fn an_entry_is_put_in_and_taken_out_and_nothing_else_moves() {
        let entry = Entry(vec![
            ("cmd", Field::Text("c".to_owned())),
            ("args", Field::List(vec!["mcp".to_owned()])),
        ]);
        let cases = [
            (
                "",
                "t:\n  n:\n    cmd: \"c\"\n    args:\n      - \"mcp\"\n",
                "t: {}\n",
            ),
            (
                "# mine\na: 1",
                "# mine\na: 1\nt:\n  n:\n    cmd: \"c\"\n    args:\n      - \"mcp\"\n",
                "# mine\na: 1\nt: {}\n",
            ),
            (
                "t: # theirs\n   o:\n      x: 1 # yes\n\nb: 2\n",
                "t: # theirs\n   n:\n      cmd: \"c\"\n      args:\n         - \"mcp\"\n   o:\n      x: 1 # yes\n\nb: 2\n",
                "t: # theirs\n   o:\n      x: 1 # yes\n\nb: 2\n",
            ),
        ];
        for (before, with, without) in cases {
            assert_eq!(insert(before, "t", "n", &entry), with, "{before}");
            assert_eq!(parse(with).unwrap()["t"]["n"], entry.value(), "{with}");
            assert_eq!(remove(with, "t", "n"), without, "{with}");
        }
    }

    #[test]
    fn others_of_nearly_that_name_are_left_alone() {
        let text = "t:\n  o:\n    n: 1\n  nn:\n    a: 1\n  n:\n    a: 1\n  z:\n    a: 1\nn:\n  a: 2\n";
        let expected = "t:\n  o:\n    n: 1\n  nn:\n    a: 1\n  z:\n    a: 1\nn:\n  a: 2\n";
        assert_eq!(remove(text, "t", "n"), expected);
        assert_eq!(remove(expected, "t", "n"), expected);
    }
}
