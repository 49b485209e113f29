//! The arguments of `tidelock home`.

use clap::Subcommand;

/// Commands that settle the identity of a home.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum HomeCommand {
    /// Give this home a new identity, if it is a copy
    #[command(after_help = "\
Use this when `tidelock up` reports `home_copied` and the original home is still in use. This home
then starts fresh on the shared log; the original keeps its sessions, jobs and plans. No daemon
may be running in this home.

Examples:
  tidelock home renew
  TIDELOCK_HOME=/srv/copy tidelock home renew --json")]
    Renew,
    /// Keep the identity, if this home was moved here permanently
    #[command(after_help = "\
Use this when `tidelock up` reports `home_copied` and the original home is gone, for example
because its machine is. The command is refused while a daemon still runs in the original home.
Afterwards, the original no longer starts.

Examples:
  tidelock home adopt
  TIDELOCK_DATABASE_URL=postgres://me@db/work tidelock home adopt")]
    Adopt,
}
