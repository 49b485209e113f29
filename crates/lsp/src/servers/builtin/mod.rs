//! The servers that are known without any configuration, as data.
//!
//! Their order is the order of preference: of the servers that are installed, the first primary one for a language is
//! used, and every supplement. To add a server, add an entry in the file of its family.

mod compiled;
mod data;
mod entry;
mod managed;
mod scripting;
mod web;

pub(crate) use entry::{Builtin, common_variables};

pub(crate) fn all() -> impl Iterator<Item = &'static Builtin> {
    [
        compiled::SERVERS,
        scripting::SERVERS,
        web::SERVERS,
        managed::SERVERS,
        data::SERVERS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::definition::Role;
    use super::super::languages;
    use super::*;

    #[test]
    fn every_entry_is_well_formed() {
        let mut names = BTreeSet::new();
        for builtin in all() {
            let name = builtin.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(!builtin.languages.is_empty(), "{name} serves nothing");
            assert!(!builtin.install.trim().is_empty(), "{name} cannot be installed");
            assert!(!builtin.commands.is_empty(), "{name} has no command");
            for language in builtin.languages {
                assert!(
                    languages::find(language).is_some(),
                    "{name}: {language} has no files"
                );
            }
            for command in builtin.commands {
                let program = command.first().unwrap();
                assert!(!program.contains(['/', ' ']), "{name}: {program} is no name");
            }
            // All JSON in an entry is an object.
            let definition = builtin.definition();
            for json in [&definition.initialization_options, &definition.settings] {
                assert!(
                    json.as_ref().is_none_or(serde_json::Value::is_object),
                    "{name}: {json:?}"
                );
            }
            assert_eq!(
                builtin.initialization_options.is_some(),
                definition.initialization_options.is_some()
            );
            assert_eq!(
                builtin.settings.is_some(),
                definition.settings.is_some(),
                "{name}: settings"
            );
        }
    }

    #[test]
    fn every_language_has_a_server_that_answers() {
        for language in languages::LANGUAGES {
            let primary =
                all().find(|server| server.role == Role::Primary && server.languages.contains(&language.id));
            assert!(primary.is_some(), "{}", language.id);
        }
    }

    #[test]
    fn the_better_server_stands_first() {
        let cases = [
            (
                "python",
                vec!["basedpyright", "pyright", "ty", "pylsp", "jedi-language-server"],
            ),
            (
                "typescript",
                vec!["deno", "typescript-language-server", "vtsls", "tsgo"],
            ),
            ("rust", vec!["rust-analyzer"]),
            ("cpp", vec!["clangd", "ccls"]),
            ("go", vec!["gopls"]),
            ("php", vec!["intelephense", "phpactor"]),
            ("ruby", vec!["ruby-lsp", "solargraph"]),
        ];
        for (language, expected) in cases {
            let found: Vec<_> = all()
                .filter(|server| server.role == Role::Primary && server.languages.contains(&language))
                .map(|server| server.name)
                .collect();
            assert_eq!(found, expected, "{language}");
        }
    }
}
