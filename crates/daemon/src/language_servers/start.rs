//! How the service of language servers is put together for a daemon.

use std::path::Path;
use std::sync::Arc;

use kernel::Clock;
use lsp::{
    ConfigHash, DocumentSettings, Environment, Languages, LanguagesOptions, LifecycleSettings, QueryLimits,
    Registry, RegistrySettings,
};
use process::{Processes, Tasks};

use super::LanguageServers;
use crate::durable::TrustedConfigs;
use crate::home::Home;
use crate::options::LanguageOptions;

/// A service without servers.
pub(crate) fn start(
    home: &Home,
    options: LanguageOptions,
    (processes, trusted): (&Processes, &TrustedConfigs),
    scratch: &Path,
    (tasks, clock): (&Tasks, &Arc<dyn Clock>),
) -> LanguageServers {
    let settings = RegistrySettings {
        environment: Environment::new(options.environment),
        user_configuration: options.configuration,
        data_directory: home.language_server_data(),
    };
    let known = trusted.clone();
    let trust = move |hash: &ConfigHash| known.contains(&hash.to_string());
    let languages = Languages::new(LanguagesOptions {
        registry: Registry::new(settings, Arc::new(trust)),
        processes: processes.clone(),
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
        scratch: scratch.to_owned(),
        lifecycle: LifecycleSettings::default(),
        documents: DocumentSettings::default(),
        limits: QueryLimits::default(),
    });
    LanguageServers {
        languages,
        trusted: trusted.clone(),
        clock: Arc::clone(clock),
    }
}
