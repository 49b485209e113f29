//! Languages that browsers run, and those that compile to them.

use super::super::definition::{Adjust, Applies, Readiness};
use super::entry::{Builtin, NODE, Step, server};

const SCRIPTS: &[&str] = &["typescript", "typescriptreact", "javascript", "javascriptreact"];
const SCRIPTS_AND_FRAMEWORKS: &[&str] = &[
    "typescript",
    "typescriptreact",
    "javascript",
    "javascriptreact",
    "vue",
    "svelte",
    "astro",
];
const STYLED: &[&str] = &[
    "html",
    "css",
    "scss",
    "less",
    "javascriptreact",
    "typescriptreact",
    "vue",
    "svelte",
    "astro",
    "phoenix-heex",
    "blade",
];
const SCRIPT_ROOTS: &[Step] = &[
    Step::Nearest(&["tsconfig.json", "jsconfig.json"]),
    Step::Nearest(&["package.json"]),
];
const PACKAGE_ROOTS: &[Step] = &[Step::Nearest(&["package.json"])];

pub(super) const SERVERS: &[Builtin] = &[
    server(
        "deno",
        SCRIPTS,
        &[&["deno", "lsp"]],
        &[Step::Nearest(&["deno.json", "deno.jsonc", "deno.lock"])],
        "install deno, which brings its server",
    )
    .applies(Applies::WithMarker)
    .options(r#"{"enable": true, "lint": true}"#)
    .settings(r#"{"deno": {"enable": true, "lint": true}}"#)
    .variables(NODE),
    server(
        "typescript-language-server",
        SCRIPTS,
        &[&["typescript-language-server", "--stdio"]],
        SCRIPT_ROOTS,
        "npm install --global typescript-language-server typescript@5",
    )
    // By default, a second process answers from one file alone until the project is loaded, and reports that
    // a symbol is defined where it is imported; and a third process installs packages of types. The server
    // would also watch for files changed by others by itself, and we couldn't tell when it has seen them.
    .options(r#"{"disableAutomaticTypingAcquisition": true, "tsserver": {"useSyntaxServer": "never", "useClientFileWatcher": true}}"#)
    .adjust(Adjust::TypeScript)
    .variables(NODE),
    server("vtsls", SCRIPTS, &[&["vtsls", "--stdio"]], SCRIPT_ROOTS, "npm install --global @vtsls/language-server")
        .variables(NODE),
    server("tsgo", SCRIPTS, &[&["tsgo", "--lsp", "--stdio"]], SCRIPT_ROOTS, "npm install --global @typescript/native-preview")
        .variables(NODE),
    server(
        "vue-language-server",
        &["vue"],
        &[&["vue-language-server", "--stdio"]],
        PACKAGE_ROOTS,
        "npm install --global @vue/language-server",
    )
    .options(r#"{"vue": {"hybridMode": false}}"#)
    .adjust(Adjust::TypeScriptLibrary)
    .variables(NODE),
    server(
        "svelte-language-server",
        &["svelte"],
        &[&["svelteserver", "--stdio"]],
        &[Step::Nearest(&["svelte.config.js", "svelte.config.mjs"]), Step::Nearest(&["package.json"])],
        "npm install --global svelte-language-server",
    )
    .adjust(Adjust::TrustFlag)
    .variables(NODE),
    server(
        "astro-language-server",
        &["astro"],
        &[&["astro-ls", "--stdio"]],
        &[Step::Nearest(&["astro.config.mjs", "astro.config.ts", "astro.config.js"]), Step::Nearest(&["package.json"])],
        "npm install --global @astrojs/language-server",
    )
    .adjust(Adjust::TypeScriptLibrary)
    .variables(NODE),
    server(
        "vscode-html-language-server",
        &["html"],
        &[&["vscode-html-language-server", "--stdio"]],
        PACKAGE_ROOTS,
        "npm install --global vscode-langservers-extracted",
    )
    .readiness(Readiness::Silent)
    .options(r#"{"provideFormatter": true, "embeddedLanguages": {"css": true, "javascript": true}}"#)
    .variables(NODE),
    server(
        "vscode-css-language-server",
        &["css", "scss", "less"],
        &[&["vscode-css-language-server", "--stdio"]],
        PACKAGE_ROOTS,
        "npm install --global vscode-langservers-extracted",
    )
    .readiness(Readiness::Silent)
    .options(r#"{"provideFormatter": true}"#)
    .settings(r#"{"css": {"validate": true}, "scss": {"validate": true}, "less": {"validate": true}}"#)
    .variables(NODE),
    server(
        "some-sass-language-server",
        &["sass"],
        &[&["some-sass-language-server", "--stdio"]],
        PACKAGE_ROOTS,
        "npm install --global some-sass-language-server",
    )
    .variables(NODE),
    server(
        "graphql-language-service",
        &["graphql"],
        &[&["graphql-lsp", "server", "--method", "stream"]],
        &[Step::Nearest(&[".graphqlrc", ".graphqlrc.yml", ".graphqlrc.json", "graphql.config.js", "graphql.config.ts"])],
        "npm install --global graphql-language-service-cli graphql",
    )
    .variables(NODE),
    server(
        "prisma-language-server",
        &["prisma"],
        &[&["prisma-language-server", "--stdio"]],
        PACKAGE_ROOTS,
        "npm install --global @prisma/language-server",
    )
    .variables(NODE),
    server("elm-language-server", &["elm"], &[&["elm-language-server"]], &[Step::Nearest(&["elm.json"])], "npm install --global @elm-tooling/elm-language-server")
        .variables(NODE),
    server(
        "eslint",
        SCRIPTS_AND_FRAMEWORKS,
        &[&["vscode-eslint-language-server", "--stdio"]],
        &[Step::Nearest(&[
            "eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", "eslint.config.mts",
            ".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yaml", ".eslintrc.yml",
        ])],
        "npm install --global vscode-langservers-extracted",
    )
    .supplement()
    .applies(Applies::WithMarkerAndTrust)
    .readiness(Readiness::Silent)
    .settings(
        r#"{"validate": "on", "run": "onType", "quiet": false, "onIgnoredFiles": "off", "options": {}, "rulesCustomizations": [],
            "problems": {"shortenToSingleLine": false}, "nodePath": null, "workingDirectory": {"mode": "location"},
            "codeAction": {"disableRuleComment": {"enable": true, "location": "separateLine"}, "showDocumentation": {"enable": false}},
            "codeActionOnSave": {"mode": "all"}, "experimental": {}, "format": false}"#,
    )
    .variables(NODE),
    server(
        "biome",
        &["typescript", "typescriptreact", "javascript", "javascriptreact", "json", "jsonc", "css", "graphql"],
        &[&["biome", "lsp-proxy"]],
        &[Step::Nearest(&["biome.json", "biome.jsonc"])],
        "npm install --global @biomejs/biome",
    )
    .supplement()
    .applies(Applies::WithMarker)
    .readiness(Readiness::Silent)
    .variables(NODE),
    server(
        "tailwindcss-language-server",
        STYLED,
        &[&["tailwindcss-language-server", "--stdio"]],
        &[Step::Nearest(&["tailwind.config.js", "tailwind.config.cjs", "tailwind.config.mjs", "tailwind.config.ts"])],
        "npm install --global @tailwindcss/language-server",
    )
    .supplement()
    .applies(Applies::WithMarkerAndTrust)
    .variables(NODE),
];
