//! Languages of the large virtual machines.

use super::entry::{Builtin, DOTNET, JAVA, Step, server};

const MAVEN_OR_GRADLE: &[Step] = &[
    Step::Outermost(&["settings.gradle", "settings.gradle.kts", "gradlew", "mvnw"]),
    Step::Outermost(&["pom.xml", "build.gradle", "build.gradle.kts"]),
    Step::Nearest(&["build.xml", ".project"]),
];
const DOTNET_ROOTS: &[Step] = &[
    Step::Nearest(&["*.sln", "*.slnx"]),
    Step::Nearest(&["*.csproj", "*.fsproj"]),
    Step::Nearest(&["omnisharp.json", "global.json"]),
];

pub(super) const SERVERS: &[Builtin] = &[
    server(
        "jdtls",
        &["java"],
        // Two instances on one data directory destroy its index, so each root has its own.
        &[&["jdtls", "-data", "{data}"]],
        MAVEN_OR_GRADLE,
        "install jdtls from its releases or your package manager (it wants Java 21)",
    )
    .variables(JAVA),
    server(
        "kotlin-lsp",
        &["kotlin"],
        &[&["kotlin-lsp", "--stdio"], &["kotlin-language-server"]],
        MAVEN_OR_GRADLE,
        "install kotlin-lsp from its releases or your package manager",
    )
    .variables(JAVA),
    server(
        "metals",
        &["scala"],
        &[&["metals"]],
        &[
            Step::Outermost(&["build.sbt", "build.sc", "build.mill"]),
            Step::Outermost(&["build.gradle", "pom.xml", ".bsp"]),
        ],
        "coursier install metals",
    )
    .options(r#"{"statusBarProvider": "off", "isHttpEnabled": false, "compilerOptions": {}}"#)
    .variables(JAVA),
    server(
        "clojure-lsp",
        &["clojure"],
        &[&["clojure-lsp"]],
        &[Step::Nearest(&[
            "project.clj",
            "deps.edn",
            "build.boot",
            "shadow-cljs.edn",
            "bb.edn",
        ])],
        "install clojure-lsp from its releases or your package manager",
    )
    .variables(JAVA),
    server(
        "groovy-language-server",
        &["groovy"],
        &[&["groovy-language-server"]],
        MAVEN_OR_GRADLE,
        "install groovy-language-server from its releases",
    )
    .variables(JAVA),
    server(
        "csharp-ls",
        &["csharp"],
        &[&["csharp-ls"]],
        DOTNET_ROOTS,
        "dotnet tool install --global csharp-ls",
    )
    .variables(DOTNET),
    server(
        "omnisharp",
        &["csharp"],
        &[
            &["OmniSharp", "--languageserver"],
            &["omnisharp", "--languageserver"],
        ],
        DOTNET_ROOTS,
        "install OmniSharp from its releases",
    )
    .variables(DOTNET),
    server(
        "fsautocomplete",
        &["fsharp"],
        &[&["fsautocomplete", "--adaptive-lsp-server-enabled"]],
        DOTNET_ROOTS,
        "dotnet tool install --global fsautocomplete",
    )
    .options(r#"{"AutomaticWorkspaceInit": true}"#)
    .variables(DOTNET),
    server(
        "dart",
        &["dart"],
        &[&["dart", "language-server", "--protocol=lsp"]],
        &[Step::Nearest(&["pubspec.yaml"])],
        "install the Dart or Flutter SDK, which brings its server",
    ),
];
