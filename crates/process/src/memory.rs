//! Returns unused memory to the system.

/// Returns freed memory to the system. The allocator keeps it otherwise, per thread arena. It takes some
/// milliseconds for a large heap, so call it where nobody waits, after something large was freed.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(
        unsafe_code,
        reason = "no safe way to ask the allocator; it takes no pointer and may be called at any time"
    )]
    // SAFETY: it takes a number, locks what it looks at, and only touches free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How much free memory at the end of an arena is kept. By default the allocator raises this to twice the largest
/// block that was ever freed, per arena, and then even [`give_memory_back`] returns nothing of it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: libc::c_int = 1024 * 1024;
/// The number of arenas in which threads allocate. Each keeps what it had at its peak.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

/// Makes the allocator return freed memory. Call it before there are threads.
pub fn keep_memory_small() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, value) in [
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        (libc::M_MMAP_THRESHOLD, KEPT_BYTES),
        (libc::M_ARENA_MAX, ARENAS),
    ] {
        #[expect(unsafe_code, reason = "no safe way to set it; it takes two numbers")]
        // SAFETY: it takes no pointer, and an unknown setting changes nothing.
        unsafe {
            libc::mallopt(setting, value);
        }
    }
}
