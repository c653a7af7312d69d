//! Asks the linker for packed relative relocations, which make the program 3 % smaller. glibc reads them since 2.36;
//! a linker that does not know the option ignores it. In packages (profile `dist`) the functions that a run uses lie together
//! (`link/order.ld`): the kernel maps 64 KiB around each page that is used; without this order, 5 MB of those
//! were unused functions. There identical functions are merged too, where the linker is the one of Rust, which can do that.
#![expect(clippy::disallowed_methods, reason = "a build script has neither a launcher nor a configuration")]

use std::env;
use std::process::Command;

/// First glibc whose loader reads packed relocations: <https://sourceware.org/glibc/wiki/Release/2.36>.
const FIRST_GLIBC: (u32, u32) = (2, 36);

/// Optimisation level of the profile `dist`, which tells it from `release`.
const DIST_OPT_LEVEL: &str = "z";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=link/order.ld");
    let is_native = env::var("HOST") == env::var("TARGET");
    let Some(version) = glibc_version().filter(|_| is_native) else { return };
    if version >= FIRST_GLIBC {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if env::var("OPT_LEVEL").is_ok_and(|level| level == DIST_OPT_LEVEL) {
        let directory = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{directory}/link/order.ld");
        // <https://blog.rust-lang.org/2025/09/01/rust-lld-on-1.90.0-stable/>
        if env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
            println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        }
    }
}

/// Returns the version of the glibc on this machine; `None` if it has none.
fn glibc_version() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
