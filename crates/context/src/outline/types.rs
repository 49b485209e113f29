//! What an outline is made of.

use crate::lines::Lines;

/// What is defined in a file, and which names it mentions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outline {
    /// In which language.
    pub language: Language,
    /// In the order of the file; what is defined inside of something comes after it.
    pub definitions: Vec<Definition>,
    /// Names that are used, in the order of the names, each of them once.
    pub references: Vec<Reference>,
}

/// Something that is defined.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// All of it, with the comments and attributes right above it.
    pub lines: Lines,
    /// The lines that declare it, without its body.
    pub signature: Lines,
    /// The place in `definitions` of what it is inside of.
    pub parent: Option<u32>,
}

/// A name that is used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// How often.
    pub count: u32,
}

/// What something is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum SymbolKind {
    /// A function.
    Function = 1,
    /// A function of a type.
    Method = 2,
    /// A class, a struct, an enum, a union.
    Type = 3,
    /// An interface, a trait.
    Interface = 4,
    /// A module, a namespace.
    Module = 5,
    /// A macro.
    Macro = 6,
    /// A constant, a variable, a field, a member of an enum.
    Value = 7,
    /// What is said of a type apart from its declaration: an `impl` block. It goes by the name of the type.
    Implementation = 8,
}

impl SymbolKind {
    /// Its name, for people.
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

    /// The kind of this number, as in `kind as u8`.
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

/// A language that is understood.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Language {
    /// Rust.
    Rust = 1,
    /// Python.
    Python = 2,
    /// JavaScript, with JSX.
    JavaScript = 3,
    /// TypeScript.
    TypeScript = 4,
    /// TypeScript with JSX.
    Tsx = 5,
    /// Go.
    Go = 6,
    /// C.
    C = 7,
    /// C++.
    Cpp = 8,
    /// Java.
    Java = 9,
}

impl Language {
    /// The language of this number, as in `language as u8`.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|language| *language as u8 == number)
    }

    /// All of them.
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
