//! Memory that was used once and is not needed any more.

/// Gives memory back to the system that was freed. The allocator keeps it otherwise, in as many pieces as there were threads.
/// It takes some milliseconds for a large heap, so call it where nobody waits, after something large is gone.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(
        unsafe_code,
        reason = "no safe way to ask the allocator; it takes no pointer and may be called at any time"
    )]
    // SAFETY: it takes a number, locks what it looks at, and touches free memory only.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How much free memory at the end of an arena is kept. By itself the allocator raises this to twice the largest block that was
/// ever freed, for each arena, and then even [`give_memory_back`] returns nothing of it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: libc::c_int = 1024 * 1024;
/// In how many arenas threads allocate. Each keeps what it had at its peak.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

/// Makes the allocator give freed memory back. Call it before there are threads.
pub fn keep_memory_small() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, value) in [
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        (libc::M_MMAP_THRESHOLD, KEPT_BYTES),
        (libc::M_ARENA_MAX, ARENAS),
    ] {
        #[expect(unsafe_code, reason = "no safe way to set it; it takes two numbers")]
        // SAFETY: it takes no pointer, and a setting that is not known changes nothing.
        unsafe {
            libc::mallopt(setting, value);
        }
    }
}
