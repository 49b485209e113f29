//! Built-in, then the user's, then the repository's: the later one wins, key by key.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::super::builtin;
use super::super::definition::{
    Adjust, Applies, Enablement, Origin, PORT_PLACEHOLDER, Readiness, Role, ServerDefinition, ServerLimits,
    Transport,
};
use super::super::roots::RootRule;
use super::error::{ConfigError, closest};
use super::patch::ServerPatch;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) servers: BTreeMap<String, ServerPatch>,
    /// Names of primary servers by language, the preferred one first.
    pub(crate) prefer: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) origin: Origin,
    pub(crate) configuration: Configuration,
}

/// All known servers, and what couldn't be used.
#[derive(Debug)]
pub(crate) struct Merged {
    /// The built-in ones in their order, then the others.
    pub(crate) definitions: Vec<ServerDefinition>,
    pub(crate) prefer: BTreeMap<String, Vec<String>>,
    pub(crate) errors: Vec<ConfigError>,
}

impl Merged {
    /// Applies the layers to the built-in definitions, in order.
    pub(crate) fn new(layers: Vec<Layer>) -> Self {
        let mut merged = Self {
            definitions: builtin::all().map(builtin::Builtin::definition).collect(),
            prefer: BTreeMap::new(),
            errors: Vec::new(),
        };
        for layer in layers {
            merged.prefer.extend(layer.configuration.prefer);
            for (name, patch) in layer.configuration.servers {
                merged.lay_over(&name, patch, &layer.origin);
            }
        }
        merged
    }

    /// An invalid entry is ignored as a whole, so that the earlier definition still works.
    fn lay_over(&mut self, name: &str, patch: ServerPatch, origin: &Origin) {
        let known = self.definitions.iter().position(|known| *known.name == *name);
        let mut definition = match known {
            Some(at) => self.definitions[at].clone(),
            None => self.template(name, &patch),
        };
        patch.apply(&mut definition, origin);
        if let Err(message) = check(&definition) {
            let names = self.definitions.iter().map(|known| &*known.name);
            self.errors.push(ConfigError::Entry {
                path: origin.path().unwrap_or_else(|| Path::new("")).to_path_buf(),
                key: name.to_owned(),
                message,
                suggestion: known.is_none().then(|| closest(name, names)).flatten(),
            });
            return;
        }
        match known {
            Some(at) => self.definitions[at] = definition,
            None => self.definitions.push(definition),
        }
    }

    /// A server with another name that runs a known program starts from that program's definition: its roots,
    /// its variables, how it reports that it is ready.
    fn template(&self, name: &str, patch: &ServerPatch) -> ServerDefinition {
        let program = patch.command.as_ref().map(|command| {
            let program = command.program.rsplit('/').next();
            program.unwrap_or_default()
        });
        let alike = self.definitions.iter().find(|known| {
            let mut commands = known.commands.iter();
            known.origin == Origin::BuiltIn
                && commands.any(|command| Some(command.program.as_str()) == program)
        });
        let install = format!(
            "`{}` is named by the configuration; install it, or correct its command",
            program.unwrap_or(name)
        );
        match alike {
            Some(alike) => ServerDefinition {
                name: Arc::from(name),
                ..alike.clone()
            },
            None => ServerDefinition {
                name: Arc::from(name),
                languages: Vec::new(),
                commands: Vec::new(),
                roots: RootRule::default(),
                role: Role::Primary,
                applies: Applies::Always,
                readiness: Readiness::WorkDoneProgress,
                transport: Transport::Stdio,
                initialization_options: None,
                settings: None,
                passed_variables: builtin::common_variables(),
                environment: BTreeMap::new(),
                limits: ServerLimits::default(),
                enablement: Enablement::Enabled,
                install,
                origin: Origin::BuiltIn,
                command_origin: Origin::BuiltIn,
                adjust: Adjust::Nothing,
            },
        }
    }
}

fn check(definition: &ServerDefinition) -> Result<(), String> {
    if definition.enablement == Enablement::Disabled {
        return Ok(());
    }
    if definition.languages.is_empty() {
        return Err("it serves no files; give `languages` or `extensions`".to_owned());
    }
    let files = definition.languages.iter().flat_map(|language| {
        let files = language.extensions.iter().chain(&language.names);
        files.map(move |file| (&language.id, file))
    });
    for (language, file) in files {
        if file.trim_start_matches('.').is_empty() || file.contains('/') {
            return Err(format!(
                "`{file}` for {language} is neither an extension nor a file name"
            ));
        }
    }
    match definition.transport {
        Transport::Tcp(address) if address.port() == 0 => {
            return Err("`tcp` wants the port that the server listens on".to_owned());
        }
        // The connection carries source code, unencrypted.
        Transport::Tcp(address) | Transport::TcpSpawned(address) if !address.ip().is_loopback() => {
            return Err(format!(
                "{address} is not on this machine; use a loopback address"
            ));
        }
        Transport::TcpSpawned(address) if address.port() == 0 => {
            let mut arguments = definition.commands.iter().flat_map(|command| &command.arguments);
            if !arguments.any(|argument| argument.contains(PORT_PLACEHOLDER)) {
                return Err(format!(
                    "with port 0, one argument of the command must hold {PORT_PLACEHOLDER}"
                ));
            }
        }
        Transport::Tcp(_) => return Ok(()),
        Transport::Stdio | Transport::TcpSpawned(_) => {}
    }
    match definition.commands.first() {
        None => Err("it has no `command`, and is none that we know".to_owned()),
        Some(command) if command.program.contains("${") => Err(format!(
            "`{}`: variables in a command are not replaced",
            command.program
        )),
        Some(_) => Ok(()),
    }
}
