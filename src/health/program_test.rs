//! The program itself. That cargo builds it for this test is what the tests of `agent health` rely upon.
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the test starts the program")]

use std::process::Command;

#[test]
fn the_program_names_its_version_and_its_commands() {
    let run = |flag: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_agent-health")).arg(flag).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run("--version"), format!("agent-health {}\n", env!("CARGO_PKG_VERSION")));
    let help = run("--help");
    assert!(help.contains("\n  health"), "{help}");
    assert!(!help.contains("around-run"), "{help}");
}
