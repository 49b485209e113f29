//! Which language a file is in.

use memchr::memmem;

use super::types::Language;
use crate::path::TreePath;

/// How much of a header is read to tell C from C++.
const HEADER_LOOK_BYTES: usize = 64 * 1024;

/// Keywords of C++ that C doesn't have. `extern "C"` is in headers of both.
const ONLY_IN_CPP: [&[u8]; 10] = [
    b"\nclass ",
    b"\nnamespace ",
    b"\ntemplate",
    b"public:",
    b"private:",
    b"protected:",
    b"std::",
    b"virtual ",
    b"constexpr ",
    b"\nusing ",
];

impl Language {
    /// The language of a file, by its name. Only the content of headers is examined.
    #[must_use]
    pub fn of(path: &TreePath, text: &str) -> Option<Self> {
        let ending = path.extension()?;
        let small;
        let ending = if ending.bytes().any(|byte| byte.is_ascii_uppercase()) {
            small = ending.to_ascii_lowercase();
            small.as_str()
        } else {
            ending
        };
        Some(match ending {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "c" => Self::C,
            "h" => c_or_cpp(text),
            "cc" | "cpp" | "cxx" | "c++" | "hh" | "hpp" | "hxx" | "h++" | "inl" | "ipp" | "tpp" => Self::Cpp,
            "java" => Self::Java,
            _ => return None,
        })
    }

    /// Whether files with this name may have outlines. Cheap.
    pub(crate) fn is_known(path: &TreePath) -> bool {
        Self::of(path, "").is_some()
    }
}

fn c_or_cpp(text: &str) -> Language {
    if text.is_empty() {
        return Language::C;
    }
    let head = &text.as_bytes()[..text.len().min(HEADER_LOOK_BYTES)];
    let is_cpp = |mark: &&[u8]| memmem::find(head, mark).is_some();
    if ONLY_IN_CPP.iter().any(is_cpp) {
        Language::Cpp
    } else {
        Language::C
    }
}

#[cfg(test)]
mod tests {
    use super::Language;
    use crate::path::TreePath;

    #[test]
    fn the_name_says_the_language_and_a_header_is_looked_into() {
        let guarded = "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(void);\n";
        for (path, text, language) in [
            ("src/main.rs", "", Some(Language::Rust)),
            ("a.PY", "", Some(Language::Python)),
            ("a.pyi", "", Some(Language::Python)),
            ("a.mjs", "", Some(Language::JavaScript)),
            ("a.d.ts", "", Some(Language::TypeScript)),
            ("a.tsx", "", Some(Language::Tsx)),
            ("a.go", "", Some(Language::Go)),
            ("a.c", "class", Some(Language::C)),
            ("a.h", guarded, Some(Language::C)),
            ("a.h", "\nclass A {};\n", Some(Language::Cpp)),
            ("a.h", "#pragma once\nnamespace a {}\n", Some(Language::Cpp)),
            ("a.hpp", "", Some(Language::Cpp)),
            ("A.java", "", Some(Language::Java)),
            ("rs", "", None),
            (".rs", "", None),
            ("Makefile", "", None),
            ("a.md", "# fn", None),
        ] {
            assert_eq!(
                Language::of(&TreePath::new(path).unwrap(), text),
                language,
                "{path}"
            );
        }
    }
}
