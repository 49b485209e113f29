//! Configuration, documents and everything else that isn't executed.

use super::super::definition::{Applies, Readiness};
use super::entry::{Builtin, CARGO, JAVA, NIX, NODE, Step, server};

const REPOSITORY: &[Step] = &[];

pub(super) const SERVERS: &[Builtin] = &[
    server(
        "yaml-language-server",
        &["yaml"],
        &[&["yaml-language-server", "--stdio"]],
        REPOSITORY,
        "npm install --global yaml-language-server",
    )
    .readiness(Readiness::Silent)
    // Otherwise the list of schemas would be fetched from the network at every start.
    .settings(
        r#"{"yaml": {"schemaStore": {"enable": false}, "kubernetesCRDStore": {"enable": false}, "validate": true, "hover": true,
            "completion": true, "format": {"enable": true}}, "redhat": {"telemetry": {"enabled": false}}}"#,
    )
    .variables(NODE),
    server(
        "vscode-json-language-server",
        &["json", "jsonc"],
        &[&["vscode-json-language-server", "--stdio"]],
        REPOSITORY,
        "npm install --global vscode-langservers-extracted",
    )
    .readiness(Readiness::Silent)
    .options(r#"{"provideFormatter": true, "handledSchemaProtocols": ["file"]}"#)
    .settings(r#"{"json": {"validate": {"enable": true}, "format": {"enable": true}, "schemaDownload": {"enable": false}}}"#)
    .variables(NODE),
    server("taplo", &["toml"], &[&["taplo", "lsp", "stdio"]], REPOSITORY, "cargo install --features lsp --locked taplo-cli")
        .readiness(Readiness::Silent)
        .settings(r#"{"evenBetterToml": {"schema": {"enabled": false}}}"#)
        .variables(CARGO),
    server("marksman", &["markdown"], &[&["marksman", "server"]], &[Step::Nearest(&[".marksman.toml"])], "install marksman from its releases or your package manager")
        .readiness(Readiness::Silent),
    server(
        "docker-langserver",
        &["dockerfile"],
        &[&["docker-langserver", "--stdio"]],
        REPOSITORY,
        "npm install --global dockerfile-language-server-nodejs",
    )
    .readiness(Readiness::Silent)
    .variables(NODE),
    server(
        "terraform-ls",
        &["terraform", "terraform-vars"],
        &[&["terraform-ls", "serve"]],
        &[Step::Nearest(&[".terraform", ".terraform.lock.hcl", "terraform.tf"])],
        "install terraform-ls from its releases or your package manager",
    ),
    server("nixd", &["nix"], &[&["nixd"], &["nil"]], &[Step::Nearest(&["flake.nix", "shell.nix"])], "nix profile install nixpkgs#nixd").variables(NIX),
    server(
        "cmake-language-server",
        &["cmake"],
        &[&["neocmakelsp", "stdio"], &["cmake-language-server"]],
        &[Step::Outermost(&["CMakePresets.json", "CMakeLists.txt"])],
        "pip install cmake-language-server",
    )
    .options(r#"{"buildDirectory": "build"}"#),
    server(
        "sqls",
        &["sql"],
        &[&["sqls"], &["sql-language-server", "up", "--method", "stdio"]],
        &[Step::Nearest(&[".sqllsrc.json"])],
        "go install github.com/sqls-server/sqls@latest",
    )
    .readiness(Readiness::Silent),
    server("buf", &["proto"], &[&["buf", "lsp", "serve"], &["protols"]], &[Step::Outermost(&["buf.work.yaml", "buf.yaml"])], "install buf from its releases or your package manager"),
    server("texlab", &["latex", "bibtex"], &[&["texlab"]], &[Step::Nearest(&[".texlabroot", "texlabroot", "latexmkrc", ".latexmkrc"])], "cargo install --locked texlab"),
    server("tinymist", &["typst"], &[&["tinymist", "lsp"]], &[Step::Nearest(&["typst.toml"])], "cargo install --locked tinymist-cli"),
    server("lemminx", &["xml"], &[&["lemminx"]], REPOSITORY, "install lemminx from its releases")
        .readiness(Readiness::Silent)
        .variables(JAVA),
    server("typos-lsp", &["markdown"], &[&["typos-lsp"]], &[Step::Nearest(&["typos.toml", "_typos.toml", ".typos.toml"])], "cargo install --locked typos-lsp")
        .supplement()
        .applies(Applies::WithMarker)
        .readiness(Readiness::Silent),
];
