//! The parts of an outline.

use crate::lines::Lines;

/// The definitions of a file, and the names it mentions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outline {
    pub language: Language,
    /// In file order; nested definitions come after their parent.
    pub definitions: Vec<Definition>,
    /// Referenced names, sorted, without duplicates.
    pub references: Vec<Reference>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Definition {
    pub name: String,
    pub kind: SymbolKind,
    /// All lines, including the comments and attributes right above.
    pub lines: Lines,
    /// The lines that declare it, without its body.
    pub signature: Lines,
    /// The index of the enclosing definition.
    pub parent: Option<u32>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    pub name: String,
    pub count: u32,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum SymbolKind {
    Function = 1,
    Method = 2,
    Type = 3,
    Interface = 4,
    Module = 5,
    Macro = 6,
    /// A constant, a variable, a field, a member of an enum.
    Value = 7,
    /// An `impl` block. It has the name of the type.
    Implementation = 8,
}

impl SymbolKind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Method => "method",
            Self::Type => "type",
            Self::Interface => "interface",
            Self::Module => "module",
            Self::Macro => "macro",
            Self::Value => "value",
            Self::Implementation => "implementation",
        }
    }

    /// The kind with this number, as in `kind as u8`.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Function,
            2 => Self::Method,
            3 => Self::Type,
            4 => Self::Interface,
            5 => Self::Module,
            6 => Self::Macro,
            7 => Self::Value,
            8 => Self::Implementation,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Language {
    Rust = 1,
    Python = 2,
    JavaScript = 3,
    TypeScript = 4,
    Tsx = 5,
    Go = 6,
    C = 7,
    Cpp = 8,
    Java = 9,
}

impl Language {
    /// The language with this number, as in `language as u8`.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|language| *language as u8 == number)
    }

    pub(crate) const ALL: [Self; 9] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Tsx,
        Self::Go,
        Self::C,
        Self::Cpp,
        Self::Java,
    ];
}

#[cfg(test)]
mod tests {
    use super::{Language, SymbolKind};

    #[test]
    fn numbers_and_what_they_stand_for_go_both_ways() {
        for number in 0..=u8::MAX {
            let kind = SymbolKind::from_number(number).map(|kind| kind as u8);
            let language = Language::from_number(number).map(|language| language as u8);
            let (kinds, languages) = ((1..=8).contains(&number), (1..=9).contains(&number));
            assert_eq!(kind, kinds.then_some(number));
            assert_eq!(language, languages.then_some(number));
        }
    }
}
