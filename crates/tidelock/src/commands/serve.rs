//! `tidelock serve`: the daemon itself, in the foreground or started by `tidelock up`.

use std::io;
use std::time::Duration;

use daemon::{Daemon, Listen, Options, StartError, StartProgress, WhenTaken};
use kernel::SystemClock;
use serde_json::json;

use crate::background::{self, Announcement};
use crate::cli::ServeArguments;
use crate::context::{Context, VERSION};
use crate::error::{Exit, Failure, chain};
use crate::log_file::LogFile;
use crate::logging;
use crate::output::{self, Cell, Format, Report, Tone, fields};
use crate::settings::{self, Surroundings};
use crate::start::START_LOCK_TIMEOUT;
use crate::start_lock::StartLock;

/// The daemon mostly waits, and slow work (files, large answers, the log) runs on other threads. A second worker
/// thread would make nearly every request change cores, which costs more than it gains.
const WORKER_THREADS: usize = 1;

/// How long threads may take to end after everything else has ended.
const LAST_GRACE: Duration = Duration::from_secs(1);

pub(super) fn run(arguments: ServeArguments, context: &Context) -> Result<Report, Failure> {
    if arguments.background {
        let served = background::detach()
            .map_err(|error| failed("the daemon can't detach from the terminal", &error))
            .and_then(|()| serve(arguments, context, Front::Background));
        if let Err(failure) = &served {
            // If the parent is gone, the log still gets what every failed command writes to standard error.
            drop(Announcement::of_failure(failure).send());
        }
        return served;
    }
    // Clients that look for a daemon while this one starts wait for it, instead of starting another.
    context.home.prepare()?;
    let lock = StartLock::take(&context.home, START_LOCK_TIMEOUT)?;
    serve(arguments, context, Front::Terminal { lock })
}

#[derive(Debug)]
enum Front {
    Terminal { lock: StartLock },
    Background,
}

fn serve(arguments: ServeArguments, context: &Context, front: Front) -> Result<Report, Failure> {
    logging::start(match &front {
        Front::Background => Some(LogFile::new(context.home.log_file())),
        Front::Terminal { .. } => None,
    })?;
    let mut options = options(arguments, context);
    if let Front::Background = front {
        options.progress = StartProgress::to(|doing| {
            let doing = doing.to_owned();
            Announcement::Starting { doing }.tell();
        });
    }
    daemon::keep_memory_small();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_name("tidelock")
        .enable_all()
        .build()
        .map_err(|error| failed("the daemon's threads cannot be started", &error))?;
    let served = runtime.block_on(async {
        let daemon = Daemon::start(options, SystemClock::shared()).await?;
        announce(&daemon, context, front)?;
        daemon.wait().await;
        Ok(Report::already_told())
    });
    // A thread that reads a huge file must not keep the process alive. The next start cleans up after it.
    runtime.shutdown_timeout(LAST_GRACE);
    served
}

pub(super) fn options(arguments: ServeArguments, context: &Context) -> Options {
    let mut options = Options::new(context.home.clone());
    options.languages = context.languages();
    options.configuration = context.configuration();
    if let Some(address) = arguments.listen {
        // If the user names an address, use that one and no other.
        options.listen = Listen {
            address,
            when_taken: WhenTaken::Fail,
        };
    }
    if let Some(grace_ms) = arguments.shutdown_grace_ms {
        options.shutdown_grace = Duration::from_millis(grace_ms);
    }
    options.allowed_hosts = arguments.allowed_hosts;
    options.token_file = arguments.token_file;
    options.database = context.database.clone();
    let arguments: Vec<_> = std::env::args_os().collect();
    options.settings = settings::of(
        &options,
        &Surroundings {
            arguments: &arguments,
            variable: &|name| std::env::var_os(name),
        },
    );
    options
}

/// Announces that the daemon serves, and lets the next waiting client look for it.
fn announce(daemon: &Daemon, context: &Context, front: Front) -> Result<(), Failure> {
    let (pid, boot_id, address) = (
        std::process::id(),
        daemon.boot_id().to_string(),
        daemon.address().to_string(),
    );
    match front {
        Front::Background => Announcement::Serving {
            pid,
            boot_id,
            address,
        }
        .send()
        .map_err(|error| failed("the daemon can't detach from its parent process", &error)),
        Front::Terminal { lock } => {
            drop(lock);
            let socket = context.home.socket().display().to_string();
            let said = match context.format {
                Format::Json => output::json_line(&json!({
                    "id": boot_id, "state": "ready", "version": VERSION, "pid": pid,
                    "address": address, "socket": socket,
                })),
                Format::Human => {
                    let mut text = fields(
                        context.palette,
                        vec![
                            ("daemon", Cell::toned("ready", Tone::Good)),
                            ("version", Cell::new(VERSION)),
                            ("pid", Cell::new(pid.to_string())),
                            ("address", Cell::new(format!("http://{address}"))),
                            ("socket", Cell::new(socket)),
                        ],
                    );
                    text.push_str("`tidelock up` prints a link to the page. Ctrl-C stops the daemon.\n");
                    text
                }
            };
            // The daemon keeps serving if its standard output is closed.
            drop(output::write(io::stdout(), &said));
            Ok(())
        }
    }
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Unreachable, "start_failed", format!("{what}: {error}"))
        .advise("see `tidelock doctor`")
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        let code = match error {
            StartError::Home(error) => return error.into(),
            StartError::Ownership(error) => return error.into(),
            StartError::Log(ref error) => error.code(),
            StartError::Bind(_) => "address_unusable",
            StartError::Token(_) => "token_unusable",
            StartError::Configuration(_) => "configuration_unusable",
            StartError::Processes(_)
            | StartError::Jobs(_)
            | StartError::Plans(_)
            | StartError::Sessions(_)
            | StartError::Scratch(_)
            | StartError::Breakers(_)
            | StartError::Signals(_) => "start_failed",
        };
        Failure::new(Exit::Unreachable, code, chain(&error)).advise(error.advice())
    }
}
