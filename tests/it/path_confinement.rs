//! The file boundary: every tool that takes a path, asked for what lies beyond it. Tests name the class of attack
//! they stand for.

use crate::support::calls::{call, every_tool, results, script, told};
use crate::support::run::{KEY, Lab, NO_BREAKERS};
use crate::support::server::Server;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What must never leave the machine.
const CANARY: &str = "hunter2-4711";

/// How long a model may have to wait for the answer about a file that never ends.
const SOON: Duration = Duration::from_secs(10);

/// The tools that change a file.
const CHANGES: [&str; 4] = ["write_file", "edit_file", "apply_patch", "delete_file"];

/// Calls of one answer of the model.
const CALLS: usize = 50;

/// What a path is: enough to see that it was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    inode: u64,
    mode: u32,
    modified: (i64, i64),
    content: Vec<u8>,
}

/// Everything below `dir`.
fn look(dir: &Path, looks: &mut BTreeMap<PathBuf, Look>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let (inode, mode) = (metadata.ino(), metadata.mode());
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        looks.insert(path.clone(), Look { inode, mode, modified, content });
        if metadata.is_dir() {
            look(&path, looks);
        }
    }
}

/// The configuration under which files may be deleted, and whatever is tried may be tried again.
fn deleting() -> String {
    format!("workspace: {{allow_delete: true}}\n{NO_BREAKERS}")
}

/// A workspace, and beside it what must be neither read nor changed.
struct Fence {
    lab: Lab,
    before: BTreeMap<PathBuf, Look>,
}

impl Fence {
    /// With links in the workspace: their names and where they lead.
    fn with(links: &[(&str, &str)]) -> Self {
        let lab = Lab::new().file("inside.txt", "inside\n").config(&deleting());
        for path in ["elsewhere/secret", "elsewhere/deep/secret", "ws-evil/secret"] {
            let path = lab.outside().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, CANARY).unwrap();
        }
        for (name, target) in links {
            symlink(target, lab.ws().join(name)).unwrap();
        }
        let mut fence = Self { lab, before: BTreeMap::new() };
        fence.before = fence.beyond();
        fence
    }

    /// The absolute path of something beside the workspace.
    fn absolute(&self, path: &str) -> String {
        self.lab.outside().join(path).to_str().unwrap().to_owned()
    }

    /// All that lies beyond the fence.
    fn beyond(&self) -> BTreeMap<PathBuf, Look> {
        let mut looks = BTreeMap::new();
        for dir in ["elsewhere", "ws-evil"] {
            look(&self.lab.outside().join(dir), &mut looks);
        }
        looks
    }

    /// What the model is told when it makes `calls`; nothing beyond the fence was sent or changed by them.
    #[track_caller]
    fn told(&self, calls: &[Value]) -> Vec<String> {
        let turns: Vec<Vec<Value>> = calls.chunks(CALLS).map(<[Value]>::to_vec).collect();
        let server = Server::start(&script(&turns));
        self.lab.run_yolo(&server, &[]).exits(0);
        never_sent(&server, CANARY);
        never_sent(&server, KEY);
        assert!(!fs::read_to_string(self.lab.journal()).unwrap().contains(CANARY), "it is in the journal");
        assert_eq!(self.beyond(), self.before, "something beyond the fence was changed");
        results(&server)
    }

    /// Every tool refuses each of `paths`, and says what to do instead.
    #[track_caller]
    fn refuses(&self, paths: &[String]) {
        let calls: Vec<Value> = paths.iter().flat_map(|path| every_tool(path)).collect();
        for (call, said) in calls.iter().zip(self.told(&calls)) {
            assert!(said.starts_with("Error: Security error: "), "{call}: {said}");
            assert!(said.contains("Use a path"), "what to do instead is not said: {call}: {said}");
        }
        assert_eq!(self.lab.read("inside.txt"), "inside\n");
    }
}

/// No request holds `secret`.
#[track_caller]
fn never_sent(server: &Server, secret: &str) {
    for request in server.requests() {
        let body = String::from_utf8_lossy(&request.bytes).into_owned();
        assert!(!body.contains(secret), "{body}");
    }
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// The names in a directory of the workspace, sorted.
fn names(lab: &Lab, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(lab.ws().join(dir)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn s01_class_01_no_tool_goes_up_or_to_an_absolute_path() {
    let fence = Fence::with(&[]);
    let mut paths = owned(&[
        "..",
        "../elsewhere/secret",
        "../elsewhere/new",
        "./../elsewhere/secret",
        "a/../../elsewhere/secret",
        "inside.txt/../../elsewhere/secret",
        "..//.//elsewhere/secret",
        "/proc/self/cwd/../elsewhere/secret",
        "/",
    ]);
    paths
        .extend(["elsewhere/secret", "elsewhere", "ws/../elsewhere/secret"].map(|path| fence.absolute(path)));
    paths.push(format!("//{}", fence.absolute("elsewhere/secret")));
    fence.refuses(&paths);
    assert_eq!(names(&fence.lab, "."), ["inside.txt"]);
}

#[test]
fn class_01_what_a_shell_or_a_browser_would_read_otherwise_is_a_name_like_any_other() {
    let fence = Fence::with(&[]);
    let paths = [
        format!("file://{}", fence.absolute("elsewhere/secret")),
        "~/elsewhere/secret".to_owned(),
        "$PWD/../elsewhere/secret".to_owned(),
        "%2e%2e/elsewhere/secret".to_owned(),
        "..%2felsewhere%2fsecret".to_owned(),
        "`cat ../elsewhere/secret`".to_owned(),
    ];
    let calls: Vec<Value> = paths
        .iter()
        .flat_map(|path| every_tool(path))
        .filter(|call| call["name"] != "run_command" && call["name"] != "delete_file")
        .collect();
    fence.told(&calls);
    let everywhere = [
        call("find_files", &json!({"pattern": "../**"})),
        call("find_files", &json!({"pattern": "../elsewhere/*"})),
        call("list_files", &json!({"pattern": "../*", "recursive": true})),
        call("grep", &json!({"text": "hunter", "file_pattern": "../elsewhere/*"})),
        call("search_code", &json!({"pattern": "hunter", "file_pattern": "/**/secret"})),
    ];
    for (call, said) in everywhere.iter().zip(fence.told(&everywhere)) {
        assert!(!said.contains("elsewhere/secret\n") && !said.contains("deep"), "{call}: {said}");
    }
}

#[test]
fn class_02_a_directory_whose_name_begins_like_the_workspaces_is_outside() {
    let fence = Fence::with(&[]);
    fence.refuses(&[
        "../ws-evil/secret".to_owned(),
        "../ws-evil".to_owned(),
        fence.absolute("ws-evil/secret"),
        fence.absolute("ws-evil"),
        fence.absolute("ws-evil/new"),
        fence.absolute("ws/../ws-evil/secret"),
        format!("{}-evil/secret", fence.lab.ws().canonicalize().unwrap().display()),
    ]);
}

#[test]
fn class_03_no_link_leads_a_change_or_a_look_out_of_the_workspace() {
    let fence = Fence::with(&[
        ("file", "../elsewhere/secret"),
        ("new", "../elsewhere/new"),
        ("dir", "../elsewhere"),
        ("up", ".."),
        ("first", "second"),
        ("second", "up/elsewhere/deep"),
        ("loop", "loop"),
        ("ping", "pong"),
        ("pong", "ping"),
    ]);
    let absolute = [("absolute", "elsewhere/secret"), ("inside-absolute", "ws/inside.txt")];
    for (name, target) in absolute {
        symlink(fence.lab.outside().join(target), fence.lab.ws().join(name)).unwrap();
    }
    let paths = owned(&["file", "new", "absolute", "inside-absolute", "loop", "ping"]);
    let calls: Vec<Value> =
        paths.iter().flat_map(|path| every_tool(path)).filter(|call| call["name"] != "delete_file").collect();
    for (call, said) in calls.iter().zip(fence.told(&calls)) {
        assert!(said.starts_with("Error: Security error: "), "{call}: {said}");
        assert!(said.contains("Use a path"), "{call}: {said}");
    }
    fence.refuses(&owned(&[
        "dir/secret",
        "dir/new",
        "dir/deep/secret",
        "dir/new/deep/file",
        "up/elsewhere/secret",
        "up/ws/inside.txt",
        "first/secret",
        "first/new",
        "loop/x",
    ]));
    assert!(!fence.lab.exists("../elsewhere/new"));
}

#[test]
fn class_03_deleting_a_link_removes_the_link() {
    let fence = Fence::with(&[("file", "../elsewhere/secret"), ("dir", "../elsewhere")]);
    let delete = |path: &str| call("delete_file", &json!({"path": path}));
    let said = fence.told(&[delete("file"), delete("dir"), delete("inside.txt")]);
    assert_eq!(said, ["File file deleted", "File dir deleted", "File inside.txt deleted"]);
    assert_eq!(names(&fence.lab, "."), [""; 0]);
}

#[test]
fn class_04_no_search_goes_through_a_link() {
    let fence = Fence::with(&[("dir", "../elsewhere"), ("file", "../elsewhere/secret"), ("up", "..")]);
    let said = fence.told(&[
        call("grep", &json!({"text": "hunter"})),
        call("search_code", &json!({"pattern": "h.nter"})),
        call("find_files", &json!({"pattern": "secret"})),
        call("list_files", &json!({"recursive": true})),
        call("list_files", &json!({})),
    ]);
    for said in &said[..3] {
        assert!(said.starts_with("No "), "{said}");
    }
    for said in &said[3..] {
        assert_eq!(*said, "📄 dir\n📄 file\n📄 inside.txt\n📄 up\nTotal: 4 items");
    }
}

/// A file of the workspace under other names: through links, other spellings, an absolute path.
fn disguises(lab: &Lab, name: &str) -> Vec<String> {
    fs::create_dir_all(lab.ws().join("sub")).unwrap();
    symlink(name, lab.ws().join("plain.txt")).unwrap();
    symlink(format!("../{name}"), lab.ws().join("sub/notes.md")).unwrap();
    symlink("plain.txt", lab.ws().join("twice.txt")).unwrap();
    symlink(".", lab.ws().join("here")).unwrap();
    let mut all =
        vec![name.to_owned(), format!("./{name}"), format!("sub/../{name}"), format!("sub//..//{name}")];
    all.extend(["plain.txt", "sub/notes.md", "twice.txt"].map(str::to_owned));
    all.push(format!("here/{name}"));
    all.push(lab.ws().join(name).to_str().unwrap().to_owned());
    all.push(lab.ws().canonicalize().unwrap().join(name).to_str().unwrap().to_owned());
    all
}

#[test]
fn s11_class_03_a_protected_file_is_read_but_changed_under_none_of_its_names() {
    let config = "guardrails: {protected_files: [.env]}\nworkspace: {allow_delete: true}\n";
    let lab = Lab::new().file(".env", "KEY=hidden\n").config(&format!("{config}{NO_BREAKERS}"));
    let names = disguises(&lab, ".env");
    let mut calls = Vec::new();
    for path in &names {
        calls.extend(
            every_tool(path).into_iter().filter(|call| {
                call["name"] == "read_file" || CHANGES.contains(&call["name"].as_str().unwrap())
            }),
        );
    }
    let server = Server::start(&script(std::slice::from_ref(&calls)));
    let done = lab.run_yolo(&server, &["--json"]).exits(0);
    for (call, said) in calls.iter().zip(results(&server)) {
        if call["name"] == "read_file" {
            assert!(said.contains("KEY=hidden"), "{call}: {said}");
        } else {
            let refusal = "Error: Protected file blocked by guardrail: ";
            assert!(said.starts_with(refusal) && said.contains("(pattern: .env)"), "{call}: {said}");
        }
    }
    assert_eq!(lab.read(".env"), "KEY=hidden\n");
    assert!(lab.exists("plain.txt"));
    let denials = done.json()["permission_denials"].as_array().unwrap().len();
    assert_eq!(denials, names.len() * 5);
}

#[test]
fn s11_what_can_run_programs_later_is_always_protected() {
    let lab = Lab::new().file(".git/config", "[core]\n");
    let write = |path: &str| call("write_file", &json!({"path": path, "content": "x"}));
    let paths = [
        ".git/hooks/pre-commit",
        ".GIT/hooks/pre-commit",
        ".git/config",
        ".agent/config.yaml",
        ".envrc",
        ".vscode/tasks.json",
        ".devcontainer.json",
        "sub/.nvim.lua",
        "sub/.trae/mcp.json",
        "sub/.git/hooks/x",
    ];
    for (path, said) in paths.iter().zip(told(&lab, paths.map(write).to_vec())) {
        assert!(said.starts_with("Error: Protected file blocked by guardrail: "), "{path}: {said}");
        assert!(*path == ".git/config" || !lab.exists(path), "{path}");
    }
    assert_eq!(lab.read(".git/config"), "[core]\n");
}

#[test]
fn s12_class_04_the_content_of_a_sensitive_file_is_in_no_request() {
    let config =
        "guardrails: {sensitive_files: [.env, private/, config/*.yml]}\nworkspace: {allow_delete: true}\n";
    let lab = Lab::new()
        .file(".env", format!("KEY={CANARY}\n"))
        .file("private/deep/key", CANARY)
        .file("config/prod.yml", format!("key: {CANARY}\n"))
        .file("open.txt", "nothing hunter-like\n")
        .config(&format!("{config}{NO_BREAKERS}"));
    symlink("private", lab.ws().join("public")).unwrap();
    let mut paths = disguises(&lab, ".env");
    paths.extend(
        ["private/deep/key", "public/deep/key", "private/deep", "private", "public"].map(str::to_owned),
    );
    let calls: Vec<Value> =
        paths.iter().flat_map(|path| every_tool(path)).filter(|call| call["name"] != "run_command").collect();
    let everywhere = vec![
        call("grep", &json!({"text": "hunter2"})),
        call("search_code", &json!({"pattern": "hunter2|KEY"})),
        call("grep", &json!({"text": "hunter2", "path": "here"})),
        call("grep", &json!({"text": "hunter2", "file_pattern": ".env"})),
    ];
    let mut turns: Vec<Vec<Value>> = calls.chunks(100).map(<[Value]>::to_vec).collect();
    turns.push(everywhere);
    let server = Server::start(&script(&turns));
    lab.run_yolo(&server, &[]).exits(0);
    let said = results(&server);
    for (call, said) in calls.iter().zip(&said) {
        assert!(said.starts_with("Error: "), "{call}: {said}");
    }
    for said in &said[calls.len()..] {
        assert!(said.starts_with("No results for"), "{said}");
        assert!(said.ends_with(" left out: sensitive]"), "{said}");
    }
    never_sent(&server, CANARY);
    assert_eq!(lab.read(".env"), format!("KEY={CANARY}\n"));
    assert_eq!(lab.read("private/deep/key"), CANARY);
    assert!(!fs::read_to_string(lab.journal()).unwrap().contains(CANARY));
}

// Fault B15: commands read sensitive files in ways that their text does not show.
#[test]
fn a_command_reads_nothing_of_a_sensitive_file_and_hooks_read_all_of_it() {
    let config = json!({
        "guardrails": {"sensitive_files": [".env", "private/", "none.txt"]},
        "hooks": {"session_end": [{"command": "cat .e* private/k* > seen"}]},
    });
    let lab = Lab::new()
        .file(".env", format!("KEY={CANARY}\n"))
        .file("private/key", CANARY)
        .file("open.txt", "open\n")
        .config(&config.to_string());
    symlink(".env", lab.ws().join("link")).unwrap();
    let commands = [
        "cat .e* lin* open.*",
        "grep -r hunter .; true",
        "d=priv; cat ${d}ate/* ; true",
        "cp -r . $TMPDIR/c; cat $TMPDIR/c/.e*; true",
        "mv .e* moved; ln .e* hard; cat moved hard; true",
    ];
    let turns: Vec<Vec<Value>> =
        commands.iter().map(|text| vec![call("run_command", &json!({"command": text}))]).collect();
    let server = Server::start(&script(&turns));
    lab.run_yolo(&server, &[]).exits(0);
    if can_hide(&lab) {
        never_sent(&server, CANARY);
        assert!(results(&server)[0].contains("open"), "{:?}", results(&server));
    }
    assert_eq!(lab.read("seen"), format!("KEY={CANARY}\n{CANARY}"));
    assert_eq!(lab.read(".env"), format!("KEY={CANARY}\n"));
}

/// Whether the sandbox has a view of the files of its own.
fn can_hide(lab: &Lab) -> bool {
    let shown = lab.agent(&["doctor"]).stdout;
    shown.contains("sandbox        full:") || shown.contains("sandbox        bubblewrap:")
}

/// Sets a flag when dropped, so that a thread ends with the test that needs it, however that ends.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn class_06_of_500_writes_none_is_led_astray_while_the_directory_is_exchanged() {
    let fence = Fence::with(&[("evil", "../elsewhere")]);
    fs::create_dir_all(fence.lab.ws().join("dir/deep")).unwrap();
    let writes: Vec<Value> = (0..500)
        .map(|at| call("write_file", &json!({"path": format!("dir/deep/{at}.txt"), "content": "x"})))
        .collect();
    let (over, ws) = (AtomicBool::new(false), fs::File::open(fence.lab.ws()).unwrap());
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(&ws, "dir", &ws, "evil", RenameFlags::EXCHANGE).unwrap();
            }
        });
        let _over = SetOnDrop(&over);
        fence.told(&writes)
    });
    let made = said.iter().filter(|said| said.contains("created successfully")).count();
    let refused = said.iter().filter(|said| said.starts_with("Error: ")).count();
    assert_eq!(made + refused, 500, "{said:?}");
    let dir = if fence.lab.ws().join("dir").is_symlink() { "evil/deep" } else { "dir/deep" };
    assert_eq!(names(&fence.lab, dir).len(), made, "what was reported is what is there");
}

#[test]
fn class_06_a_link_that_leads_elsewhere_after_the_decision_leads_nowhere() {
    let config = "guardrails: {sensitive_files: [.env], protected_files: [kept.txt]}\n";
    let lab = Lab::new().file(".env", CANARY).file("kept.txt", "kept\n").file("inside.txt", "inside\n");
    let lab = lab.file(".vscode/tasks.json", "{}\n").config(&format!("{config}{NO_BREAKERS}"));
    let swapped = [("shown", ".env"), ("changed", "kept.txt"), ("dir/changed", "../.vscode/tasks.json")];
    fs::create_dir(lab.ws().join("dir")).unwrap();
    for (name, target) in swapped {
        symlink("inside.txt", lab.ws().join(name)).unwrap();
        symlink(target, lab.ws().join(format!("{name}-evil"))).unwrap();
    }
    let calls: Vec<Value> = (0..100)
        .flat_map(|_| {
            let append = |path| call("write_file", &json!({"path": path, "content": "x", "mode": "append"}));
            let grep = call("grep", &json!({"text": "hunter", "path": "shown"}));
            [call("read_file", &json!({"path": "shown"})), grep, append("changed"), append("dir/changed")]
        })
        .collect();
    let turns: Vec<Vec<Value>> = calls.chunks(CALLS).map(<[Value]>::to_vec).collect();
    let server = Server::start(&script(&turns));
    let (over, ws) = (AtomicBool::new(false), fs::File::open(lab.ws()).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (name, _) in swapped {
                    renameat_with(&ws, name, &ws, format!("{name}-evil"), RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        let _over = SetOnDrop(&over);
        lab.run_yolo(&server, &[]).exits(0);
    });
    never_sent(&server, CANARY);
    assert_eq!(lab.read("kept.txt"), "kept\n");
    assert_eq!(lab.read(".vscode/tasks.json"), "{}\n");
    let told = results(&server);
    assert!(told.iter().any(|said| said.starts_with("Contents of ")), "nothing was tried");
}

#[test]
fn class_07_a_hard_link_to_outside_is_broken_not_followed() {
    let mut fence = Fence::with(&[]);
    for name in ["appended", "edited", "patched", "overwritten", "deleted"] {
        fs::hard_link(fence.lab.outside().join("elsewhere/secret"), fence.lab.ws().join(name)).unwrap();
    }
    fence.before = fence.beyond();
    let path = |name: &str, more: Value| {
        let mut arguments = more;
        arguments["path"] = json!(name);
        arguments
    };
    let secret = fence.lab.outside().join("elsewhere/secret");
    let server = Server::start(&script(&[vec![
        call("write_file", &path("appended", json!({"content": "x", "mode": "append"}))),
        call("edit_file", &path("edited", json!({"old_str": "hunter", "new_str": "x"}))),
        call("apply_patch", &path("patched", json!({"patch": "@@ -0,0 +1 @@\n+x\n"}))),
        call("read_file", &path("overwritten", json!({}))),
        call("write_file", &path("overwritten", json!({"content": "x"}))),
        call("delete_file", &path("deleted", json!({}))),
    ]]));
    fence.lab.run_yolo(&server, &[]).exits(0);
    let said = results(&server);
    assert!(!said.iter().any(|said| said.starts_with("Error")), "{said:?}");
    assert_eq!(fence.beyond(), fence.before);
    assert_eq!(secret.metadata().unwrap().nlink(), 1, "each link was broken");
    assert_eq!(fence.lab.read("overwritten"), "x");
    assert!(fence.lab.read("appended").ends_with('x') && fence.lab.read("edited").starts_with('x'));
    assert_eq!(names(&fence.lab, "."), ["appended", "edited", "inside.txt", "overwritten", "patched"]);
}

#[test]
fn class_08_the_kernels_own_links_lead_nowhere() {
    let fence = Fence::with(&[
        ("root", "/proc/self/root"),
        ("cwd", "/proc/self/cwd"),
        ("fd", "/proc/self/fd"),
        ("environ", "/proc/self/environ"),
        ("task", "/proc/thread-self/root"),
        ("stdin", "/dev/stdin"),
        ("dev-fd", "/dev/fd/0"),
        ("up-to-proc", "../../../../../../../../../proc/self/root"),
    ]);
    let secret = fence.absolute("elsewhere/secret");
    let mut paths = owned(&[
        "/proc/self/environ",
        "/proc/self/cmdline",
        "/proc/self/mem",
        "/proc/self/fd/0",
        "/dev/stdin",
        "/dev/fd/0",
        "root/etc/hostname",
        "cwd/inside.txt",
        "fd/0",
        "task/etc/hostname",
        "up-to-proc/etc/hostname",
    ]);
    paths.extend(["/proc/self/root", "root", "task", "up-to-proc"].map(|base| format!("{base}{secret}")));
    paths.push(format!("root{}/config.yaml", fence.lab.home().display()));
    let environ = ["environ", "stdin", "dev-fd", "root", "fd"]
        .map(|path| call("read_file", &json!({"path": path})))
        .to_vec();
    for said in fence.told(&environ) {
        assert!(said.starts_with("Error: Security error: "), "{said}");
    }
    fence.refuses(&paths);
}

/// A workspace with files that give no end, or nothing at all; somebody has written to the pipe.
fn endless() -> (Lab, fs::File, UnixListener) {
    let lab = Lab::new().file("inside.txt", "inside\n").config(&deleting());
    let lab = lab.file("piped/x", "needle\n").file("device/x", "needle\n");
    for path in ["pipe", "silent", "piped/.gitignore"] {
        mknodat(CWD, lab.ws().join(path), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    }
    symlink("/dev/zero", lab.ws().join("device/.gitignore")).unwrap();
    symlink("/dev/zero", lab.ws().join("zero")).unwrap();
    let mut pipe = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(lab.ws().join("pipe"))
        .unwrap();
    pipe.write_all(CANARY.as_bytes()).unwrap();
    let socket = UnixListener::bind(lab.ws().join("socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    // Only root makes devices, and not in every container: minor 5 of the memory devices is zero.
    let zero = rustix::fs::makedev(1, 5);
    let made =
        mknodat(CWD, lab.ws().join("node"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), zero);
    if made.is_err() {
        eprintln!("no device can be made here");
    }
    (lab, pipe, socket)
}

#[test]
fn class_09_pipes_sockets_and_devices_are_answered_about_and_never_waited_for() {
    let (lab, mut pipe, socket) = endless();
    let mut paths = vec!["pipe", "silent", "socket", "zero"];
    paths.extend(lab.exists("node").then_some("node"));
    let calls: Vec<Value> = paths
        .iter()
        .flat_map(|path| every_tool(path))
        .filter(|call| call["name"] != "delete_file" || call["arguments"]["path"] != "zero")
        .collect();
    let everywhere = vec![
        call("grep", &json!({"text": "hunter"})),
        call("search_code", &json!({"pattern": "need.e"})),
        call("find_files", &json!({"pattern": "*"})),
        call("list_files", &json!({"recursive": true})),
    ];
    let server = Server::start(&script(&[calls.clone(), everywhere]));
    lab.run_yolo(&server, &[]).exits(0);
    let requests = server.requests();
    for pair in requests.windows(2) {
        let took = pair[1].arrived - pair[0].arrived;
        assert!(took < SOON, "{took:?}");
    }
    let said = results(&server);
    for (call, said) in calls.iter().zip(&said) {
        assert!(said.starts_with("Error: "), "{call}: {said}");
    }
    let [grep, search, found, listed] = &said[calls.len()..] else { panic!("{said:?}") };
    assert!(grep.starts_with("No results") && search.contains("2 files left out: "), "{grep}\n{search}");
    assert!(found.contains("inside.txt") && found.contains("2 places left out: "), "{found}");
    assert!(listed.contains("pipe"), "{listed}");
    never_sent(&server, CANARY);
    let mut left = String::new();
    let _would_block = pipe.read_to_string(&mut left);
    assert_eq!(left, CANARY, "nobody read from the pipe, and nobody wrote to it");
    assert!(socket.accept().is_err(), "nobody connected to the socket");
    for path in paths {
        assert!(!fs::symlink_metadata(lab.ws().join(path)).unwrap().is_file(), "{path} was replaced");
    }
}

#[test]
fn class_09_what_is_read_before_a_run_is_not_waited_for_either() {
    let (lab, _pipe, _socket) = endless();
    for name in ["AGENTS.md", ".gitignore"] {
        mknodat(CWD, lab.ws().join(name), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    }
    let server = Server::start(&script(&[]));
    let begun = std::time::Instant::now();
    lab.run_yolo(&server, &[]).exits(0);
    assert!(server.requests()[0].arrived - begun < SOON);
}

/// A workspace with files that nobody may change, and some that nobody may see.
fn guarded() -> Lab {
    let config = "guardrails: {protected_files: [geheim-é.txt, vault/], sensitive_files: [Straße.txt, .env.local]}\n\
                  workspace: {allow_delete: true}\n";
    [".git/config", ".vscode/tasks.json", ".agent/config.yaml", ".claude/commands/x.md", "vault/x"]
        .iter()
        .fold(Lab::new(), |lab, path| lab.file(path, "# kept\n"))
        .config(&format!("{config}{NO_BREAKERS}"))
}

/// No tool changes a file under any of `paths`, each of which some file system takes for a protected one.
#[track_caller]
fn none_is_changed(paths: &[&str]) {
    let lab = guarded();
    let mut before = BTreeMap::new();
    look(&lab.ws(), &mut before);
    let calls: Vec<Value> = paths
        .iter()
        .flat_map(|path| every_tool(path))
        .filter(|call| CHANGES.contains(&call["name"].as_str().unwrap()))
        .collect();
    let turns: Vec<Vec<Value>> = calls.chunks(CALLS).map(<[Value]>::to_vec).collect();
    let server = Server::start(&script(&turns));
    lab.run_yolo(&server, &[]).exits(0);
    let allowed: Vec<String> = calls
        .iter()
        .zip(results(&server))
        .filter(|(_, said)| !said.starts_with("Error: Protected file blocked by guardrail: "))
        .map(|(call, said)| format!("{call}: {said}"))
        .collect();
    assert!(allowed.is_empty(), "{allowed:#?}");
    let mut after = BTreeMap::new();
    look(&lab.ws(), &mut after);
    assert_eq!(before, after);
}

#[test]
fn class_10_case_invisible_characters_and_forms_of_unicode_make_no_other_name() {
    none_is_changed(&[
        ".GIT/config",
        ".Git/hooks/pre-commit",
        "sub/.gIT/config",
        ".g\u{200c}it/config",
        ".git\u{200c}/hooks/x",
        "\u{feff}.git/config",
        ".gi\u{ad}t/config",
        ".agen\u{34f}t/config.yaml",
        ".claude\u{fe0f}/commands/x.md",
        ".vsc\u{e0020}ode/tasks.json",
        ".ｇit/config",
        "．git/config",
        "sub/.ＧＩＴ/hooks/x",
        ".𝐠𝐢𝐭/config",
        ".ⓖⓘⓣ/config",
        ".vſcode/tasks.json",
        ".VSCODE/tasks.json",
        "geheim-e\u{301}.txt",
        "GEHEIM-É.TXT",
        "GEHEIM-E\u{301}.TXT",
        "ｖault/x",
    ]);
}

#[test]
fn class_10_a_sensitive_file_has_no_other_name_either() {
    let lab = guarded().file("STRASSE.TXT", CANARY).file("straße.txt", CANARY).file(".ENV.local", CANARY);
    let lab = lab.file(".env.ｌocal", CANARY).file("inside.txt", "hunter\n");
    let paths = ["STRASSE.TXT", "straße.txt", ".ENV.local", ".env.ｌocal"];
    let calls: Vec<Value> = paths
        .iter()
        .flat_map(|path| every_tool(path))
        .filter(|call| call["name"] != "run_command")
        .chain([call("grep", &json!({"text": "hunter"})), call("search_code", &json!({"pattern": "hunter"}))])
        .collect();
    let server = Server::start(&script(std::slice::from_ref(&calls)));
    lab.run_yolo(&server, &[]).exits(0);
    never_sent(&server, CANARY);
    let said = results(&server);
    let (named, everywhere) = said.split_at(calls.len() - 2);
    for said in named {
        assert!(said.starts_with("Error: Sensitive file blocked by guardrail: "), "{said}");
    }
    for said in everywhere {
        assert!(said.contains("inside.txt") && said.contains("4 files left out: sensitive"), "{said}");
    }
}

#[test]
fn class_11_what_other_systems_cut_off_or_shorten_makes_no_other_name() {
    none_is_changed(&[
        ".git./config",
        ".git /config",
        ".git. ./config",
        ".git::$DATA/config",
        ".git::$INDEX_ALLOCATION/config",
        ".git:stream/config",
        ".agent/config.yaml::$DATA",
        ".envrc::$DATA",
        ".envrc.",
        ".envrc ",
        ".mcp.json. .",
        "GIT~1/config",
        "git~2/hooks/x",
        "VSCODE~1/tasks.json",
        "AGENT~1/config.yaml",
        "claude~1/commands/x.md",
        "GITMOD~1",
        "MCP~1.JSO",
        "AIDERC~1.YML",
        ".git\\config",
        "sub\\.git\\hooks\\x",
        ".vscode\\tasks.json",
        ".claude/commands/x\\..\\..\\..\\y.md",
        ".vscode/x\\..\\..\\y",
        "vault/x\\..\\..\\y",
    ]);
}

#[test]
fn class_11_ordinary_names_that_only_look_odd_are_ordinary_here() {
    let lab = guarded();
    let paths = [
        "a b.txt",
        " leading",
        "trailing ",
        "dots...",
        "...",
        "a\\b.txt",
        "..\\up.txt",
        "C:\\temp\\x.txt",
        "a:b",
        "CON",
        "nul.txt",
        "aux.rs",
        "com1.log",
        "lpt1",
        "ｆull.txt",
        "e\u{301}.txt",
        "zero\u{200b}width.txt",
        "~1",
        "digit~1",
        "backup.txt~",
        ".gitignore",
        ".gitattributes",
        ".github/x.yml",
        "git/x",
        "vscode/x",
        "claude.md",
        "agents/x",
        "envrc",
    ];
    let write = |path: &str| call("write_file", &json!({"path": path, "content": format!("in {path}")}));
    let read = |path: &str| call("read_file", &json!({"path": path}));
    let calls: Vec<Value> = paths.iter().flat_map(|path| [write(path), read(path)]).collect();
    let said = told(&lab, calls);
    for (path, said) in paths.iter().zip(said.chunks(2)) {
        assert!(said[0].contains("created successfully"), "{path}: {}", said[0]);
        assert!(said[1].contains(&format!("in {path}")), "{path}: {}", said[1]);
        assert_eq!(lab.read(path), format!("in {path}"), "it has the name that was asked for");
    }
}

#[test]
fn class_12_no_directory_that_the_model_chooses_becomes_the_boundary() {
    let fence = Fence::with(&[("out", "../elsewhere"), ("up", "..")]);
    fs::create_dir(fence.lab.ws().join("sub")).unwrap();
    let ran = fence.lab.ws().join("ran");
    let command = format!("cat *; touch {}", ran.display());
    let outside = fence.absolute("elsewhere");
    for cwd in ["..", "../elsewhere", "out", "up", "sub/../..", "/", "/tmp", outside.as_str()] {
        let said = fence.told(&[call("run_command", &json!({"command": command, "cwd": cwd}))]);
        assert!(said[0].starts_with("Error: Security error: "), "{cwd}: {}", said[0]);
        assert!(said[0].contains("Use a path"), "{cwd}: {}", said[0]);
    }
    let said = fence.told(&[
        call("run_command", &json!({"command": "cd / && pwd", "cwd": "sub"})),
        call("read_file", &json!({"path": "inside.txt"})),
        call("read_file", &json!({"path": "../inside.txt"})),
        call("run_command", &json!({"command": "pwd", "cwd": "inside.txt"})),
        call("run_command", &json!({"command": "pwd", "cwd": "nowhere"})),
        call("run_command", &json!({"command": "pwd", "cwd": "sub"})),
    ]);
    assert!(said[1].contains("inside\n"), "relative to the workspace still: {}", said[1]);
    assert!(said[2].starts_with("Error: Security error: "), "{}", said[2]);
    for said in &said[3..5] {
        assert!(said.starts_with("Error: ") && said.contains("not a directory of the workspace"), "{said}");
    }
    assert!(said[5].contains("/sub\n"), "{}", said[5]);
    assert!(!ran.exists());
}

#[test]
fn class_13_names_and_patterns_that_begin_with_a_dash_are_names_and_patterns() {
    let odd = ["-rf", "--pre=touch marker", "-e", "--help", "-exec touch marker ;", "--"];
    let lab = odd.iter().fold(Lab::new(), |lab, name| lab.file(name, format!("here {name} is\n")));
    let lab = lab.config("workspace: {allow_delete: true}\n");
    let mut calls = Vec::new();
    for name in odd {
        calls.extend([
            call("grep", &json!({"text": name})),
            call("search_code", &json!({"pattern": regex::escape(name), "context_lines": 0})),
            call("find_files", &json!({"pattern": name})),
            call("grep", &json!({"text": "here", "file_pattern": name})),
            call("grep", &json!({"text": "here", "path": name})),
            call("read_file", &json!({"path": name})),
        ]);
    }
    for (at, (call, said)) in calls.iter().zip(told(&lab, calls.clone())).enumerate() {
        let name = odd[at / 6];
        assert!(!said.starts_with("Error") && !said.starts_with("No "), "{call}: {said}");
        assert!(said.contains(name), "{call}: {said}");
    }
    let flags = ["--hidden", "--no-ignore", "--files", "-uuu", "--pre=touch marker", "-z", "-f/etc/passwd"];
    let calls: Vec<Value> = flags
        .iter()
        .flat_map(|flag| {
            [
                call("find_files", &json!({"pattern": flag, "path": "."})),
                call("list_files", &json!({"pattern": flag})),
                call("search_code", &json!({"pattern": flag, "file_pattern": flag})),
            ]
        })
        .collect();
    told(&lab, calls);
    let removed = odd.map(|name| call("delete_file", &json!({"path": name})));
    told(&lab, removed.to_vec());
    assert_eq!(names(&lab, "."), [""; 0], "each was taken for a file, and nothing was run");
}

#[test]
fn class_14_the_agent_extracts_no_archives() {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let linked: Vec<&str> =
        lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    assert!(linked.contains(&"agent"), "the lock file is read");
    for archives in [
        "tar",
        "zip",
        "async-tar",
        "tokio-tar",
        "async_zip",
        "rc-zip",
        "zip-extract",
        "sevenz-rust",
        "unrar",
        "cpio",
        "ar",
        "cab",
        "libarchive",
        "compress-tools",
        "lzma-rs",
        "debian-packaging",
    ] {
        assert!(!linked.contains(&archives), "{archives} is linked");
    }
}
