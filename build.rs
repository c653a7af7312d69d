//! Has the functions that every run uses placed beside one another: see `config/refresh-layout.py`.

#![expect(
    clippy::disallowed_methods,
    reason = "a build has no configuration, workspace or launcher of the program's"
)]

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const LAYOUT: &str = "config/layout.ld";

fn main() {
    println!("cargo::rerun-if-changed={LAYOUT}");
    let ordinary = variable("PROFILE") == "release" && variable("TARGET") == "x86_64-unknown-linux-gnu";
    if ordinary && lld_links().unwrap_or(false) {
        let layout = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join(LAYOUT);
        println!("cargo::rustc-link-arg-bin=agent=-T");
        println!("cargo::rustc-link-arg-bin=agent={}", layout.display());
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_default()
}

/// Whether the program will be linked by lld, found by linking one with an option that no other linker has. GNU ld
/// understands the layout too, but takes minutes to match so many names; mold refuses it.
fn lld_links() -> io::Result<bool> {
    let source = PathBuf::from(variable("OUT_DIR")).join("empty.rs");
    std::fs::write(&source, "fn main() {}")?;
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.arg(&source).arg("-o").arg(source.with_extension("out"));
    rustc.args([
        "--target",
        "x86_64-unknown-linux-gnu",
        "-C",
        "link-arg=-Wl,--symbol-ordering-file=/dev/null",
    ]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    if let Ok(flags) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    }
    Ok(rustc.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
}
