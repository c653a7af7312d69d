//! Memory of this process: how much of what it has freed it keeps, and how it ends when there is none left.

use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator of the system, which ends the process with a message and exit code 1 where it has no memory left. Rust would
/// abort it.
struct EndsWithoutMemory;

#[global_allocator]
static ALLOCATOR: EndsWithoutMemory = EndsWithoutMemory;

#[expect(unsafe_code, reason = "allocators have no safe form")]
// SAFETY: every call is handed on as it is, and what comes back is handed back, unless it is null.
unsafe impl GlobalAlloc for EndsWithoutMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises is what is asked for here.
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

/// Ends this process at once. Nothing here may allocate, and nothing that is registered to run at exit runs.
#[cold]
#[expect(unsafe_code, reason = "std has neither an exit nor an output that surely allocate nothing")]
fn end_without_memory() -> ! {
    const MESSAGE: &[u8] =
        b"error: out of memory: the system refused more. Raise the limit (`ulimit -v`) or free some\n";
    // SAFETY: the bytes live for ever, and neither call changes memory.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(1)
    }
}

/// Bytes of the main stack that are there from the beginning where the address space is limited: more than is in use at a time.
#[cfg(target_os = "linux")]
const STACK_BYTES: usize = 2 << 20;

/// Takes the main stack while there is memory for it, and ends the process with a message where there is none. A stack that
/// cannot grow later ends it by a signal.
#[cfg(target_os = "linux")]
fn take_stack() {
    if rustix::process::getrlimit(rustix::process::Resource::As).current.is_some() {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(STACK_BYTES)));
        touch_stack();
    }
}

#[cfg(target_os = "linux")]
#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "this is what takes the stack")]
fn touch_stack() {
    std::hint::black_box(&mut [0_u8; STACK_BYTES]);
}

/// Bytes at the end of the heap that stay with us when they are free. An edit of a file of a megabyte takes and frees several;
/// to get each page anew from the kernel, which clears it, costs more than all else that is done with it in memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIM_THRESHOLD_BYTES: libc::c_int = 8 << 20;

/// Bytes from which on a buffer is mapped for itself, and goes back to the kernel when it is freed. Setting one of the two
/// turns off that the allocator changes both as it goes (mallopt(3)).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD_BYTES: libc::c_int = 4 << 20;

/// Keeps memory that is freed for the next use, and takes what the main stack needs. To be called before there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the allocator's settings have no safe form")]
pub fn configure_allocator() {
    take_stack();
    // SAFETY: both calls only set numbers of the allocator, which checks them, and takes its lock for it.
    let _otherwise_it_goes_back_sooner = unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
            + libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
    };
}

/// Other allocators keep what they find right.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn configure_allocator() {
    #[cfg(target_os = "linux")]
    take_stack();
}
