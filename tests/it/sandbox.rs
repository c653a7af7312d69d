//! The walls around commands, in each kind of kernel, as root and as an unprivileged user: what they claim is what holds.

use crate::support::calls::{self, script};
use crate::support::kernel::{Kernel, doctor, every_kernel, has_own_network, here, kernels};
use crate::support::run::{Finished, KEY, Lab, PATIENCE, program};
use crate::support::server::Server;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Those in which commands are confined.
pub fn confining() -> impl Iterator<Item = (Kernel, &'static str)> {
    kernels().into_iter().filter(|(_, tier)| *tier != "none")
}

/// What the model reads about `sh` with this text, which stands in a file: the rules about texts are another matter.
pub fn run_script(lab: &Lab, kernel: Kernel, script: &str) -> Finished {
    fs::write(lab.ws().join("attempt.sh"), script).unwrap();
    call(lab, kernel)
}

fn call(lab: &Lab, kernel: Kernel) -> Finished {
    let arguments = json!({"command": "sh attempt.sh"}).to_string();
    kernel.agent(lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"])
}

pub fn said(finished: &Finished) -> String {
    format!("{}{}", finished.stdout, finished.stderr)
}

/// As root, where the tests are, and as an unprivileged user.
fn for_each_user(test: impl Fn(&dyn Fn(Lab) -> Lab)) {
    test(&|lab| lab);
    if rustix::process::geteuid().is_root() {
        test(&Lab::unprivileged);
    }
}

/// A project with a repository and configuration that programs obey.
pub fn project() -> Lab {
    Lab::new()
        .started()
        .file(".git/config", "[core]\n\tbare = false\n")
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file(".git/objects/keep", "")
        .file(".git/hooks/pre-push.sample", "#!/bin/sh\n")
        .file(".vscode/settings.json", "{}\n")
        .file("notes.txt", "kept\n")
}

#[test]
fn k24_doctor_tells_the_truth_in_each_kernel() {
    for_each_user(|user| {
        for (kernel, tier) in kernels() {
            let lab = user(project());
            if !here(&lab, kernel, tier) {
                continue;
            }
            let doctor = doctor(&lab, kernel);
            let works = |name: &str| doctor.lines().any(|line| line.trim() == format!("{name:<12} works"));
            assert_eq!(works("full"), tier == "full", "{kernel:?}: {doctor}");
            assert!(works("bubblewrap") || tier != "bubblewrap", "{kernel:?}: {doctor}");
            assert_eq!(works("rules"), tier != "none", "{kernel:?}: {doctor}");
            let said = doctor.to_lowercase().matches("not confined").count();
            assert_eq!(said, usize::from(tier == "none"), "said once: {kernel:?}: {doctor}");
            assert!(!doctor.contains("leaks"), "{kernel:?}: {doctor}");
            let no_reason =
                ["os error 0", "doctor` for the cause"].into_iter().find(|text| doctor.contains(text));
            assert_eq!(no_reason, None, "{kernel:?}: {doctor}");
        }
    });
}

#[test]
fn the_tier_does_not_depend_on_how_long_the_paths_are() {
    for (kernel, tier) in confining() {
        let lab = project();
        let deep = lab.home().join("d".repeat(100));
        let lab = lab.env("AGENT_HOME", deep.to_str().unwrap());
        let text = doctor(&lab, kernel);
        assert!(text.contains(&format!("sandbox        {tier}:")), "{kernel:?} is not {tier}:\n{text}");
    }
}

#[test]
fn k24_the_log_the_document_and_doctor_name_the_same_confinement_in_each_kernel() {
    for_each_user(|user| {
        for (kernel, tier) in kernels() {
            let lab = user(project());
            if !here(&lab, kernel, tier) {
                continue;
            }
            let server = Server::start("turns: [{text: done}, {text: done}, {text: done}, {text: done}]");
            let url = server.url();
            let args = [
                "run",
                "task",
                "--model",
                "openai/mock",
                "--api-base",
                &url,
                "--api-key",
                KEY,
                "--no-stream",
            ];
            let json = kernel.agent(&lab, &[&args[..], &["--json"]].concat()).exits(0).json();
            assert_eq!(json["sandbox"], tier, "{kernel:?}");
            for more in [&[][..], &["-vv"], &["-v", "--json"]] {
                let told = kernel.agent(&lab, &[&args[..], more].concat()).exits(0).stderr;
                let first = told.lines().next().unwrap();
                assert!(first.contains(&format!("sandbox {tier}")), "{kernel:?}: {told}");
                assert_eq!(told.contains("commands are NOT confined"), tier == "none", "{kernel:?}: {told}");
            }
            let doctor = doctor(&lab, kernel);
            assert!(doctor.contains(&format!("sandbox        {tier}:")), "{kernel:?}: {doctor}");
        }
    });
}

#[test]
fn doctor_believes_what_it_tries_and_not_what_was_remembered() {
    let lab = project();
    doctor(&lab, Kernel::DockerWithoutLandlock);
    let (_, best) = every_kernel()[1];
    assert!(doctor(&lab, Kernel::Docker).contains(&format!("sandbox        {best}:")), "{best}");
}

#[test]
fn what_cannot_be_tried_or_built_is_no_reason_to_confine_less() {
    for (kernel, _tier) in confining() {
        let lab = project();
        run_script(&lab, kernel, "true").exits(0);
        let remembered = find(&lab.home(), "sandbox.json").expect("the tier is remembered");
        let temporary = find(&lab.home(), "tmp").expect("the directory above those of the runs");
        fs::remove_dir(&temporary).unwrap();
        fs::write(&temporary, "in the way").unwrap();
        let refused = said(&run_script(&lab, kernel, "touch ran"));
        assert!(refused.contains("cannot make") && !lab.exists("ran"), "{refused}");
        fs::remove_file(&remembered).unwrap();
        let untried = said(&run_script(&lab, kernel, "touch ran").exits(3));
        // Fault A13: the sandbox was blamed, with the advice to run without it.
        let is_named = untried.contains(&format!("state directory {}", temporary.display()));
        assert!(is_named && !untried.contains("--sandbox off") && !lab.exists("ran"), "{untried}");
    }
}

// Fault A13: a limit on open files was blamed on the sandbox, even without one.
#[test]
fn a_start_that_fails_names_the_limit_on_open_files_and_keeps_the_sandbox() {
    let lab = project().file("script.yaml", "turns: [{text: done}]");
    for off in ["", "--sandbox off"] {
        let mut shell = Command::new("/bin/bash");
        let run = format!(
            "ulimit -n 12; exec '{}' run task --model scripted:script.yaml {off}",
            lab.program().display()
        );
        let output =
            shell.args(["-c", &run]).current_dir(lab.ws()).env("AGENT_HOME", lab.home()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{stderr}");
        assert!(
            !stderr.contains("with `--sandbox off`") && !stderr.contains("Continue with: agent resume\n"),
            "{stderr}"
        );
        assert!(stderr.contains("ulimit -n"), "{stderr}");
    }
}

#[test]
fn what_holds_commands_together_is_tried_once_without_confinement_too() {
    let lab = project().file("script.yaml", "turns: [{text: done, repeat: 4}]");
    let model = format!("scripted:{}", lab.ws().join("script.yaml").display());
    let args = ["run", "task", "--model", &model];
    let kept = ["sandbox-off.json", "sandbox.json"].map(|name| {
        let off: &[&str] = if name == "sandbox.json" { &[] } else { &["--sandbox", "off"] };
        let inode = || {
            lab.agent(&[&args[..], off].concat()).exits(0);
            fs::metadata(find(&lab.home(), name).expect("the tier is remembered")).unwrap().ino()
        };
        let [first, second] = [inode(), inode()];
        assert_eq!(first, second, "{name} was written anew");
        first
    });
    assert_ne!(kept[0], kept[1]);
}

#[test]
fn required_confinement_is_refused_where_it_is_not_to_be_had() {
    for (kernel, tier) in kernels() {
        let lab = project().config("sandbox: {mode: require}\n");
        let finished =
            kernel.agent(&lab, &["tools", "call", "run_command", r#"{"command":"true"}"#, "--mode", "yolo"]);
        let is_full = matches!(tier, "full" | "bubblewrap");
        let code = if is_full { 0 } else { 3 };
        let text = said(&finished.exits(code));
        assert_eq!(text.contains("sandbox.mode: require"), !is_full, "{text}");
        let script = lab.ws().join("script.yaml");
        fs::write(&script, "turns: [{text: done}]").unwrap();
        let model = format!("scripted:{}", script.display());
        let run = kernel.agent(&lab, &["run", "task", "--model", &model, "--json"]).exits(code).json();
        assert_eq!(run["sandbox"], tier, "what there is is said: {run}");
    }
}

#[test]
fn a_run_that_requires_more_than_there_is_asks_no_model_and_only_a_flag_switches_confinement_off() {
    let server = Server::done();
    let url = server.url();
    let run = ["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
    let lab = project();
    let refused = Kernel::Docker.agent(&lab, &[&run[..], &["--sandbox", "require"]].concat()).exits(3);
    assert!(refused.stderr.contains("sandbox.mode: require") && server.requests().is_empty(), "{refused:?}");
    for lab in [
        project().config("sandbox: {mode: off}\n"),
        project().file(".agent/config.yaml", "sandbox: {mode: off}\n"),
        project().env("AGENT_SANDBOX", "off"),
    ] {
        let refused = lab.agent(&run).exits(3);
        assert!(refused.stderr.contains("sandbox") && server.requests().is_empty(), "{refused:?}");
    }
    let off = lab.agent(&[&run[..], &["--sandbox", "off"]].concat()).exits(0);
    assert!(off.stderr.contains("commands are NOT confined (--sandbox off)"), "{off:?}");
}

#[test]
fn class_43_hooks_and_background_commands_are_behind_the_same_walls() {
    for (kernel, tier) in confining() {
        let lab = project();
        let file = outside(&lab).join("file");
        fs::write(&file, "kept").unwrap();
        let attempt = format!(
            "echo evil > {0} || touch refused-$1\n[ -z \"$KEY_OF_OURS\" ] && touch none-$1\n",
            file.display()
        );
        let lab = lab
            .env("KEY_OF_OURS", "sk-stand-in-0123456789")
            .file("attempt.sh", attempt)
            .config("hooks:\n  session_start: [{command: sh attempt.sh start}]\n  post_tool_use: [{command: sh attempt.sh after}]\n");
        let call = |arguments| vec![calls::call("run_command", &arguments)];
        let background = call(json!({"command": "sh attempt.sh background; touch over", "background": true}));
        let wait = call(json!({"command": "until [ -e over ]; do :; done"}));
        let server = Server::start(&script(&[background, wait]));
        let url = server.url();
        let args =
            ["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY, "--mode", "yolo"];
        let run = kernel.agent(&lab, &args).exits(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept", "{tier}: {run:?}");
        for who in ["start", "after", "background"] {
            let both = lab.exists(&format!("refused-{who}")) && lab.exists(&format!("none-{who}"));
            assert!(both, "{tier}, {who}: {run:?}");
        }
    }
}

#[test]
fn s24_class_43_no_act_of_the_suite_gets_through_the_walls() {
    for_each_user(|user| {
        for ((kernel, tier), at_home) in confining().flat_map(|kernel| [(kernel, false), (kernel, true)]) {
            let lab = user(project());
            if !here(&lab, kernel, tier) {
                continue;
            }
            let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            fs::set_permissions(elsewhere.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let place = if at_home { outside(&lab) } else { elsewhere.path().to_owned() };
            // The rights, owners, times and attributes of files outside are not for rules to hold: the warning and the manual say so.
            let beyond_walls: &[&str] = if tier == "rules" {
                &["chmod outside", "utimens outside", "attributes outside", "chown outside"]
            } else if at_home && place.starts_with("/tmp") {
                // No mount keeps a pipe from being written to, and Landlock allows all below the command's own `/tmp`.
                &["write into a pipe outside"]
            } else {
                &[]
            };
            for (act, was_possible) in attempts(&lab, kernel, &place) {
                let is_expected = beyond_walls.contains(&act.as_str());
                assert_eq!(was_possible, is_expected, "{act}: {kernel:?}, {:?}, {place:?}", lab.uid());
            }
        }
    });
}

/// A directory outside of the workspace that commands can see, also below `/tmp`: one of the home directory.
fn outside(lab: &Lab) -> PathBuf {
    let place = lab.home().join("outside");
    fs::create_dir_all(&place).unwrap();
    place
}

/// The acts of `attempts.c`, and whether each was possible; `outside` is where those on files outside are tried.
fn attempts(lab: &Lab, kernel: Kernel, outside: &Path) -> Vec<(String, bool)> {
    fs::write(outside.join("file"), "kept").unwrap();
    let pipe = outside.join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _reader = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    fs::create_dir_all(lab.home().join(".ssh")).unwrap();
    fs::write(lab.home().join(".ssh/id_stand_in"), "secret").unwrap();
    symlink(outside.join("file"), lab.ws().join("leads-outside")).unwrap();
    let source = outside.join("attempts.c");
    fs::write(&source, include_str!("support/attempts.c")).unwrap();
    let program = lab.ws().join("attempts");
    assert!(Command::new("cc").arg("-o").args([&program, &source]).status().unwrap().success());
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    // Where it is seen it can be reached: no wall knows a socket from a file.
    let path = lab.home().join(".ssh/socket");
    let _path = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let name = format!("agent-test-{}-{}", std::process::id(), tcp.local_addr().unwrap().port());
    let _name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    own_everything(lab, outside);
    own_everything(lab, &lab.outside());
    let script = format!(
        "./attempts '{}' {} {} '{}' '{name}' '{}'",
        outside.display(),
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
        path.display(),
        lab.home().join(".ssh/id_stand_in").display()
    );
    let text = said(&run_script(lab, kernel, &script));
    assert!(text.contains("done"), "{text}");
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram arrived");
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    let outcome = |line: &str| {
        let (was, act) = line.split_once(": ")?;
        ["possible", "refused"].contains(&was).then(|| (act.to_owned(), was == "possible"))
    };
    let acts: Vec<_> = text.lines().filter_map(outcome).collect();
    assert!(acts.len() > 30, "{text}");
    acts
}

/// What the test has made since belongs to the user of the lab.
fn own_everything(lab: &Lab, place: &Path) {
    if let Some(uid) = lab.uid() {
        let mut todo = vec![place.to_owned()];
        while let Some(path) = todo.pop() {
            std::os::unix::fs::lchown(&path, Some(uid), Some(uid)).unwrap();
            if path.is_dir() && !path.is_symlink() {
                todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    }
}

#[test]
fn s24_a_command_has_no_rights_and_little_environment() {
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let lab = user(project()).env("OPENAI_API_KEY", "sk-stand-in-0123456789");
            let script = "grep -E 'NoNewPrivs|CapEff|CapBnd|Seccomp:' /proc/self/status; env; ls -la /dev/shm; \
                          tr '\\0' '\\n' < /proc/1/environ; echo 2>&1 > /dev/null";
            let text = said(&run_script(&lab, kernel, script));
            assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{tier}: {text}");
            assert!(!text.contains("sk-stand-in"), "{tier}: {text}");
            // chown, dac_override, fowner, fsetid, kill, setgid, setuid: bits 0, 1, 3, 4, 5, 6, 7.
            let bounding = text.lines().find_map(|line| line.strip_prefix("CapBnd:\t")).unwrap();
            let bounding = u64::from_str_radix(bounding, 16).unwrap();
            if rustix::process::geteuid().is_root() && lab.uid().is_none() {
                assert_eq!(bounding & !0b1111_1011, 0, "{tier}: {text}");
            }
            assert!(
                text.contains(if lab.uid().is_some() { "CapEff:\t0000000000000000" } else { "CapEff:\t" }),
                "{text}"
            );
        }
    });
}

#[test]
fn class_24_protected_files_are_as_before_whatever_a_command_did() {
    const ATTACK: &str = "\
        echo '[core] fsmonitor = ./evil' >> .git/config
        mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
        chmod 777 .git/hooks/pre-push.sample
        rm -rf .vscode
        echo evil > .envrc; mkdir -p .claude; echo evil > .claude/settings.json; ln -s /etc .husky
        echo mine > new.txt; true";
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let lab = user(project());
            let text = said(&run_script(&lab, kernel, ATTACK));
            assert_eq!(lab.read(".git/config"), "[core]\n\tbare = false\n", "{tier}: {text}");
            assert_eq!(lab.read(".vscode/settings.json"), "{}\n", "{tier}");
            for name in [".envrc", ".claude", ".husky", ".git/hooks/post-checkout"] {
                assert!(!lab.exists(name), "{tier}: {name} is there: {text}");
            }
            let sample = fs::metadata(lab.ws().join(".git/hooks/pre-push.sample")).unwrap();
            assert_eq!(sample.permissions().mode() & 0o777, 0o644, "{tier}");
            assert_eq!(lab.read("new.txt"), "mine\n", "what is allowed stays");
            assert!(text.contains("Command failed: it changed protected files"), "{tier}: {text}");
            assert!(text.contains(".envrc\" (created, now removed)"), "{tier}: {text}");
            let restored = text.contains(".git/config\" (changed, now restored)");
            assert_eq!(restored, tier == "rules", "{tier}: {text}");
            assert!(text.contains("is stored in "), "{tier}: {text}");
            assert!(text.contains("\nPut back:\n") && !text.contains("NOT be put back"), "{tier}: {text}");
        }
    });
}

#[test]
fn what_a_command_did_to_protected_files_is_told_to_people_in_one_line_that_names_it() {
    for (kernel, tier) in confining() {
        let lab = project().file("attempt.sh", "echo evil > .envrc; mkdir .claude; echo evil > .claude/x");
        let server =
            Server::start(&script(&[vec![calls::call("run_command", &json!({"command": "sh attempt.sh"}))]]));
        let args = ["run", "task", "--mode", "yolo", "--model", "openai/mock", "--api-key", KEY];
        let told = kernel.agent(&lab, &[&args[..], &["--api-base", &server.url()]].concat()).exits(0).stderr;
        let line = told
            .lines()
            .find(|line| line.starts_with("warning: the command `sh attempt.sh` broke a rule: it"));
        let line = line.unwrap_or_else(|| panic!("{kernel:?}: {told}"));
        assert!(line.contains("Put back: \"") && line.contains(" is stored in "), "{tier}: {line}");
        assert!(!told.contains(r"\n"), "{tier}: {told}");
    }
}

#[test]
fn a_refused_write_is_answered_with_where_commands_may_write() {
    for (kernel, tier) in confining() {
        let lab = project();
        let marker = outside(&lab).join("marker");
        let write =
            format!("echo x > {}; echo y > $TMPDIR/mine && cat $TMPDIR/mine; exit 1", marker.display());
        let text = said(&run_script(&lab, kernel, &write));
        assert!(text.contains("\ny\n") && !marker.exists(), "{tier}: {text}");
        assert!(text.contains("can write to the workspace and $TMPDIR only"), "{tier}: {text}");
    }
}

/// What a command can do to the process that would put the files back, and to itself.
#[test]
fn class_43_a_command_cannot_keep_protected_files_from_being_put_back() {
    const ATTACK: &str = "\
        echo evil > .envrc; echo evil >> .git/config; echo evil > .vscode/settings.json
        kill -9 $PPID; kill -STOP $PPID; kill -TERM $PPID
        prlimit --pid $PPID --nofile=1:1; prlimit --pid $PPID --fsize=0:0
        chmod 000 .vscode .git .; true";
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let lab = user(project());
            if !here(&lab, kernel, tier) {
                continue;
            }
            let text = said(&run_script(&lab, kernel, ATTACK));
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            let of_the_command = [lab.ws(), lab.ws().join(".git")].map(|path| {
                let mode = mode(&path);
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
                mode
            });
            assert_eq!(of_the_command, [0, 0], "{tier}: what is not protected stays as it was made: {text}");
            assert!(!lab.exists(".envrc"), "{tier}, {:?}: {text}", lab.uid());
            assert_eq!(
                lab.read(".git/config"),
                "[core]\n\tbare = false\n",
                "{tier}, {:?}: {text}",
                lab.uid()
            );
            assert_eq!(lab.read(".vscode/settings.json"), "{}\n", "{tier}, {:?}: {text}", lab.uid());
            assert!(!text.contains("could NOT be put back"), "{tier}, {:?}: {text}", lab.uid());
        }
    });
}

#[test]
fn class_43_a_repository_that_is_closed_and_moved_comes_back_as_it_was() {
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let lab = user(project());
            // What `mv` refuses to do with a directory that it cannot read, the kernel does.
            let attack = "echo '[core] fsmonitor = ./evil' >> .git/config; mkdir -p .git/hooks; \
                chmod 000 .git; perl -e 'rename \".git\", \"elsewhere\"'; true";
            let text = said(&run_script(&lab, kernel, attack));
            let git = lab.ws().join(".git");
            assert!(!text.contains("could NOT be put back"), "{tier}, {:?}: {text}", lab.uid());
            fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(
                lab.read(".git/config"),
                "[core]\n\tbare = false\n",
                "{tier}, {:?}: {text}",
                lab.uid()
            );
        }
    });
}

/// The agent at a terminal of its own, which the command tries to type into.
#[test]
fn class_42_a_command_at_a_terminal_neither_opens_it_nor_types_into_it() {
    for_each_user(|user| {
        for (kernel, tier) in kernels() {
            let lab = user(project());
            if !here(&lab, kernel, tier) {
                continue;
            }
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
            grantpt(&master).unwrap();
            unlockpt(&master).unwrap();
            let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
            fs::set_permissions(&name, fs::Permissions::from_mode(0o666)).unwrap();
            // 0x5412 is TIOCSTI.
            let attack = format!(
                "(echo x > /dev/tty) 2>/dev/null && echo opened it
                 perl -e 'open(F, \"+<\", \"{name}\") and ioctl(F, 0x5412, my $x = \"x\") and print \"typed into it\n\"'
                 echo done"
            );
            fs::write(lab.ws().join("attempt.sh"), attack).unwrap();
            let arguments = json!({"command": "sh attempt.sh"}).to_string();
            let agent = kernel.command(&lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"]);
            let mut at_terminal = Command::new("setsid");
            at_terminal.args(["--ctty", "--wait"]).arg(agent.get_program()).args(agent.get_args());
            at_terminal.current_dir(lab.ws()).env_clear();
            at_terminal.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
            at_terminal.stdin(fs::File::options().read(true).write(true).open(&name).unwrap());
            if let Some(uid) = lab.uid() {
                at_terminal.uid(uid).gid(uid);
            }
            let output = at_terminal.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("done") && !text.contains("opened it"), "{tier}: {text}");
            assert!(tier == "none" || !text.contains("typed into it"), "{tier}: {text}");
        }
    });
}

/// What the manual lists as not seen, in each tier.
#[test]
fn class_55_what_is_promised_not_to_be_seen_is_not_seen() {
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let lab = project();
            let place = outside(&lab);
            let hidden = place.join("hidden");
            fs::create_dir(&hidden).unwrap();
            for directory in [&place, &hidden] {
                fs::write(directory.join("file"), "stand-in of a secret").unwrap();
            }
            let lab = user(lab.config(&format!("sandbox: {{hidden: ['{}']}}\n", hidden.display())));
            if !here(&lab, kernel, tier) {
                continue;
            }
            let of_others = tempfile::NamedTempFile::new_in("/tmp").unwrap();
            fs::write(&of_others, "stand-in of a secret").unwrap();
            fs::set_permissions(&of_others, fs::Permissions::from_mode(0o644)).unwrap();
            let state = find(&lab.home(), "sandbox.json").expect("the tier is remembered");
            let cat = |name: &str, path: &Path| {
                format!("cat '{}' >/dev/null && echo sees {name}\n", path.display())
            };
            let script = [
                cat("a file outside", &place.join("file")),
                cat("a hidden file", &hidden.join("file")),
                cat("our state", &state),
                cat("files of others in /tmp", of_others.path()),
                format!("[ -d /proc/{} ] && echo sees processes outside\n", std::process::id()),
                "echo done\n".to_owned(),
            ];
            let text = said(&run_script(&lab, kernel, &script.concat()));
            let seen: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("sees ")).collect();
            let beyond_rules = ["files of others in /tmp", "processes outside"];
            let expected =
                ["a file outside"].into_iter().chain(beyond_rules.into_iter().filter(|_| tier == "rules"));
            assert_eq!(seen, expected.collect::<Vec<_>>(), "{tier}, {:?}: {text}", lab.uid());
        }
    });
}

/// The first file or directory of this name below `place`.
fn find(place: &Path, name: &str) -> Option<PathBuf> {
    let mut entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries.find_map(|path| {
        if path.ends_with(name) {
            return Some(path);
        }
        path.is_dir().then(|| find(&path, name)).flatten()
    })
}

#[test]
fn a_moved_repository_comes_back_and_one_that_took_its_place_goes() {
    for (kernel, tier) in confining() {
        let lab = project();
        let attack = "mv .git elsewhere && mkdir .git && echo '[core] pager = evil' > .git/config; true";
        let text = said(&run_script(&lab, kernel, attack));
        assert_eq!(lab.read(".git/config"), "[core]\n\tbare = false\n", "{tier}: {text}");
        assert!(lab.exists(".git/objects/keep") && !lab.exists("elsewhere"), "{tier}: {text}");
    }
}

#[test]
fn a_link_in_the_place_of_a_protected_directory_leads_nowhere_when_it_is_put_back() {
    for (kernel, tier) in confining() {
        let lab = project();
        let victim = lab.outside().join("victim");
        fs::create_dir(&victim).unwrap();
        let attack =
            format!("rm -rf .vscode .git; ln -s '{0}' .vscode; ln -s '{0}' .git; true", victim.display());
        let text = said(&run_script(&lab, kernel, &attack));
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{tier}: {text}");
        assert_eq!(lab.read(".vscode/settings.json"), "{}\n", "{tier}: {text}");
        assert_eq!(lab.read(".git/config"), "[core]\n\tbare = false\n", "{tier}: {text}");
    }
}

#[test]
fn s11_class_24_a_protected_file_that_is_named_by_its_path_is_held_against_commands_too() {
    for (kernel, tier) in confining() {
        let lab = project()
            .file("Jenkinsfile", "mine\n")
            .file("ci/jobs/build.yml", "mine\n")
            .file("ci/other.yml", "mine\n")
            .config("guardrails: {protected_files: [Jenkinsfile, ci/jobs/, ./new.yml, '*.lock']}\n");
        let attack = "for f in Jenkinsfile ci/jobs/build.yml ci/other.yml new.yml; do echo evil > $f; done
            rm -rf ci/jobs; echo a > a.lock; true";
        let text = said(&run_script(&lab, kernel, attack));
        for (name, content) in
            [("Jenkinsfile", "mine\n"), ("ci/jobs/build.yml", "mine\n"), ("ci/other.yml", "evil\n")]
        {
            assert_eq!(lab.read(name), content, "{tier}, {name}: {text}");
        }
        assert!(
            text.contains("new.yml\" (created, now removed)") && !lab.exists("new.yml"),
            "{tier}: {text}"
        );
        assert!(lab.exists("a.lock"), "{tier}: {text}");
    }
}

#[test]
fn nested_repositories_and_what_git_files_lead_to_are_protected() {
    for (kernel, tier) in confining() {
        let lab = project()
            .file("deep/er/inner/.git/config", "[core]\n")
            .file("tree/.git", "gitdir: ../store/worktree\n")
            .file("store/worktree/commondir", "../common\n")
            .file("store/common/config", "[core]\n");
        let attack = "for f in deep/er/inner/.git/config tree/.git store/common/config store/worktree/commondir; do
            echo evil > $f; done; mkdir -p deep/er/inner/.git/hooks; echo evil > deep/er/inner/.git/hooks/pre-commit; true";
        let text = said(&run_script(&lab, kernel, attack));
        for (name, content) in [
            ("deep/er/inner/.git/config", "[core]\n"),
            ("tree/.git", "gitdir: ../store/worktree\n"),
            ("store/worktree/commondir", "../common\n"),
            ("store/common/config", "[core]\n"),
        ] {
            assert_eq!(lab.read(name), content, "{tier}, {name}: {text}");
        }
        assert!(!lab.exists("deep/er/inner/.git/hooks/pre-commit"), "{tier}: {text}");
    }
}

#[test]
fn protected_links_are_no_obstacle_and_stay() {
    for (kernel, tier) in confining() {
        let lab = project().file("shared/settings.json", "{}\n");
        symlink("shared", lab.ws().join(".idea")).unwrap();
        symlink("nowhere", lab.ws().join(".envrc")).unwrap();
        let text = said(&run_script(&lab, kernel, "echo works; rm .idea .envrc; mkdir .idea; true"));
        assert!(text.contains("works"), "{tier}: {text}");
        assert_eq!(fs::read_link(lab.ws().join(".idea")).unwrap(), Path::new("shared"), "{tier}: {text}");
        assert_eq!(fs::read_link(lab.ws().join(".envrc")).unwrap(), Path::new("nowhere"), "{tier}: {text}");
    }
}

#[test]
fn a_new_repository_may_be_made_but_not_one_that_runs_programs() {
    for (kernel, tier) in confining() {
        let lab = Lab::new().started();
        let text = said(&run_script(&lab, kernel, "git init -q . && git config user.name me"));
        assert!(text.contains("exit_code: 0") && !text.contains("protected"), "{tier}: {text}");
        assert!(lab.read(".git/config").contains("name = me"));
        let lab = Lab::new().started();
        let text = said(&run_script(&lab, kernel, "git init -q . && git config core.fsmonitor ./evil"));
        assert!(text.contains(".git\" (created, now removed)") && !lab.exists(".git"), "{tier}: {text}");
    }
}

#[test]
fn protected_files_are_put_back_after_a_time_limit_and_after_kill_9_of_the_agent() {
    for (kernel, tier) in confining() {
        let attack = "echo evil > .envrc; echo evil >> .git/config; touch begun; sleep 300";
        let lab = project().file("attempt.sh", attack);
        let arguments = json!({"command": "sh attempt.sh", "timeout": 1}).to_string();
        let text = said(&kernel.agent(&lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"]));
        assert!(text.contains("timed out") && text.contains(".envrc"), "{tier}: {text}");
        assert!(!lab.exists(".envrc") && !lab.read(".git/config").contains("evil"), "{tier}");
        for signal in [Signal::KILL, Signal::TERM] {
            let _gone = fs::remove_file(lab.ws().join("begun"));
            let arguments = json!({"command": "sh attempt.sh"}).to_string();
            let running = kernel.start(&lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"]);
            lab.wait_for_file("begun");
            running.signal(signal);
            running.finish();
            let end = std::time::Instant::now() + PATIENCE;
            let is_restored = || {
                let config = fs::read_to_string(lab.ws().join(".git/config"));
                !lab.exists(".envrc") && config.is_ok_and(|config| !config.contains("evil"))
            };
            while !is_restored() {
                assert!(std::time::Instant::now() < end, "{tier}, {signal:?}: not put back");
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn what_the_walls_refuse_comes_with_a_hint() {
    for (kernel, tier) in confining() {
        let lab = project();
        let script = "echo \"fatal: unable to access 'https://x/': Could not resolve host: x\" >&2; exit 128";
        let text = said(&run_script(&lab, kernel, script));
        assert!(text.contains("--allow-net"), "{tier}: {text}");
        let outside = outside(&lab).join("new");
        let text = said(&run_script(&lab, kernel, &format!("echo x > '{}'", outside.display())));
        assert!(text.contains("--allow-write DIR") && !outside.exists(), "{tier}: {text}");
        let text = said(&run_script(&lab, kernel, "exit 3"));
        assert!(!text.contains("--allow"), "{tier}: {text}");
    }
}

/// What a command in the workspace `ws` prints.
fn in_workspace(lab: &Lab, kernel: Kernel, ws: &Path, script: &str) -> String {
    let arguments = json!({"command": script}).to_string();
    let options = ["-w", ws.to_str().unwrap(), "--mode", "yolo"];
    said(&kernel.agent(lab, &[&["tools", "call", "run_command", &arguments][..], &options].concat()))
}

#[test]
fn workspace_below_tmp_has_its_repository_and_its_programs_as_elsewhere() {
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let place = tempfile::tempdir_in("/tmp").unwrap();
            let make = "git init -q main && mkdir -p main/part main/venv/bin && cd main && \
                        git -c user.name=me -c user.email=me commit -q --allow-empty -m first && \
                        git worktree add -q ../linked && echo stand-in > ../beside";
            let made = Command::new("sh").args(["-c", make]).current_dir(&place).status().unwrap();
            assert!(made.success());
            let programs = place.path().join("main/venv/bin");
            let search_path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
            let lab = user(project().env("PATH", &search_path));
            own_everything(&lab, place.path());
            for ws in ["main", "main/part", "linked"].map(|name| place.path().join(name)) {
                let text = in_workspace(&lab, kernel, &ws, "git log --format=%s && echo mine > file");
                let written = fs::read_to_string(ws.join("file"));
                assert!(text.contains("first\n") && written.is_ok(), "{tier}, {}: {text}", ws.display());
                let text = in_workspace(&lab, kernel, &ws, "cat ../../beside ../beside");
                assert_eq!(text.contains("stand-in"), tier == "rules", "{tier}, {}: {text}", ws.display());
            }
            let install = "printf '#!/bin/sh\necho installed\n' > venv/bin/tool && chmod +x venv/bin/tool && venv/bin/tool";
            let text = in_workspace(&lab, kernel, &place.path().join("main"), install);
            assert!(text.contains("installed\n"), "{tier}: {text}");
            let change = "echo x > ../venv/bin/new; echo x >> ../.git/HEAD";
            let text = in_workspace(&lab, kernel, &place.path().join("main/part"), change);
            let is_changed = programs.join("new").exists()
                || fs::read_to_string(place.path().join("main/.git/HEAD")).unwrap().contains('x');
            assert!(!is_changed, "{tier}: {text}");
        }
    });
}

#[test]
fn executable_below_tmp_is_found_by_commands_without_what_lies_beside_it() {
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let place = tempfile::tempdir_in("/tmp").unwrap();
            let (tested, program) = (program(), place.path().join("agent"));
            // A copy made by this process could be held open for writing by a fork of another test and not be executable.
            assert!(Command::new("cp").args([tested.as_ref(), &*program]).status().unwrap().success());
            fs::write(place.path().join("beside"), "stand-in").unwrap();
            let lab = user(project().executable(&program));
            fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
            own_everything(&lab, place.path());
            let script =
                format!("{0}/agent --version; cat {0}/beside; echo x >> {0}/agent", place.path().display());
            for _ in 0..2 {
                let text = said(&run_script(&lab, kernel, &script));
                assert!(text.contains(concat!("agent ", env!("CARGO_PKG_VERSION"))), "{tier}: {text}");
                assert_eq!(text.contains("stand-in"), tier == "rules", "{tier}: {text}");
                let length = |path: &Path| fs::metadata(path).unwrap().len();
                assert_eq!(length(&program), length(tested.as_ref()), "{tier}: {text}");
            }
        }
    });
}

#[test]
fn program_below_tmp_runs_where_its_directory_is_in_path_and_the_hint_says_so() {
    for (kernel, tier) in confining() {
        let place = tempfile::tempdir_in("/tmp").unwrap();
        let program = place.path().join("tool");
        fs::write(&program, "#!/bin/sh\necho it runs\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let script = program.to_str().unwrap();
        let text = said(&run_script(&project(), kernel, script));
        assert_eq!(text.contains("it runs\n"), tier == "rules", "{tier}: {text}");
        assert_eq!(text.contains("PATH"), tier != "rules", "{tier}: {text}");
        let search_path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
        let text = said(&run_script(&project().env("PATH", &search_path), kernel, script));
        assert!(text.contains("it runs\n"), "{tier}: {text}");
    }
}

#[test]
fn loopback_works_inside_and_tmp_is_private() {
    if !has_own_network() {
        return;
    }
    let lab = project();
    let script = "python3 - <<'E' || node -e 'const n=require(\"net\");const s=n.createServer(c=>c.end()).listen(0,\"127.0.0.1\",()=>n.connect(s.address().port,\"127.0.0.1\").on(\"connect\",()=>{console.log(\"connected\");process.exit()}))'\n\
        import socket\ns=socket.create_server(('127.0.0.1',0));socket.create_connection(s.getsockname());print('connected')\nE\n\
        echo x > /tmp/mine && ls /tmp";
    let text = said(&run_script(&lab, Kernel::Native, script));
    assert!(text.contains("connected") && text.contains("mine"), "{text}");
    assert!(!Path::new("/tmp/mine").exists());
}
