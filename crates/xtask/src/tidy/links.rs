//! Every link from one Markdown file to a file of the project, or to a heading, must lead somewhere.
//!
//! External addresses are not checked: a check that needs a network fails for unrelated reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::files::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages: BTreeMap<&Path, Page<'_>> = tree
        .texts()
        .filter(|(path, _)| is_markdown(path))
        .map(|(path, text)| (path, Page::read(text)))
        .collect();
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for (line, target) in &page.links {
            if let Some(trouble) = trouble(path, target, &pages, tree) {
                let message = format!("the link to `{target}` is dead: {trouble}");
                findings.push(Finding::on_line(path, *line, message));
            }
        }
    }
    findings
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

fn trouble(
    from: &Path,
    target: &str,
    pages: &BTreeMap<&Path, Page<'_>>,
    tree: &Tree,
) -> Option<&'static str> {
    let leads_away = target.contains("://") || target.starts_with("mailto:");
    if leads_away {
        return None;
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = match file {
        "" => from.to_owned(),
        file => match beside(from, file) {
            Some(path) => path,
            None => return Some("it leaves the project"),
        },
    };
    if !tree.has(&path) {
        return Some("there is no such file");
    }
    match (anchor, pages.get(path.as_path())) {
        (Some(anchor), Some(page)) if !page.anchors.contains(anchor) => Some("there is no such heading"),
        _ => None,
    }
}

/// Resolves a path written in a file, relative to the root; `None` if it leaves the root.
fn beside(from: &Path, file: &str) -> Option<PathBuf> {
    let mut path = from.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path)
}

/// The links of a page, and its link targets.
#[derive(Debug, Default)]
struct Page<'a> {
    links: Vec<(usize, &'a str)>,
    anchors: BTreeSet<String>,
}

impl<'a> Page<'a> {
    fn read(text: &'a str) -> Self {
        let mut page = Self::default();
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                continue;
            }
            if is_code {
                continue;
            }
            if let Some(heading) = heading(line) {
                page.add_anchor(&anchor(heading));
            }
            page.links
                .extend(links(line).into_iter().map(|link| (index + 1, link)));
        }
        page
    }

    fn add_anchor(&mut self, anchor: &str) {
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.to_owned())
            .chain(numbered)
            .find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then_some(text)?.strip_prefix(' ')
}

/// The anchor of a heading: lowercase, dashes for spaces, and no punctuation but dashes and underscores.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        character if character.is_alphanumeric() => Some(character),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The targets of `[text](target)`, outside of `code`.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let is_code = is_inside_code(line, line.len() - rest.len() + at);
        rest = &rest[at + 2..];
        let end = rest.find([')', ' ']).unwrap_or(rest.len());
        if !is_code {
            found.push(&rest[..end]);
        }
    }
    found
}

fn is_inside_code(line: &str, at: usize) -> bool {
    line[..at].matches('`').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_link_is_found_and_a_living_one_is_not() {
        let page = "# Top of `it`: all!\n\
                    [a](docs/a.md) and [b](docs/a.md#second-part_1 \"title\"), ![c](docs/c.png), [d](docs)\n\
                    [here](#top-of-it-all), [away](https://example.org/nothing), `[code](nothing.md)`\n\
                    ```\n# Not a heading\n[code](nothing.md)\n```\n\
                    [dead](docs/gone.md) and [dead](docs/a.md#gone), [dead](#not-a-heading), [out](../x.md)\n";
        let other = "## Second part_1\n## Same\n## Same\n[up](../README.md#top-of-it-all) [same](#same-1) [dead](README.md)\n";
        let tree = Tree::of(&[("README.md", page), ("docs/a.md", other), ("docs/c.png", "")]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "README.md:8: the link to `docs/gone.md` is dead: there is no such file",
                "README.md:8: the link to `docs/a.md#gone` is dead: there is no such heading",
                "README.md:8: the link to `#not-a-heading` is dead: there is no such heading",
                "README.md:8: the link to `../x.md` is dead: it leaves the project",
                "docs/a.md:4: the link to `README.md` is dead: there is no such file",
            ]
        );
    }
}
