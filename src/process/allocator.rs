//! Memory allocator settings, and the exit of the process when memory runs out.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system allocator, except that a failed allocation ends the process with a message and exit code 1. Rust's default is to
/// abort.
struct EndsWithoutMemory;

#[global_allocator]
static ALLOCATOR: EndsWithoutMemory = EndsWithoutMemory;

#[expect(unsafe_code, reason = "allocators have no safe form")]
// SAFETY: every call is forwarded unchanged to `System`, and its non-null result is returned unchanged.
unsafe impl GlobalAlloc for EndsWithoutMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's guarantees are exactly those that `System` requires.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: likewise.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: likewise.
        or_end(unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: likewise.
        unsafe { System.dealloc(old, layout) }
    }
}

fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end_without_memory();
    }
    memory
}

/// Ends this process at once without running exit handlers. Nothing here may allocate.
#[cold]
#[expect(unsafe_code, reason = "std guarantees neither an exit nor an output without allocation")]
fn end_without_memory() -> ! {
    const MESSAGE: &[u8] =
        b"error: out of memory: the system refused more. Raise the limit (`ulimit -v`) or free some\n";
    // SAFETY: the bytes are static, and neither call changes memory.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(1)
    }
}

/// Bytes of the main stack that are reserved at startup if the address space is limited. More than the agent uses at a time.
#[cfg(target_os = "linux")]
const STACK_BYTES: usize = 2 << 20;

/// Reserves the main stack while memory is available, and ends the process with a message if there is none. A stack that cannot
/// grow later would end the process by a signal.
#[cfg(target_os = "linux")]
fn take_stack() {
    if rustix::process::getrlimit(rustix::process::Resource::As).current.is_some() {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(STACK_BYTES)));
        touch_stack();
    }
}

#[cfg(target_os = "linux")]
#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "the array reserves the stack")]
fn touch_stack() {
    std::hint::black_box(&mut [0_u8; STACK_BYTES]);
}

/// Free bytes at the end of the heap that are not returned to the kernel. Editing a file of a megabyte allocates and frees
/// several, and getting each page again from the kernel, which clears it, costs more than the rest of the work in memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIM_THRESHOLD_BYTES: libc::c_int = 8 << 20;

/// Smallest buffer, in bytes, that gets its own mapping and returns to the kernel when freed. Setting either threshold stops
/// the allocator from adjusting both (mallopt(3)).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD_BYTES: libc::c_int = 4 << 20;

/// Sets the allocator to retain freed memory and reserves the main stack. Must be called before other threads start.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the allocator's settings have no safe form")]
pub fn configure_allocator() {
    take_stack();
    // SAFETY: both calls only set parameters of the allocator, which validates them under its own lock.
    let _best_effort = unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
            + libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
    };
}

/// Reserves the main stack on Linux. Other allocators keep their defaults.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn configure_allocator() {
    #[cfg(target_os = "linux")]
    take_stack();
}
