//! Languages that run without compilation.

use super::super::definition::{Adjust, Readiness};
use super::entry::{BEAM, Builtin, NODE, PYTHON, RUBY, Step, server};

const PYTHON_ROOTS: &[Step] = &[
    Step::Nearest(&[
        "pyrightconfig.json",
        "ty.toml",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
    ]),
    Step::Nearest(&["requirements.txt", "Pipfile"]),
];
const RUFF_ROOTS: &[Step] = &[
    Step::Nearest(&["ruff.toml", ".ruff.toml", "pyproject.toml"]),
    Step::Nearest(&["setup.py", "setup.cfg", "requirements.txt", "Pipfile"]),
];
const RUBY_ROOTS: &[Step] = &[Step::Nearest(&["Gemfile", ".solargraph.yml", "*.gemspec"])];
const PHP_ROOTS: &[Step] = &[Step::Nearest(&[
    "composer.json",
    ".phpactor.json",
    ".phpactor.yml",
])];

pub(super) const SERVERS: &[Builtin] = &[
    server(
        "basedpyright",
        &["python"],
        &[&["basedpyright-langserver", "--stdio"]],
        PYTHON_ROOTS,
        "pip install basedpyright",
    )
    .adjust(Adjust::PythonInterpreter)
    .variables(PYTHON),
    server(
        "pyright",
        &["python"],
        &[&["pyright-langserver", "--stdio"]],
        PYTHON_ROOTS,
        "npm install --global pyright",
    )
    .adjust(Adjust::PythonInterpreter)
    .variables(PYTHON),
    server(
        "ty",
        &["python"],
        &[&["ty", "server"]],
        PYTHON_ROOTS,
        "pip install ty",
    )
    .variables(PYTHON),
    server(
        "pylsp",
        &["python"],
        &[&["pylsp"]],
        PYTHON_ROOTS,
        "pip install python-lsp-server",
    )
    .variables(PYTHON),
    server(
        "jedi-language-server",
        &["python"],
        &[&["jedi-language-server"]],
        PYTHON_ROOTS,
        "pip install jedi-language-server",
    )
    .readiness(Readiness::Silent)
    .variables(PYTHON),
    server(
        "ruff",
        &["python"],
        &[&["ruff", "server"]],
        RUFF_ROOTS,
        "pip install ruff",
    )
    .supplement()
    .readiness(Readiness::Silent)
    .variables(PYTHON),
    server(
        "bash-language-server",
        &["shellscript"],
        &[&["bash-language-server", "start"]],
        &[],
        "npm install --global bash-language-server",
    )
    .readiness(Readiness::LogMessage("BackgroundAnalysis: Completed"))
    .variables(NODE),
    server(
        "fish-lsp",
        &["fish"],
        &[&["fish-lsp", "start"]],
        &[],
        "npm install --global fish-lsp",
    )
    .variables(NODE),
    server(
        "lua-language-server",
        &["lua"],
        &[&["lua-language-server"]],
        &[Step::Nearest(&[
            ".luarc.json",
            ".luarc.jsonc",
            ".luacheckrc",
            "stylua.toml",
            ".stylua.toml",
            "*.rockspec",
        ])],
        "install lua-language-server from its releases or your package manager",
    ),
    server(
        "ruby-lsp",
        &["ruby"],
        &[&["ruby-lsp"]],
        RUBY_ROOTS,
        "gem install ruby-lsp",
    )
    .variables(RUBY),
    server(
        "solargraph",
        &["ruby"],
        &[&["solargraph", "stdio"]],
        RUBY_ROOTS,
        "gem install solargraph",
    )
    .variables(RUBY),
    server(
        "intelephense",
        &["php", "blade"],
        &[&["intelephense", "--stdio"]],
        PHP_ROOTS,
        "npm install --global intelephense",
    )
    .variables(NODE),
    server(
        "phpactor",
        &["php", "blade"],
        &[&["phpactor", "language-server"]],
        PHP_ROOTS,
        "composer global require phpactor/phpactor",
    ),
    server(
        "elixir-ls",
        &["elixir", "eex", "phoenix-heex"],
        &[&["elixir-ls"], &["language_server.sh"]],
        &[Step::Outermost(&["mix.exs"])],
        "install elixir-ls from its releases",
    )
    .variables(BEAM),
    server(
        "erlang-ls",
        &["erlang"],
        &[&["elp", "server"], &["erlang_ls"]],
        &[Step::Nearest(&[
            "erlang_ls.config",
            "rebar.config",
            "rebar.lock",
            "erlang.mk",
        ])],
        "install elp or erlang_ls from its releases",
    )
    .variables(BEAM),
    server(
        "perlnavigator",
        &["perl"],
        &[&["perlnavigator", "--stdio"]],
        &[Step::Nearest(&["cpanfile", "Makefile.PL", "dist.ini"])],
        "npm install --global perlnavigator-server",
    )
    .variables(NODE),
    server(
        "r-languageserver",
        &["r"],
        &[&["R", "--no-echo", "-e", "languageserver::run()"]],
        &[Step::Nearest(&["DESCRIPTION", "*.Rproj"])],
        "R -e 'install.packages(\"languageserver\")'",
    ),
    server(
        "julia",
        &["julia"],
        &[&[
            "julia",
            "--startup-file=no",
            "--history-file=no",
            "-e",
            "using LanguageServer; runserver()",
        ]],
        &[Step::Nearest(&["Project.toml", "JuliaProject.toml"])],
        "julia -e 'using Pkg; Pkg.add(\"LanguageServer\")'",
    ),
    server(
        "powershell-editor-services",
        &["powershell"],
        &[&["powershell-editor-services", "-Stdio"]],
        &[Step::Nearest(&["PSScriptAnalyzerSettings.psd1"])],
        "install PowerShellEditorServices from its releases",
    ),
];
