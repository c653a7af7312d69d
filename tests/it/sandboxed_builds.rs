//! Ordinary projects in the sandbox: what builds and tests without it does so inside, with no flag said.

use crate::support::kernel::{confines, has_own_network};
use crate::support::run::{Finished, Lab};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs `command` as the model would.
fn call(lab: &Lab, command: &str) -> Finished {
    let arguments = json!({"command": command, "timeout": 120}).to_string();
    lab.agent(&["tools", "call", "-m", "yolo", "run_command", &arguments])
}

/// The same; its output, when it exits with 0.
#[track_caller]
fn passes(lab: &Lab, command: &str) -> String {
    let done = call(lab, command);
    assert!(done.stdout.contains("exit_code: 0"), "{command}\n{}\n{}", done.stdout, done.stderr);
    done.stdout
}

/// Whether this machine has a program; a test of a language that is not here says so and ends.
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = there.is_ok_and(|status| status.success());
    if !there {
        eprintln!("{program} is not installed here");
    }
    there
}

/// A lab in which the toolchains of the machine are found.
fn with_toolchains() -> Lab {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let place = |variable: &str, below: &str| {
        std::env::var(variable).unwrap_or_else(|_| home.join(below).to_string_lossy().into_owned())
    };
    Lab::new()
        .started()
        .env("CARGO_HOME", &place("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", &place("RUSTUP_HOME", ".rustup"))
}

#[test]
fn s24_a_rust_project_is_built_and_tested() {
    if !has("cargo") {
        return;
    }
    let lab = with_toolchains()
        .file("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
        .file("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n");
    assert!(passes(&lab, "cargo test --offline --lib").contains("1 passed"));
}

#[test]
fn s24_with_the_network_on_what_is_downloaded_is_kept_for_the_workspace() {
    if !has("cargo") || !confines() {
        return;
    }
    let package =
        |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let lab = with_toolchains()
        .config("sandbox: {network: true}\n")
        .file("source/Cargo.toml", package("other"))
        .file("source/src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n")
        .file("src/main.rs", "fn main() {\n    println!(\"built {}\", other::one());\n}\n");
    let source = lab.ws().join("source");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "one"],
    ] {
        assert!(Command::new("git").args(args).current_dir(&source).status().unwrap().success(), "{args:?}");
    }
    let dependency = format!("[dependencies]\nother = {{ git = \"file://{}\" }}\n", source.display());
    let lab = lab.file("Cargo.toml", package("small") + &dependency);
    assert!(passes(&lab, "cargo run").contains("built 1"));
    assert!(passes(&lab, "rm -r target; cargo run --offline").contains("built 1"));
    assert!(
        passes(&lab, "mkdir -p $GOMODCACHE; touch $GOMODCACHE/x; echo $MAVEN_OPTS")
            .contains("-Dmaven.repo.local=")
    );
    let lab = lab
        .config("commands: {env: {MAVEN_OPTS: -Xmx1g, GOMODCACHE: /elsewhere}}\nsandbox: {network: true}\n");
    assert!(passes(&lab, "echo $MAVEN_OPTS, $GOMODCACHE.").contains("-Xmx1g, /elsewhere."));
    let lab = lab.config("");
    assert!(passes(&lab, "echo $MAVEN_OPTS$GOMODCACHE.").contains("\n."));
}

#[test]
fn s24_a_python_project_with_servers_sockets_processes_and_terminals_is_tested() {
    if !has("python3") || !has_own_network() {
        return;
    }
    let lab = with_toolchains().file(
        "test_all.py",
        r#"
import http.server, multiprocessing, os, pty, socket, tempfile, threading, unittest, urllib.request
from multiprocessing import shared_memory

def square(x):
    return x * x

class All(unittest.TestCase):
    def test_a_server_on_loopback(self):
        server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.assertEqual(urllib.request.urlopen("http://localhost:%d/" % server.server_port).status, 200)

    def test_a_socket_in_the_temporary_directory(self):
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            path = os.path.join(tempfile.mkdtemp(), "s")
            server.bind(path)
            server.listen()
            client.connect(path)

    def test_processes(self):
        with multiprocessing.Pool(2) as pool:
            self.assertEqual(pool.map(square, [1, 2]), [1, 4])

    def test_shared_memory(self):
        memory = shared_memory.SharedMemory(create=True, size=10)
        memory.close()
        memory.unlink()

    def test_a_terminal_of_its_own(self):
        self.assertEqual(pty.spawn(["true"]), 0)
"#,
    );
    assert!(passes(&lab, "python3 -m unittest -q 2>&1").contains("OK"));
}

#[test]
fn s24_a_node_project_is_tested() {
    if !has("npm") {
        return;
    }
    let lab = with_toolchains()
        .file("package.json", r#"{"name": "small", "version": "1.0.0", "scripts": {"test": "node --test"}}"#)
        .file(
            "small.test.js",
            "require('node:test')('adds', () => { if (1 + 1 !== 2) throw new Error(); });\n",
        );
    assert!(passes(&lab, "npm test").contains("pass 1"));
}

#[test]
fn s24_a_go_project_is_tested() {
    if !Command::new("go").arg("version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    {
        eprintln!("go is not installed here");
        return;
    }
    let lab = with_toolchains()
        .file("go.mod", "module small\n\ngo 1.19\n")
        .file("small_test.go", "package small\n\nimport \"testing\"\n\nfunc TestAdds(t *testing.T) {}\n");
    assert!(passes(&lab, "go test ./...").contains("ok"));
}

#[test]
fn s24_a_c_project_is_made_and_run() {
    if !has("cc") || !has("make") {
        return;
    }
    let lab = with_toolchains()
        .file("main.c", "#include <stdio.h>\nint main(void) { return puts(\"built\") < 0; }\n")
        .file("Makefile", "all:\n\tcc -o main main.c\n\t./main\n");
    assert!(passes(&lab, "make").contains("built"));
}

#[test]
fn s24_git_works_on_files_branches_and_stashes_and_leaves_its_configuration_alone() {
    if !confines() {
        return;
    }
    let lab = with_toolchains().file("a.txt", "a\n");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        let git = git.args(args).current_dir(lab.ws()).stdout(Stdio::null());
        assert!(git.status().unwrap().success(), "{args:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "user.email", "a@b.example"]);
    git(&["config", "user.name", "a"]);
    let before = lab.read(".git/config");
    passes(
        &lab,
        "git add a.txt && git commit -qm one && git checkout -qb side && echo b >> a.txt && git stash -q && \
         git stash pop -q && git diff --stat && git commit -qam two && git log --oneline && git tag t && git gc -q",
    );
    call(&lab, "git config user.name evil");
    assert_eq!(lab.read(".git/config"), before);
}

#[test]
fn s24_a_temporary_file_lasts_from_command_to_command_of_a_run_and_no_longer() {
    use crate::support::server::Server;
    let server = Server::start(
        "turns:\n\
         - calls:\n\
         \x20 - {name: run_command, arguments: {command: 'echo kept > $TMPDIR/x'}}\n\
         - calls:\n\
         \x20 - {name: run_command, arguments: {command: 'cat $TMPDIR/x; cp $TMPDIR/x out'}}\n\
         - text: done\n",
    );
    let lab = with_toolchains();
    lab.run_yolo(&server, &[]).exits(0);
    assert_eq!(lab.read("out"), "kept\n");
    let mut todo = vec![lab.home()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.file_name().unwrap().to_string_lossy().starts_with("run-"), "{}", path.display());
            if path.is_dir() && !path.is_symlink() {
                todo.push(path);
            }
        }
    }
}
