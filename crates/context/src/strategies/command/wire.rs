//! What a command reads, and what it writes.

use serde::{Deserialize, Serialize};

use crate::answer::Depth;
use crate::lines::Lines;
use crate::path::TreePath;
use crate::strategy::{Ask, Hit};

/// The version of the format. It changes when existing commands would break.
const VERSION: u32 = 1;
/// How many changed files are listed. More than that means a checkout of something else.
const CHANGED_LIMIT: usize = 1000;
/// The most characters of a reason.
const WHY_LIMIT_CHARS: usize = 200;

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Question<'a> {
    version: u32,
    query: &'a str,
    terms: Vec<&'a str>,
    focus: Vec<&'a str>,
    root: &'a str,
    /// Files that differ between the disk and the view: those that the plan has changed.
    changed: Vec<&'a str>,
    deadline_ms: u64,
    most_hits: usize,
}

impl<'a> Question<'a> {
    pub(super) fn of(ask: &'a Ask, root: &'a str, changed: &'a [TreePath], deadline_ms: u64) -> Self {
        let changed = changed.iter().take(CHANGED_LIMIT);
        Self {
            version: VERSION,
            query: &ask.query.text,
            terms: ask.query.terms.iter().map(|term| term.text.as_str()).collect(),
            focus: ask.focus.iter().map(TreePath::as_str).collect(),
            root,
            changed: changed.map(TreePath::as_str).collect(),
            deadline_ms,
            most_hits: ask.most_hits,
        }
    }
}

/// An answer. Unknown members are ignored.
#[derive(Debug, Deserialize)]
struct Answer {
    hits: Vec<WireHit>,
}

#[derive(Debug, Deserialize)]
struct WireHit {
    path: String,
    first_line: Option<u32>,
    last_line: Option<u32>,
    score: f64,
    #[serde(default)]
    why: String,
}

/// Reads an answer, best first. It is refused as a whole if any part is invalid.
pub(super) fn read(output: &[u8]) -> Result<Vec<Hit>, String> {
    let answer: Answer =
        serde_json::from_slice(output).map_err(|error| format!("it did not answer as it should: {error}"))?;
    let hits = answer.hits.into_iter().enumerate();
    let mut hits = hits
        .map(|(place, found)| {
            found
                .hit()
                .map_err(|wrong| format!("hit {place} is wrong: {wrong}"))
        })
        .collect::<Result<Vec<Hit>, String>>()?;
    hits.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| (&one.path, one.lines).cmp(&(&other.path, other.lines)))
    });
    Ok(hits)
}

impl WireHit {
    fn hit(self) -> Result<Hit, String> {
        let lines = match (self.first_line, self.last_line) {
            (None, None) => None,
            (None, Some(_)) => return Err("`last_line` needs a `first_line`".to_owned()),
            (Some(first), last) => {
                let lines = Lines::new(first, last.unwrap_or(first));
                Some(lines.ok_or_else(|| {
                    "lines are counted from 1, and the last is not before the first".to_owned()
                })?)
            }
        };
        if !self.score.is_finite() {
            return Err("`score` is no number that can be compared".to_owned());
        }
        let why = self.why.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Hit {
            path: TreePath::new(&self.path).map_err(|error| error.to_string())?,
            lines,
            score: self.score,
            why: why.chars().take(WHY_LIMIT_CHARS).collect(),
            depth: Depth::Body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(path: &str, lines: Option<(u32, u32)>, score: f64, why: &str) -> Hit {
        Hit {
            path: TreePath::new(path).unwrap(),
            lines: lines.map(|(first, last)| Lines::new(first, last).unwrap()),
            score,
            why: why.to_owned(),
            depth: Depth::Body,
        }
    }

    #[test]
    fn an_answer_is_read_with_the_best_first() {
        let text = r#"{"hits": [
            {"path": "b.rs", "score": 1},
            {"path": "a.rs", "first_line": 7, "score": 1.0, "why": "says\n so"},
            {"path": "a.rs", "first_line": 2, "last_line": 5, "score": 1.0, "later": true},
            {"path": "c.rs", "score": 2.5}
        ], "version": 1}"#;
        let expected = [
            hit("c.rs", None, 2.5, ""),
            hit("a.rs", Some((2, 5)), 1.0, ""),
            hit("a.rs", Some((7, 7)), 1.0, "says so"),
            hit("b.rs", None, 1.0, ""),
        ];
        assert_eq!(read(text.as_bytes()).unwrap(), expected);
        assert_eq!(read(br#"{"hits": []}"#), Ok(Vec::new()));
    }

    #[test]
    fn an_answer_that_is_wrong_is_not_taken() {
        let cases = [
            ("", "it did not answer as it should: EOF"),
            ("{}", "it did not answer as it should: missing field `hits`"),
            (r#"{"hits": []} more"#, "it did not answer as it should: trailing"),
            (
                r#"{"hits": [{"path": "a"}]}"#,
                "it did not answer as it should: missing field `score`",
            ),
            (
                r#"{"hits": [{"path": "a", "score": "1"}]}"#,
                "it did not answer as it should: invalid type",
            ),
            (
                r#"{"hits": [{"path": "a", "score": 1e999}]}"#,
                "it did not answer as it should: number out of range",
            ),
            (
                r#"{"hits": [{"path": "../a", "score": 1}]}"#,
                "hit 0 is wrong: `../a` is not a path",
            ),
            (
                r#"{"hits": [{"path": "a", "score": 1, "last_line": 2}]}"#,
                "hit 0 is wrong: `last_line` needs",
            ),
            (
                r#"{"hits": [{"path": "a", "score": 1, "first_line": 0}]}"#,
                "hit 0 is wrong: lines are counted",
            ),
        ];
        for (text, expected) in cases {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
