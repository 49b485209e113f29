//! Resets what a process inherits implicitly and a command shouldn't get: ignored signals, and descriptors that
//! somebody forgot to close. Also sets a time limit, which isn't inherited.

/// The highest signal number on Linux.
const LAST_SIGNAL: i32 = 64;
/// The first descriptor after the standard ones.
const FIRST_INHERITED: u32 = 3;

/// Resets signals that an ancestor chose to ignore, such as SIGHUP under `nohup`. SIGPIPE stays as it is here,
/// because `std` gives the command its default.
pub(crate) fn reset_signals() {
    for signal in (1..=LAST_SIGNAL).filter(|&signal| signal != libc::SIGPIPE) {
        #[expect(
            unsafe_code,
            reason = "no safe way to set a disposition; the default one runs no code of ours, and a number that \
                      cannot be set (SIGKILL, SIGSTOP, those of the C library) is refused without effect"
        )]
        // SAFETY: `signal` with SIG_DFL touches no memory of ours, and this process has one thread.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Closes everything but the standard streams. Call it before anything is opened.
pub(crate) fn close_inherited() {
    #[expect(
        unsafe_code,
        reason = "nobody owns descriptors that were inherited, so no safe type can close them"
    )]
    // SAFETY: this process has just started and has opened nothing itself, so no value owns one of them. A kernel
    // without this call refuses it, and then they stay open, as they would without it.
    unsafe {
        libc::close_range(FIRST_INHERITED, u32::MAX, 0);
    }
}

/// Lets the kernel end this process after some time, whatever it waits for.
pub(crate) fn end_after(seconds: u32) {
    #[expect(unsafe_code, reason = "no safe way to set an alarm; it runs no code of ours")]
    // SAFETY: the call touches no memory, and its signal has its default action, which ends the process.
    unsafe {
        libc::alarm(seconds);
    }
}
