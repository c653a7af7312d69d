//! Unmapping of the program's pages in processes that only wait.

/// Unmaps all pages of the program file; the next use of one maps it again from the page cache, at 1 µs per 64 KiB. Each of the three
/// processes around a command has used 5 MB of them when the command starts.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the bounds of the program are symbols of the linker, and unmapping has no safe form"
)]
pub fn unmap_code() {
    unsafe extern "C" {
        static __executable_start: u8;
        static etext: u8;
    }
    let start = (&raw const __executable_start).cast_mut();
    let page = rustix::param::page_size();
    // SAFETY: between these symbols the linker puts read-only mappings of the program file alone. Their pages were never written, so
    // each is read from the file again when it is used.
    let _best_effort = unsafe {
        let length = (&raw const etext).addr().saturating_sub(start.addr()) / page * page;
        libc::madvise(start.cast(), length, libc::MADV_DONTNEED)
    };
}

/// Does nothing: other systems are not known to map more than is used.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn unmap_code() {}
