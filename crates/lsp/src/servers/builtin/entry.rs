//! The content of an entry, and how it becomes a definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::definition::{
    Adjust, Applies, CommandLine, Enablement, LanguageFiles, Origin, Readiness, Role, ServerDefinition,
    ServerLimits, Transport,
};
use super::super::languages;
use super::super::roots::{RootRule, RootStep};

/// Passed on to every server: the user and their home, the language of messages, and the network settings.
const COMMON_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables by the tools that read them.
pub(super) const CARGO: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTUP_AUTO_INSTALL",
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "CC",
    "CXX",
    "PKG_CONFIG_PATH",
    "LIBCLANG_PATH",
];
pub(super) const COMPILER: &[&str] = &[
    "CC",
    "CXX",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "SDKROOT",
];
pub(super) const GO: &[&str] = &[
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOFLAGS",
    "GOPROXY",
    "GOPRIVATE",
    "GONOSUMDB",
    "GOSUMDB",
    "GOMODCACHE",
    "GOCACHE",
    "GOTOOLCHAIN",
    "GOWORK",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "CC",
];
pub(super) const PYTHON: &[&str] = &[
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "UV_CACHE_DIR",
];
pub(super) const NODE: &[&str] = &[
    "NODE_PATH",
    "NODE_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "VOLTA_HOME",
    "FNM_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
];
pub(super) const JAVA: &[&str] = &[
    "JAVA_HOME",
    "JDK_HOME",
    "JAVA_TOOL_OPTIONS",
    "MAVEN_OPTS",
    "M2_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "SDKMAN_DIR",
    "COURSIER_CACHE",
];
pub(super) const DOTNET: &[&str] = &[
    "DOTNET_ROOT",
    "DOTNET_CLI_HOME",
    "NUGET_PACKAGES",
    "MSBUILD_EXE_PATH",
];
pub(super) const RUBY: &[&str] = &[
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_GEMFILE",
    "BUNDLE_PATH",
    "RBENV_ROOT",
    "RBENV_VERSION",
];
pub(super) const BEAM: &[&str] = &[
    "MIX_HOME",
    "HEX_HOME",
    "ERL_LIBS",
    "ERL_AFLAGS",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
];
pub(super) const OCAML: &[&str] = &[
    "OPAMROOT",
    "OPAMSWITCH",
    "OPAM_SWITCH_PREFIX",
    "CAML_LD_LIBRARY_PATH",
    "OCAML_TOPLEVEL_PATH",
];
pub(super) const HASKELL: &[&str] = &["GHCUP_INSTALL_BASE_PREFIX", "CABAL_DIR", "STACK_ROOT"];
pub(super) const NIX: &[&str] = &["NIX_PATH", "NIX_PROFILES", "NIX_SSL_CERT_FILE"];

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Nearest(&'static [&'static str]),
    Outermost(&'static [&'static str]),
    Cargo,
}

/// One entry. The methods below set what most servers don't need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) languages: &'static [&'static str],
    pub(crate) commands: &'static [&'static [&'static str]],
    pub(crate) install: &'static str,
    pub(crate) role: Role,
    pub(crate) initialization_options: Option<&'static str>,
    pub(crate) settings: Option<&'static str>,
    roots: &'static [Step],
    applies: Applies,
    readiness: Readiness,
    variables: &'static [&'static str],
    adjust: Adjust,
}

/// A primary server that uses its standard streams and reports its work as progress.
pub(super) const fn server(
    name: &'static str,
    languages: &'static [&'static str],
    commands: &'static [&'static [&'static str]],
    roots: &'static [Step],
    install: &'static str,
) -> Builtin {
    Builtin {
        name,
        languages,
        commands,
        install,
        role: Role::Primary,
        initialization_options: None,
        settings: None,
        roots,
        applies: Applies::Always,
        readiness: Readiness::WorkDoneProgress,
        variables: &[],
        adjust: Adjust::Nothing,
    }
}

impl Builtin {
    pub(super) const fn supplement(mut self) -> Self {
        self.role = Role::Supplement;
        self
    }

    pub(super) const fn applies(mut self, applies: Applies) -> Self {
        self.applies = applies;
        self
    }

    pub(super) const fn readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = readiness;
        self
    }

    pub(super) const fn variables(mut self, variables: &'static [&'static str]) -> Self {
        self.variables = variables;
        self
    }

    pub(super) const fn options(mut self, json: &'static str) -> Self {
        self.initialization_options = Some(json);
        self
    }

    pub(super) const fn settings(mut self, json: &'static str) -> Self {
        self.settings = Some(json);
        self
    }

    pub(super) const fn adjust(mut self, adjust: Adjust) -> Self {
        self.adjust = adjust;
        self
    }

    pub(crate) fn definition(&self) -> ServerDefinition {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let commands = self.commands.iter().filter_map(|words| {
            let (program, arguments) = words.split_first()?;
            Some(CommandLine {
                program: (*program).to_owned(),
                arguments: owned(arguments),
            })
        });
        let languages = self.languages.iter().filter_map(|id| {
            let language = languages::find(id)?;
            Some(LanguageFiles {
                id: Arc::from(language.id),
                extensions: owned(language.extensions),
                names: owned(language.names),
            })
        });
        let steps = self.roots.iter().map(|step| match step {
            Step::Nearest(markers) => RootStep::Nearest(owned(markers)),
            Step::Outermost(markers) => RootStep::Outermost(owned(markers)),
            Step::Cargo => RootStep::CargoWorkspace,
        });
        // A test parses every entry, so that no entry is silently dropped here.
        let json = |text: Option<&str>| text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        ServerDefinition {
            name: Arc::from(self.name),
            languages: languages.collect(),
            commands: commands.collect(),
            roots: RootRule {
                steps: steps.collect(),
            },
            role: self.role,
            applies: self.applies,
            readiness: self.readiness,
            transport: Transport::Stdio,
            initialization_options: json(self.initialization_options),
            settings: json(self.settings),
            passed_variables: owned(COMMON_VARIABLES)
                .into_iter()
                .chain(owned(self.variables))
                .collect(),
            environment: BTreeMap::new(),
            limits: ServerLimits::default(),
            enablement: Enablement::Enabled,
            install: self.install.to_owned(),
            origin: Origin::BuiltIn,
            command_origin: Origin::BuiltIn,
            adjust: self.adjust,
        }
    }
}

/// The variables that every server gets, for a server that exists only in a configuration.
pub(crate) fn common_variables() -> Vec<String> {
    COMMON_VARIABLES.iter().map(|name| (*name).to_owned()).collect()
}
