//! The ready hooks of `hooks/`, each against a fake tool (clean, finding, crash, missing) and some against the real one.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests write small projects and start the scripts themselves"
)]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What the scripts need besides the tool they are about.
const COMMON_TOOLS: [&str; 8] = ["sh", "cat", "dirname", "grep", "head", "awk", "sed", "env"];

/// Script, the file it is given, the tool it needs.
const LINTERS: [(&str, &str, &str); 6] = [
    ("python-ruff.sh", "a b.py", "ruff"),
    ("shellcheck.sh", "a b.sh", "shellcheck"),
    ("gofmt.sh", "a b.go", "gofmt"),
    ("javascript.sh", "a b.js", "eslint"),
    ("javascript.sh", "a b.js", "prettier"),
    ("rust.sh", "a b.rs", "rustfmt"),
];

struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    /// A directory with one file and a search path on which only [`COMMON_TOOLS`] are.
    fn with(file: &str, content: &str) -> Self {
        let project = Self { dir: tempfile::tempdir().unwrap() };
        project.write(file, content);
        std::fs::create_dir(project.bin()).unwrap();
        for tool in COMMON_TOOLS {
            let found = ["/bin", "/usr/bin"]
                .map(|dir| Path::new(dir).join(tool))
                .into_iter()
                .find(|path| path.exists());
            symlink(found.unwrap(), project.bin().join(tool)).unwrap();
        }
        project
    }

    fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    fn write(&self, file: &str, content: &str) {
        let path = self.dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Written by a child: were it this process, a fork of another test could hold the file open for writing, and then
    /// the kernel would refuse to execute it.
    fn fake(&self, tool: &str, body: &str) {
        let path = self.bin().join(tool);
        let script = "cat > \"$1\" && chmod 755 \"$1\"";
        let mut writer = Command::new("/bin/sh")
            .args(["-c", script, "sh"])
            .arg(path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        writer.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{body}\n").as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(script));
        command.current_dir(self.dir.path()).stdin(Stdio::null()).env("PATH", self.bin());
        command
    }

    fn run(&self, script: &str, file: &str) -> (Option<i32>, String, String) {
        said(&self.command(script).arg(file).output().unwrap())
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_hook_prints_nothing_for_a_clean_file() {
    for (script, file, tool) in LINTERS {
        let project = Project::with(file, "");
        project.fake(tool, "exit 0");
        let (code, stdout, stderr) = project.run(script, file);
        assert_eq!((code, stdout.as_str()), (Some(0), ""), "{script}: {stderr}");
    }
}

#[test]
fn a_finding_is_on_standard_output_with_exit_1() {
    for (script, file, tool) in LINTERS {
        let project = Project::with(file, "");
        project.fake(
            tool,
            &format!("for last; do :; done; echo \"$last:1:1: bad\"; exit {}", i32::from(tool != "gofmt")),
        );
        let (code, stdout, stderr) = project.run(script, file);
        assert_eq!(
            (code, stdout.as_str(), stderr.as_str()),
            (Some(1), format!("{file}:1:1: bad\n").as_str(), ""),
            "{script}"
        );
    }
}

#[test]
fn the_file_may_come_from_the_environment() {
    let project = Project::with("a.py", "");
    project.fake("ruff", "for last; do :; done; echo \"$last\"; exit 1");
    let output = project.command("python-ruff.sh").env("AGENT_EDITED_FILE", "a.py").output().unwrap();
    assert_eq!(said(&output), (Some(1), "a.py\n".to_owned(), String::new()));
}

#[test]
fn a_tool_that_fails_is_said_with_exit_3() {
    for (script, file, tool) in LINTERS {
        let project = Project::with(file, "");
        project.fake(tool, "echo boom >&2; exit 9");
        let (code, stdout, stderr) = project.run(script, file);
        assert_eq!((code, stdout.as_str()), (Some(3), ""), "{script}");
        assert!(stderr.contains("boom") && stderr.contains(tool), "{script}: {stderr}");
    }
}

#[test]
fn a_tool_that_is_missing_is_said_and_stops_nothing() {
    for (script, file, tool) in LINTERS {
        let (code, stdout, stderr) = Project::with(file, "").run(script, file);
        assert_eq!((code, stdout.as_str()), (Some(0), ""), "{script}");
        assert!(
            stderr.contains(tool) && stderr.contains("not") && stderr.contains("installed"),
            "{script}: {stderr}"
        );
    }
}

#[test]
fn a_file_that_was_deleted_is_nothing_to_check() {
    for (script, _, tool) in LINTERS {
        let project = Project::with("other", "");
        project.fake(tool, "exit 1");
        assert_eq!(project.run(script, "gone"), (Some(0), String::new(), String::new()), "{script}");
    }
}

#[test]
fn rust_goes_on_with_clippy_in_the_package() {
    let file = "sub/src/lib.rs";
    let clippy = |body: &str| {
        let project = Project::with(file, "");
        project.write("sub/Cargo.toml", "[package]\nedition = \"2024\"\n");
        project.fake("rustfmt", "case \"$*\" in *'--edition 2024'*) exit 0 ;; esac; exit 9");
        project.fake("cargo-clippy", "");
        project.fake("cargo", body);
        project.run("rust.sh", file)
    };
    assert_eq!(clippy("[ -f Cargo.toml ]"), (Some(0), String::new(), String::new()));
    let finding = "echo 'src/lib.rs:1:1: warning: bad' >&2; echo 'warning: 1 warning' >&2";
    assert_eq!(clippy(finding), (Some(1), "src/lib.rs:1:1: warning: bad\n".to_owned(), String::new()));
    let (code, _, stderr) = clippy("echo 'error: no such toolchain' >&2; exit 101");
    assert!(code == Some(3) && stderr.contains("no such toolchain"), "{stderr}");
}

#[test]
fn javascript_takes_the_tools_of_the_project_first_and_reports_both() {
    let project = Project::with("a.js", "");
    project.fake("eslint", "echo global; exit 1");
    project.fake("prettier", "echo unformatted; exit 1");
    std::fs::create_dir_all(project.dir.path().join("node_modules/.bin")).unwrap();
    project.fake("../node_modules/.bin/eslint", "echo local; exit 1");
    assert_eq!(
        project.run("javascript.sh", "a.js"),
        (Some(1), "local\nunformatted\n".to_owned(), String::new())
    );
}

/// Runs the secret check on a call; its exit code and its reason.
fn check_call(project: &Project, call: &str) -> (Option<i32>, String) {
    let mut hook = project.command("secret-check.sh");
    let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // A hook that cannot even start reading closes the pipe.
    let _closed = child.stdin.take().unwrap().write_all(call.as_bytes());
    let (code, _, reason) = said(&child.wait_with_output().unwrap());
    (code, reason)
}

#[test]
fn key_material_is_not_written_and_not_shown() {
    let project = Project::with("x", "");
    // Put together here so that no scanner takes this file for a leak.
    let long = "Ab3".repeat(20);
    let secrets = [
        ["-----BEGIN RSA PRIVATE ", "KEY-----\\nMIIE"].concat(),
        ["AKIA", "IOSFODNN7EXAMPLE"].concat(),
        ["ghp_", &long].concat(),
        ["glpat-", &long].concat(),
        ["xoxb-", &long].concat(),
        ["AIza", &long].concat(),
        ["sk-", &long].concat(),
    ];
    for secret in secrets {
        let call =
            format!(r#"{{"event":"pre_tool_use","tool_input":{{"path":"a","content":"x = {secret}"}}}}"#);
        let (code, reason) = check_call(&project, &call);
        assert_eq!(code, Some(2), "{secret}");
        assert!(reason.contains("looks like") && !reason.contains(&secret), "{reason}");
        let removal = format!(r#"{{"tool_input":{{"old_str":"say \"x\" {secret}","new_str":"y"}}}}"#);
        assert_eq!(check_call(&project, &removal), (Some(0), String::new()), "taking a secret out is fine");
        let hidden = format!(r#"{{"tool_input":{{"content":"\"old_str\": \"{secret}\""}}}}"#);
        assert_eq!(
            check_call(&project, &hidden).0,
            Some(2),
            "a text that looks like an argument is no argument"
        );
    }
    assert_eq!(
        check_call(&project, r#"{"tool_input":{"content":"sk-short, risk-free"}}"#),
        (Some(0), String::new())
    );
}

#[test]
fn a_secret_check_that_cannot_check_blocks() {
    for tool in ["grep", "sed", "cat"] {
        let project = Project::with("x", "");
        std::fs::remove_file(project.bin().join(tool)).unwrap();
        assert_eq!(check_call(&project, "{}").0, Some(2), "without {tool}");
        project.fake(tool, "exit 9");
        assert_eq!(check_call(&project, "{}").0, Some(2), "{tool} fails");
    }
}

/// Runs `script` with the real `tool` on a clean and a dirty file; nothing where it is not installed, unless required.
fn try_real(tool: &str, script: &str, file: &str, [clean, dirty]: [&str; 2]) {
    let installed = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !installed {
        assert!(!crate::support::extent::all(), "{tool} is not installed");
        return;
    }
    for (content, wanted) in [(clean, 0), (dirty, 1)] {
        let project = Project::with(file, content);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let (code, stdout, stderr) =
            said(&project.command(script).env("PATH", path).arg(file).output().unwrap());
        assert_eq!((code, stdout.is_empty()), (Some(wanted), wanted == 0), "{tool}: {stdout}{stderr}");
    }
}

#[test]
fn the_real_rustfmt_ruff_and_shellcheck_are_understood() {
    try_real("rustfmt", "rust.sh", "a.rs", ["fn main() {}\n", "fn  main( ) { }\n"]);
    try_real("ruff", "python-ruff.sh", "a.py", ["print(1)\n", "import os\n"]);
    try_real("shellcheck", "shellcheck.sh", "a.sh", ["#!/bin/sh\necho ok\n", "#!/bin/sh\necho $1\n"]);
}
