//! What this process does with memory that it has freed.

/// Bytes at the end of the heap that stay with us when they are free. An edit of a file of a megabyte takes and frees several;
/// to get each page anew from the kernel, which clears it, costs more than all else that is done with it in memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIM_THRESHOLD_BYTES: libc::c_int = 8 << 20;

/// Bytes from which on a buffer is mapped for itself, and goes back to the kernel when it is freed. Setting one of the two
/// turns off that the allocator changes both as it goes (mallopt(3)).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD_BYTES: libc::c_int = 4 << 20;

/// Keeps memory that is freed for the next use. To be called before there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the allocator's settings have no safe form")]
pub fn configure_allocator() {
    // SAFETY: both calls only set numbers of the allocator, which checks them, and takes its lock for it.
    let _otherwise_it_goes_back_sooner = unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
            + libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
    };
}

/// Other allocators keep what they find right.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn configure_allocator() {}
