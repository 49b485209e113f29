//! Languages by their ids in the protocol, and their files.
//!
//! This is the only mapping of files to languages for the built-in servers, so that two of them can't disagree. A
//! configuration may map differently for its own servers.

use std::io::Read as _;
use std::path::Path;

/// How much of a file is read for its first line.
const FIRST_LINE_BYTES: usize = 128;

#[derive(Debug)]
pub(crate) struct Language {
    pub(crate) id: &'static str,
    pub(crate) extensions: &'static [&'static str],
    pub(crate) names: &'static [&'static str],
}

const fn language(
    id: &'static str,
    extensions: &'static [&'static str],
    names: &'static [&'static str],
) -> Language {
    Language {
        id,
        extensions,
        names,
    }
}

/// All languages of the built-in servers.
pub(crate) const LANGUAGES: &[Language] = &[
    language("astro", &[".astro"], &[]),
    language("blade", &[".blade.php"], &[]),
    language("c", &[".c"], &[]),
    language("clojure", &[".clj", ".cljs", ".cljc", ".edn", ".bb"], &[]),
    language("cmake", &[".cmake"], &["CMakeLists.txt"]),
    // A header may be either; clangd looks at what includes it, not at the id.
    language(
        "cpp",
        &[
            ".cc", ".cpp", ".cxx", ".c++", ".cppm", ".ixx", ".h", ".hh", ".hpp", ".hxx", ".h++", ".inl",
            ".ipp", ".tpp",
        ],
        &[],
    ),
    language("csharp", &[".cs", ".csx"], &[]),
    language("css", &[".css"], &[]),
    language("cuda-cpp", &[".cu", ".cuh"], &[]),
    language("dart", &[".dart"], &[]),
    language("dockerfile", &[".dockerfile"], &["Dockerfile", "Containerfile"]),
    language("elixir", &[".ex", ".exs"], &["mix.lock"]),
    language("eex", &[".eex", ".leex"], &[]),
    language("phoenix-heex", &[".heex"], &[]),
    language("elm", &[".elm"], &[]),
    language("erlang", &[".erl", ".hrl", ".app.src"], &["rebar.config"]),
    language("fish", &[".fish"], &["config.fish"]),
    language("fortran", &[".f", ".f90", ".f95", ".f03", ".f08"], &[]),
    language("fsharp", &[".fs", ".fsi", ".fsx"], &[]),
    language("gleam", &[".gleam"], &[]),
    language("go", &[".go"], &[]),
    language("go.mod", &[], &["go.mod"]),
    language("go.sum", &[], &["go.sum"]),
    language("go.work", &[], &["go.work"]),
    language("gotmpl", &[".gotmpl"], &[]),
    language("graphql", &[".graphql", ".gql"], &[]),
    language("groovy", &[".groovy", ".gradle"], &["Jenkinsfile"]),
    language("haskell", &[".hs", ".lhs"], &[]),
    language("html", &[".html", ".htm", ".xhtml"], &[]),
    language("java", &[".java"], &[]),
    language("javascript", &[".js", ".mjs", ".cjs"], &[]),
    language("javascriptreact", &[".jsx"], &[]),
    language("json", &[".json", ".webmanifest"], &[".prettierrc", ".babelrc"]),
    language(
        "jsonc",
        &[".jsonc", ".code-workspace"],
        &["tsconfig.json", "jsconfig.json", ".eslintrc.json", "deno.json"],
    ),
    language("julia", &[".jl"], &[]),
    language("kotlin", &[".kt", ".kts"], &[]),
    language("latex", &[".tex", ".sty", ".cls"], &[]),
    language("bibtex", &[".bib"], &[]),
    language("less", &[".less"], &[]),
    language("lua", &[".lua"], &[".luacheckrc"]),
    language("markdown", &[".md", ".markdown"], &[]),
    language("nim", &[".nim", ".nims", ".nimble"], &[]),
    language("nix", &[".nix"], &[]),
    language("objective-c", &[".m"], &[]),
    language("objective-cpp", &[".mm"], &[]),
    language("ocaml", &[".ml"], &[]),
    language("ocaml.interface", &[".mli"], &[]),
    language("ocaml.menhir", &[".mly"], &[]),
    language("ocaml.ocamllex", &[".mll"], &[]),
    language("dune", &[], &["dune", "dune-project"]),
    language("perl", &[".pl", ".pm"], &[]),
    language("php", &[".php", ".phtml"], &[]),
    language("powershell", &[".ps1", ".psm1", ".psd1"], &[]),
    language("prisma", &[".prisma"], &[]),
    language("proto", &[".proto"], &[]),
    language("python", &[".py", ".pyi", ".pyw"], &["SConstruct", "SConscript"]),
    language("r", &[".r", ".R"], &[".Rprofile"]),
    language(
        "ruby",
        &[".rb", ".rake", ".gemspec", ".ru"],
        &["Gemfile", "Rakefile", "Guardfile", "Podfile", "Vagrantfile"],
    ),
    language("rust", &[".rs"], &[]),
    language("sass", &[".sass"], &[]),
    language("scala", &[".scala", ".sbt", ".sc"], &[]),
    language("scss", &[".scss"], &[]),
    language(
        "shellscript",
        &[".sh", ".bash", ".ksh", ".bats"],
        &[
            ".bashrc",
            ".bash_profile",
            ".bash_aliases",
            ".profile",
            "PKGBUILD",
        ],
    ),
    language("solidity", &[".sol"], &[]),
    language("sql", &[".sql"], &[]),
    language("svelte", &[".svelte"], &[]),
    language("swift", &[".swift"], &[]),
    language("terraform", &[".tf"], &[]),
    language("terraform-vars", &[".tfvars"], &[]),
    language(
        "toml",
        &[".toml"],
        &["Cargo.lock", "Pipfile", "poetry.lock", "uv.lock"],
    ),
    language("typescript", &[".ts", ".mts", ".cts"], &[]),
    language("typescriptreact", &[".tsx"], &[]),
    language("typst", &[".typ"], &[]),
    language("vue", &[".vue"], &[]),
    language("xml", &[".xml", ".xsd", ".xsl", ".xslt", ".svg"], &[]),
    language(
        "yaml",
        &[".yaml", ".yml"],
        &[".clang-format", ".clang-tidy", ".clangd"],
    ),
    language("zig", &[".zig", ".zon"], &[]),
];

/// Interpreters in the first line of a script, without trailing digits and dots.
const INTERPRETERS: &[(&str, &str)] = &[
    ("bash", "shellscript"),
    ("dash", "shellscript"),
    ("sh", "shellscript"),
    ("bats", "shellscript"),
    ("fish", "fish"),
    ("python", "python"),
    ("node", "javascript"),
    ("deno", "typescript"),
    ("ruby", "ruby"),
    ("perl", "perl"),
    ("lua", "lua"),
    ("php", "php"),
    ("elixir", "elixir"),
    ("escript", "erlang"),
    ("julia", "julia"),
    ("Rscript", "r"),
];

pub(crate) fn find(id: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.id == id)
}

/// The language that the first line of a script names. Only a regular file without an extension is read.
pub(crate) fn of_script(file: &Path) -> Option<&'static str> {
    if file.extension().is_some() || !file.is_file() {
        return None;
    }
    let mut start = Vec::with_capacity(FIRST_LINE_BYTES);
    let opened = std::fs::File::open(file).ok()?;
    opened
        .take(FIRST_LINE_BYTES as u64)
        .read_to_end(&mut start)
        .ok()?;
    of_first_line(&String::from_utf8_lossy(&start))
}

fn of_first_line(text: &str) -> Option<&'static str> {
    let mut words = text.lines().next()?.strip_prefix("#!")?.split_whitespace();
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut program = base(words.next()?);
    if program == "env" {
        program = base(words.find(|word| !word.starts_with('-') && !word.contains('='))?);
    }
    let program = program.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    INTERPRETERS
        .iter()
        .find(|(interpreter, _)| *interpreter == program)
        .map(|(_, language)| *language)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_file_has_one_language() {
        let mut seen = BTreeMap::new();
        for language in LANGUAGES {
            assert!(
                !language.extensions.is_empty() || !language.names.is_empty(),
                "{} has no files",
                language.id
            );
            for end in language.extensions {
                assert!(end.starts_with('.') && end.len() > 1, "{end}");
            }
            for name in language.extensions.iter().chain(language.names) {
                let before = seen.insert(*name, language.id);
                assert_eq!(before, None, "{name} is both {before:?} and {}", language.id);
            }
        }
    }

    #[test]
    fn a_script_says_what_it_is() {
        let cases = [
            ("#!/bin/sh\n", Some("shellscript")),
            ("#!/usr/bin/env -S python3.12 -u\n", Some("python")),
            ("#!/usr/bin/env LANG=C bash\necho", Some("shellscript")),
            ("#! /usr/bin/lua5.4", Some("lua")),
            ("#!/usr/bin/env", None),
            ("#!", None),
            ("# sh", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of_first_line(text), expected, "{text:?}");
        }
    }
}
