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
