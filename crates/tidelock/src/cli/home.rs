//! The arguments of `tidelock home`.

use clap::Subcommand;

/// What can be done about the identity of a home.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum HomeCommand {
    /// Give this home an identity of its own, if it is a copy
    #[command(after_help = "\
Use it when `tidelock up` says `home_copied` and the original home is still in use. This home then starts afresh on the
shared log: sessions, jobs and plans of the original stay with the original. No daemon may run in this home.

Examples:
  tidelock home renew
  TIDELOCK_HOME=/srv/copy tidelock home renew --json")]
    Renew,
    /// Keep the identity, if this home was moved here for good
    #[command(after_help = "\
Use it when `tidelock up` says `home_copied` and the original home is gone, for example with its machine. It is refused
while a daemon still runs in the original. Afterwards the original is the one that no longer starts.

Examples:
  tidelock home adopt
  TIDELOCK_DATABASE_URL=postgres://me@db/work tidelock home adopt")]
    Adopt,
}
