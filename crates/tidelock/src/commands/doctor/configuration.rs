//! The user's configuration and environment: whether a daemon could start with them.

use super::Check;
use crate::commands::config;
use crate::context::Context;
use crate::environment;

pub(super) fn check(context: &Context) -> Vec<Check> {
    let id = "configuration";
    let file = match config::settings(context) {
        Ok(list) => {
            let file = list.file.unwrap_or_default();
            let found = match std::path::Path::new(&file).exists() {
                true => format!("{file} is valid"),
                false => format!("{file} doesn't exist, which is fine: the defaults apply"),
            };
            Check::ok(id, found)
        }
        Err(failure) => Check::failed(id, failure.message, failure.advice.unwrap_or_default()),
    };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut checks = vec![file];
    checks.extend(judge(&environment::unknown(names)));
    checks
}

/// A variable that no one reads is most often misspelled.
fn judge(unknown: &[(String, Option<&str>)]) -> Option<Check> {
    if unknown.is_empty() {
        return None;
    }
    let words: Vec<String> = unknown
        .iter()
        .map(|(name, meant)| match meant {
            Some(meant) => format!("{name} (did you mean {meant}?)"),
            None => name.clone(),
        })
        .collect();
    Some(Check::warning(
        "environment",
        format!("Tidelock doesn't read {}", words.join(", ")),
        "`tidelock --help` lists the variables that it reads",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_nobody_reads_is_a_warning() {
        assert_eq!(judge(&[]), None);
        let unknown = [("A".to_owned(), Some("B")), ("C".to_owned(), None)];
        let expected = Check::warning(
            "environment",
            "Tidelock doesn't read A (did you mean B?), C",
            "`tidelock --help` lists the variables that it reads",
        );
        assert_eq!(judge(&unknown), Some(expected));
    }
}
