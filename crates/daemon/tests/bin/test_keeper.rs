//! The keeper of the processes that the tests of the daemon start.

fn main() {
    daemon::keep_if_asked();
}
