//! Finds the line of each key in the file, and rejects unknown keys.
//!
//! The table of keys decides what is allowed. Any other key is an error, with its position and the key that was
//! probably meant.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::keys::{ANY_NAME, EACH, KEYS};

/// How similar two words must be for one to be a misspelling of the other.
const ALIKE: f64 = 0.75;

/// The line of every key in the file, by its path.
pub(super) type Places = BTreeMap<String, usize>;

pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// Finds every key of a document. Fails on the first unknown one.
pub(super) fn find(text: &str, document: &DeTable<'_>) -> Result<Places, String> {
    let mut places = Places::new();
    Walk {
        text,
        places: &mut places,
    }
    .table(document, "", "")?;
    Ok(places)
}

struct Walk<'a> {
    text: &'a str,
    places: &'a mut Places,
}

impl Walk<'_> {
    /// `pattern` is the path in the table of keys, `path` is the path in the file.
    fn table(&mut self, table: &DeTable<'_>, pattern: &str, path: &str) -> Result<(), String> {
        let mut entries: Vec<_> = table.iter().collect();
        // Report the first mistake in the file first.
        entries.sort_by_key(|(key, _)| key.span().start);
        let known = below(pattern);
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let (line, column) = line_and_column(self.text, key.span().start);
            let path = joined(path, name);
            let part = match known.contains(&ANY_NAME) {
                true => ANY_NAME,
                false if known.iter().any(|known| plain(known) == name) => name,
                false => {
                    let advice = advice(pattern, name, &known);
                    let section = match pattern {
                        "" => String::new(),
                        pattern => format!(" in `{pattern}`"),
                    };
                    return Err(format!(
                        "line {line}, column {column}: there is no key `{name}`{section}; {advice}"
                    ));
                }
            };
            self.value(value.get_ref(), &joined(pattern, part), &path)?;
            self.places.insert(path, line);
        }
        Ok(())
    }

    fn value(&mut self, value: &DeValue<'_>, pattern: &str, path: &str) -> Result<(), String> {
        match value {
            DeValue::Table(table) if !below(pattern).is_empty() => self.table(table, pattern, path),
            DeValue::Array(list) => {
                let pattern = format!("{pattern}{EACH}");
                if below(&pattern).is_empty() {
                    return Ok(());
                }
                list.iter()
                    .enumerate()
                    .filter_map(|(index, each)| Some((index, each.get_ref().as_table()?)))
                    .try_for_each(|(index, table)| self.table(table, &pattern, &format!("{path}[{index}]")))
            }
            // If this should be a table and isn't, the deserializer reports it.
            _ => Ok(()),
        }
    }
}

/// The parts that may follow a path, without duplicates, in table order.
fn below(pattern: &str) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let rest = match pattern {
            "" => Some(key.path),
            pattern => key
                .path
                .strip_prefix(pattern)
                .and_then(|rest| rest.strip_prefix('.')),
        };
        let part = rest.and_then(|rest| rest.split('.').next());
        if let Some(part) = part.filter(|part| !found.contains(part)) {
            found.push(part);
        }
    }
    found
}

fn plain(part: &str) -> &str {
    part.strip_suffix(EACH).unwrap_or(part)
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// The key that was probably meant: a similar one, or one with the same name elsewhere.
fn advice(pattern: &str, name: &str, known: &[&str]) -> String {
    if let Some(word) = alike(name, known.iter().map(|part| plain(part))) {
        return format!("did you mean `{word}`?");
    }
    let elsewhere = KEYS.iter().map(|key| key.path);
    let elsewhere = elsewhere.filter(|path| !path.contains(EACH) && !path.contains(ANY_NAME));
    if let Some(path) = elsewhere
        .into_iter()
        .find(|path| path.rsplit('.').next() == Some(name))
    {
        return format!("did you mean `{path}`?");
    }
    let mut words: Vec<&str> = known.iter().map(|part| plain(part)).collect();
    words.dedup();
    let section = if pattern.is_empty() { "the file" } else { "it" };
    format!("{section} can have: {}", words.join(", "))
}

/// The most similar word, if any is similar enough.
pub fn alike<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words
        .map(|word| (strsim::jaro_winkler(name, word), word))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Result<Places, String> {
        find(text, DeTable::parse(text).unwrap().get_ref())
    }

    #[test]
    fn every_key_has_the_line_that_it_stands_in() {
        let text = "sessions.max_turns = 7\n[agents.mine]\ncommand = [\"a\"]\nenvironment = { A = \"b\" }\n\
                    [[context.commands]]\nname = \"a\"\n";
        let expected = [
            ("agents", 2),
            ("agents.mine", 2),
            ("agents.mine.command", 3),
            ("agents.mine.environment", 4),
            ("context", 5),
            ("context.commands", 5),
            ("context.commands[0].name", 6),
            ("sessions", 1),
            ("sessions.max_turns", 1),
        ];
        let expected: Places = expected.map(|(path, line)| (path.to_owned(), line)).into();
        assert_eq!(places(text).unwrap(), expected);
    }

    #[test]
    fn a_key_that_nobody_knows_is_told_with_what_was_probably_meant() {
        for (text, expected) in [
            (
                "[sesions]\n",
                "line 1, column 2: there is no key `sesions`; did you mean `sessions`?",
            ),
            (
                "[model]\n\n  max_step = 1\n",
                "line 3, column 3: there is no key `max_step` in `model`; did you mean `max_steps`?",
            ),
            (
                "[sessions]\nbudget_tokens = 1\n",
                "line 2, column 1: there is no key `budget_tokens` in `sessions`; did you mean `context.budget_tokens`?",
            ),
            (
                "[agents.mine]\ncomand = []\n",
                "line 2, column 1: there is no key `comand` in `agents.NAME`; did you mean `command`?",
            ),
            (
                "[sessions]\nrules = [{ tool = \"*\", permision = \"ask\" }]\n",
                "line 2, column 24: there is no key `permision` in `sessions.rules[]`; did you mean `permission`?",
            ),
            (
                "[[context.commands]]\nname = \"a\"\nzzz = 1\n",
                "line 3, column 1: there is no key `zzz` in `context.commands[]`; it can have: name, command, timeout_ms, weight",
            ),
            (
                "zzz = 1\n",
                "line 1, column 1: there is no key `zzz`; the file can have: machine, sessions, model, agents, mcp, plans, context",
            ),
        ] {
            assert_eq!(places(text), Err(expected.to_owned()));
        }
    }
}
