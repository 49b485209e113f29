//! The documentation of the error codes, which the `type` of a problem links to. It renders the file in `docs/` and
//! supports only what that file uses: headings, paragraphs, tables, `code` and **bold**.

use maud::{Markup, html};

use crate::page::parts::layout::plain_page;

const SOURCE: &str = include_str!("../../../../../docs/errors.md");

pub(crate) async fn show() -> Markup {
    let content = html! {
        article class="card text" { @for block in SOURCE.split("\n\n") { (render(block)) } }
    };
    plain_page("Errors", &content)
}

/// A block is the text between empty lines; its first line may be a heading.
fn render(block: &str) -> Markup {
    let block = block.trim();
    let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
    if let Some(heading) = first.strip_prefix("## ") {
        // A heading is a code and its status; links name the code.
        let code = heading.split(' ').next().unwrap_or(heading);
        return html! { h2 id=(code) { (heading) } (render(rest)) };
    }
    if let Some(heading) = first.strip_prefix("# ") {
        return html! { h1 { (heading) } (render(rest)) };
    }
    if block.starts_with('|') {
        return table(block);
    }
    html! {
        @if !block.is_empty() { p { (spans(block)) } }
    }
}

fn table(block: &str) -> Markup {
    let row = |line: &str| -> Vec<Markup> {
        let cells = line.trim().trim_matches('|').split(" | ");
        cells.map(|cell| spans(cell.trim())).collect()
    };
    let mut lines = block.lines();
    let head = lines.next().map(row).unwrap_or_default();
    html! {
        table {
            thead { tr { @for cell in head { th { (cell) } } } }
            tbody {
                @for line in lines.skip(1) { tr { @for cell in row(line) { td { (cell) } } } }
            }
        }
    }
}

/// Every other part between markers is marked. Markers don't nest.
fn spans(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else {
                @for (index, part) in part.split("**").enumerate() {
                    @if index % 2 == 1 { strong { (part) } } @else { (part) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_headings_and_paragraphs() {
        for (block, expected) in [
            ("# Errors", "<h1>Errors</h1>"),
            (
                "## not_found (404)\n**Meaning.** See `a<b`.",
                "<h2 id=\"not_found\">not_found (404)</h2>\
                 <p><strong>Meaning.</strong> See <code>a&lt;b</code>.</p>",
            ),
            ("", ""),
            (
                "| code | what |\n|---|---|\n| `a`, `b` | it is |",
                "<table><thead><tr><th>code</th><th>what</th></tr></thead>\
                 <tbody><tr><td><code>a</code>, <code>b</code></td><td>it is</td></tr></tbody></table>",
            ),
        ] {
            assert_eq!(render(block).into_string(), expected);
        }
    }
}
