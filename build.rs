//! Asks the linker for packed relative relocations, which make the program 3 % smaller. glibc reads them since 2.36;
//! a linker that does not know the option ignores it.
#![expect(clippy::disallowed_methods, reason = "a build script has neither a launcher nor a configuration")]

use std::env;
use std::process::Command;

/// First glibc whose loader reads packed relocations: <https://sourceware.org/glibc/wiki/Release/2.36>.
const FIRST_GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_native = env::var("HOST") == env::var("TARGET");
    if is_native && glibc_version().is_some_and(|version| version >= FIRST_GLIBC) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of the glibc on this machine; `None` if it has none.
fn glibc_version() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
