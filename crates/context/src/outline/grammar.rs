//! The query of each language.

use std::sync::OnceLock;

use tree_sitter::{Language as Syntax, Query};

use super::types::{Language, SymbolKind};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Capture {
    Definition(SymbolKind),
    Name,
    Body,
    Reference,
    /// A referenced name, if it begins with a capital letter.
    CapitalReference,
    Above,
}

pub(super) struct Grammar {
    pub(super) syntax: Syntax,
    pub(super) query: Query,
    captures: Vec<Capture>,
}

impl Grammar {
    /// The grammar of a language. Its query is compiled once; `None` if that fails, which a test rules out.
    pub(super) fn of(language: Language) -> Option<&'static Self> {
        static GRAMMARS: [OnceLock<Option<Grammar>>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        let place = Language::ALL.iter().position(|other| *other == language)?;
        GRAMMARS[place].get_or_init(|| Self::new(language)).as_ref()
    }

    fn new(language: Language) -> Option<Self> {
        let syntax = syntax(language);
        let query = Query::new(&syntax, &source(language)).ok()?;
        let captures = query.capture_names().iter().map(|name| meaning(name));
        let captures = captures.collect::<Option<Vec<_>>>()?;
        Some(Self {
            syntax,
            query,
            captures,
        })
    }

    pub(super) fn meaning(&self, capture: u32) -> Option<Capture> {
        self.captures.get(capture as usize).copied()
    }
}

fn meaning(name: &str) -> Option<Capture> {
    Some(match name {
        "definition.function" => Capture::Definition(SymbolKind::Function),
        "definition.method" => Capture::Definition(SymbolKind::Method),
        "definition.type" => Capture::Definition(SymbolKind::Type),
        "definition.interface" => Capture::Definition(SymbolKind::Interface),
        "definition.module" => Capture::Definition(SymbolKind::Module),
        "definition.macro" => Capture::Definition(SymbolKind::Macro),
        "definition.value" => Capture::Definition(SymbolKind::Value),
        "definition.implementation" => Capture::Definition(SymbolKind::Implementation),
        "name" => Capture::Name,
        "body" => Capture::Body,
        "reference" => Capture::Reference,
        "reference.capital" => Capture::CapitalReference,
        "above" => Capture::Above,
        _ => return None,
    })
}

fn syntax(language: Language) -> Syntax {
    match language {
        Language::Rust => tree_sitter_rust::LANGUAGE,
        Language::Python => tree_sitter_python::LANGUAGE,
        Language::JavaScript => tree_sitter_javascript::LANGUAGE,
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
        Language::Go => tree_sitter_go::LANGUAGE,
        Language::C => tree_sitter_c::LANGUAGE,
        Language::Cpp => tree_sitter_cpp::LANGUAGE,
        Language::Java => tree_sitter_java::LANGUAGE,
    }
    .into()
}

/// The query of a language. The grammars' own queries capture neither values nor bodies, and differ between
/// languages.
fn source(language: Language) -> String {
    const JAVASCRIPT: &str = include_str!("queries/javascript.scm");
    const JAVASCRIPT_ONLY: &str = include_str!("queries/javascript-only.scm");
    const JSX: &str = include_str!("queries/jsx.scm");
    const TYPESCRIPT: &str = include_str!("queries/typescript.scm");
    const C: &str = include_str!("queries/c.scm");
    match language {
        Language::Rust => include_str!("queries/rust.scm").to_owned(),
        Language::Python => include_str!("queries/python.scm").to_owned(),
        Language::JavaScript => [JAVASCRIPT, JAVASCRIPT_ONLY, JSX].concat(),
        Language::TypeScript => [JAVASCRIPT, TYPESCRIPT].concat(),
        Language::Tsx => [JAVASCRIPT, TYPESCRIPT, JSX].concat(),
        Language::Go => include_str!("queries/go.scm").to_owned(),
        Language::C => C.to_owned(),
        Language::Cpp => [C, include_str!("queries/cpp.scm")].concat(),
        Language::Java => include_str!("queries/java.scm").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_understood() {
        for language in Language::ALL {
            let why = || {
                let query = Query::new(&syntax(language), &source(language)).map(|query| {
                    let names = query.capture_names().iter();
                    names
                        .filter(|name| meaning(name).is_none())
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                });
                format!("{language:?}: {query:?}")
            };
            assert!(Grammar::of(language).is_some(), "{}", why());
        }
    }
}
