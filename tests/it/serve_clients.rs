//! The clients of `agent serve` in `tests/clients`, which other programs can start from.

use crate::support::run::Lab;
use std::process::Command;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");

/// For two messages of a session.
const SCRIPT: &str = "turns:
  - calls: [{name: write_file, arguments: {path: new.txt, content: \"text\\n\"}}]
  - text: done
  - calls: [{name: write_file, arguments: {path: new.txt, content: \"text\\n\"}}]
  - text: done
";

/// Runs a driver, which does the same in each language.
fn drive(interpreter: &[&str], driver: &str) {
    let lab = Lab::new();
    let script = lab.outside().join("model.yaml");
    std::fs::write(&script, SCRIPT).unwrap();
    let model = format!("scripted:{}", script.display());
    let server = lab.command(&["serve", "--model", &model]);
    let environment = server.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let done = Command::new(interpreter[0])
        .args(&interpreter[1..])
        .arg(format!("{CLIENTS}/{driver}"))
        .arg(lab.ws())
        .arg(server.get_program())
        .args(server.get_args())
        .current_dir(lab.ws())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(environment)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stdout.ends_with("errors, end: ok\n"), "{stdout}{stderr}");
}

#[test]
fn serve_is_driven_by_the_client_in_python() {
    drive(&["python3"], "serve_driver.py");
}

/// `tests/serve.sh` runs it where there is no such Node.
#[test]
fn serve_is_driven_by_the_client_in_typescript() {
    let version =
        Command::new("node").arg("--version").output().map(|it| String::from_utf8(it.stdout).unwrap());
    let major = version.ok().and_then(|it| it.trim_start_matches('v').split('.').next()?.parse::<u32>().ok());
    if major.is_some_and(|major| major >= 22) {
        drive(
            &["node", "--experimental-strip-types", "--disable-warning=ExperimentalWarning"],
            "serve_driver.ts",
        );
    }
}
