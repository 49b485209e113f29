//! Some pages name the tests that prove their claims, such as that a race is closed. Each named test must exist.
//!
//! The tests are in the columns with a heading about tests: functions in backticks, found by the last part of their
//! path, and scenarios in quotes, found by their title. A file path is looked up as a file.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;
use super::files::Tree;

/// The pages with claims about tests.
const PAGES: [&str; 2] = ["docs/races.md", "docs/security.md"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let known = known_tests(tree);
    let pages = PAGES.iter().map(Path::new);
    pages.flat_map(|path| check_page(path, tree, &known)).collect()
}

fn check_page(path: &Path, tree: &Tree, known: &BTreeSet<&str>) -> Vec<Finding> {
    let Some(text) = tree.text(path) else {
        return Vec::new();
    };
    let Some(named) = named_tests(text) else {
        // Without this, renaming a heading would disable the check.
        return vec![Finding::in_file(
            path,
            "no table has a column that is about tests",
        )];
    };
    named
        .into_iter()
        .filter(|(_, name)| {
            let last = name.rsplit("::").next().unwrap_or(name);
            !known.contains(last) && tree.text(Path::new(name)).is_none()
        })
        .map(|(line, name)| Finding::on_line(path, line, format!("there is no test `{name}`")))
        .collect()
}

/// Every name in a test column, with its line; `None` if there is no such column.
fn named_tests(text: &str) -> Option<Vec<(usize, &str)>> {
    let mut found = Vec::new();
    let mut has_test_column = false;
    let mut test_columns: Option<Vec<usize>> = None;
    for (index, line) in text.lines().enumerate() {
        let Some(row) = line.trim().strip_prefix('|') else {
            test_columns = None;
            continue;
        };
        let cells: Vec<&str> = row.strip_suffix('|').unwrap_or(row).split('|').collect();
        let Some(columns) = &test_columns else {
            // The first row of a table is its heading.
            let columns = cells.iter().enumerate().filter(|(_, cell)| is_about_tests(cell));
            let columns: Vec<usize> = columns.map(|(column, _)| column).collect();
            has_test_column |= !columns.is_empty();
            test_columns = Some(columns);
            continue;
        };
        let names = columns
            .iter()
            .filter_map(|column| cells.get(*column))
            .flat_map(|cell| names_in(cell));
        found.extend(names.map(|name| (index + 1, name)));
    }
    has_test_column.then_some(found)
}

fn is_about_tests(heading: &str) -> bool {
    let heading = heading.to_lowercase();
    heading.contains("test") || heading.contains("shown by")
}

fn names_in(cell: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (index, part) in cell.split('`').enumerate() {
        if index % 2 == 1 {
            names.push(part.trim());
        } else {
            names.extend(part.split('"').skip(1).step_by(2).map(str::trim));
        }
    }
    names
}

fn known_tests(tree: &Tree) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    for (_, source) in tree.sources() {
        known.extend(source.lines().filter_map(|(_, line)| function_name(&line.code)));
    }
    for (_, text) in tree
        .texts()
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "feature"))
    {
        known.extend(text.lines().filter_map(scenario_title));
    }
    known
}

fn function_name(code: &str) -> Option<&str> {
    let (before, rest) = code.split_once("fn ")?;
    let is_keyword = before.is_empty() || before.ends_with([' ', '(']);
    let end = rest.find(|character: char| !(character.is_alphanumeric() || character == '_'))?;
    (is_keyword && end > 0).then_some(&rest[..end])
}

fn scenario_title(line: &str) -> Option<&str> {
    let (keyword, title) = line.trim().split_once(':')?;
    matches!(keyword, "Scenario" | "Scenario Outline" | "Example").then_some(title.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_test_is_looked_for_and_only_in_its_column() {
        let table = r#"# Races
`not::a::table` is prose.

| must hold | where | shown by |
|---|---|---|
| counts | `kernel::breaker` | `kernel::it::breaker::counts_are_exact`, `kernel::it::breaker::gone` |
| resets | `kernel` | "A cancel is not lost", "A cancel is lost"; `features/x.feature`, `features/y.feature` |
| later | | |

| other | columns | here |
|---|---|---|
| `nothing::here` | `or::here` | `or::there` |
"#;
        let tree = Tree::of(&[
            ("docs/races.md", table),
            (
                "crates/kernel/tests/it/breaker.rs",
                "// fn gone()\n#[test]\nfn counts_are_exact() {}",
            ),
            (
                "features/x.feature",
                "Feature: x\n  Scenario: A cancel is not lost\n    Given a token",
            ),
        ]);
        let found: Vec<_> = check(&tree)
            .into_iter()
            .map(|finding| (finding.line, finding.message))
            .collect();
        let expected = [
            (Some(6), "there is no test `kernel::it::breaker::gone`".to_owned()),
            (Some(7), "there is no test `A cancel is lost`".to_owned()),
            (Some(7), "there is no test `features/y.feature`".to_owned()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_page_without_a_column_of_tests_is_reported() {
        let found = check(&Tree::of(&[(
            "docs/security.md",
            "| must hold | where |\n|---|---|\n| counts | `kernel` |\n",
        )]));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn functions_are_found_by_name() {
        let cases = [
            ("    pub(crate) async fn one_two(x: u8) {", Some("one_two")),
            ("fn generic<T>() {}", Some("generic")),
            ("let f: fn (u8) = g;", None),
            ("confn x()", None),
        ];
        for (code, expected) in cases {
            assert_eq!(function_name(code), expected, "{code}");
        }
    }
}
