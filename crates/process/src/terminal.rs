//! A terminal for a command to write to.
//!
//! It isn't a controlling terminal: the command is in a session without one, and is given the open end. So
//! closing our end sends no hangup. It is raw, so that bytes come out as they went in.

use std::io;
use std::os::fd::OwnedFd;

use protocol::JobTerminal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::outlet::Outlet;

/// Opens a terminal: our end, and the command's. Both are close-on-exec.
pub(crate) fn open(size: JobTerminal) -> io::Result<(Outlet, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    let mut modes = tcgetattr(&slave)?;
    modes.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((Outlet::terminal(master)?, slave))
}
