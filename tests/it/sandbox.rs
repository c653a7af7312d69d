//! The walls around commands, in each kind of kernel, as root and as an unprivileged user: what they claim is what holds.

use crate::support::kernel::Kernel;
use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::Command;

/// Each kind of kernel with the tier that must be found in it. Where bubblewrap is not installed, or the tests themselves run
/// in a kernel that refuses more, the next best one.
fn kernels() -> [(Kernel, &'static str); 4] {
    const TIERS: [&str; 4] = ["full", "bubblewrap", "rules", "none"];
    let best = match Kernel::around() {
        Kernel::Native => "full",
        Kernel::WithoutUnshare if Path::new("/usr/bin/bwrap").exists() => "bubblewrap",
        Kernel::WithoutUnshare | Kernel::Docker => "rules",
        Kernel::DockerWithoutLandlock => "none",
    };
    let rank = |tier: &str| TIERS.iter().position(|known| *known == tier).unwrap();
    let worse_of = |tier: &'static str| if rank(tier) < rank(best) { best } else { tier };
    let by_another_program = if Path::new("/usr/bin/bwrap").exists() { "bubblewrap" } else { "rules" };
    [
        (Kernel::Native, best),
        (Kernel::Docker, worse_of("rules")),
        (Kernel::WithoutUnshare, worse_of(by_another_program)),
        (Kernel::DockerWithoutLandlock, "none"),
    ]
}

/// Those in which commands are confined.
fn confining() -> impl Iterator<Item = (Kernel, &'static str)> {
    kernels().into_iter().filter(|(_, tier)| *tier != "none")
}

/// Helps where the tests are themselves confined and nothing better than some tier is to be had.
fn here(lab: &Lab, kernel: Kernel, tier: &str) -> bool {
    let found = doctor(lab, kernel);
    let as_expected = found.contains(&format!("sandbox        {tier}:"));
    assert!(as_expected || std::env::var_os("CI").is_some(), "{kernel:?} is not {tier}:\n{found}");
    as_expected
}

fn doctor(lab: &Lab, kernel: Kernel) -> String {
    kernel.agent(lab, &["doctor"]).exits(0).stdout
}

/// What the model reads about `sh` with this text, which stands in a file: the rules about texts are another matter.
fn run(lab: &Lab, kernel: Kernel, script: &str) -> Finished {
    fs::write(lab.ws().join("attempt.sh"), script).unwrap();
    call(lab, kernel)
}

fn call(lab: &Lab, kernel: Kernel) -> Finished {
    let arguments = json!({"command": "sh attempt.sh"}).to_string();
    kernel.agent(lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"])
}

fn said(finished: &Finished) -> String {
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
fn project() -> Lab {
    Lab::new()
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
            assert_eq!(doctor.contains("NOT confined"), tier == "none", "{kernel:?}: {doctor}");
            assert!(!doctor.contains("leaks"), "{kernel:?}: {doctor}");
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
            let server = Server::start("turns: [{text: done}, {text: done}]");
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
            let told = kernel.agent(&lab, &args).exits(0).stderr;
            let first = told.lines().next().unwrap();
            assert!(first.contains(&format!("sandbox {tier}")), "{kernel:?}: {told}");
            assert_eq!(told.contains("commands are NOT confined"), tier == "none", "{kernel:?}: {told}");
            let doctor = doctor(&lab, kernel);
            assert!(doctor.contains(&format!("sandbox        {tier}:")), "{kernel:?}: {doctor}");
        }
    });
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
    }
}

#[test]
fn s24_no_act_of_the_suite_gets_through_the_walls() {
    for_each_user(|user| {
        for (kernel, tier) in confining() {
            let lab = user(project());
            if !here(&lab, kernel, tier) {
                continue;
            }
            let possible = attempts(&lab, kernel);
            // The rights and times of files outside are not for rules to hold: the warning and the manual say so.
            let beyond_rules: &[&str] =
                if tier == "rules" { &["possible: chmod outside", "possible: utimens outside"] } else { &[] };
            assert_eq!(possible, beyond_rules, "{kernel:?}, {:?}", lab.uid());
        }
    });
}

/// A directory outside of the workspace that commands can see, as they do not see our `/tmp`.
fn outside() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The acts of `attempts.c` that were possible.
fn attempts(lab: &Lab, kernel: Kernel) -> Vec<String> {
    let place = outside();
    let outside = place.path().to_owned();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
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
    own_everything(lab, &outside);
    own_everything(lab, &lab.outside());
    let script = format!(
        "./attempts '{}' {} {} '{}' '{name}' '{}'",
        outside.display(),
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
        path.display(),
        lab.home().join(".ssh/id_stand_in").display()
    );
    let text = said(&run(lab, kernel, &script));
    assert!(text.contains("done"), "{text}");
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram arrived");
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    text.lines().filter(|line| line.starts_with("possible")).map(str::to_owned).collect()
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
            let text = said(&run(&lab, kernel, script));
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
fn protected_files_are_as_before_whatever_a_command_did() {
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
            let text = said(&run(&lab, kernel, ATTACK));
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
            assert!(text.contains("is kept in "), "{tier}: {text}");
        }
    });
}

#[test]
fn a_moved_repository_comes_back_and_one_that_took_its_place_goes() {
    for (kernel, tier) in confining() {
        let lab = project();
        let attack = "mv .git elsewhere && mkdir .git && echo '[core] pager = evil' > .git/config; true";
        let text = said(&run(&lab, kernel, attack));
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
        let text = said(&run(&lab, kernel, &attack));
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{tier}: {text}");
        assert_eq!(lab.read(".vscode/settings.json"), "{}\n", "{tier}: {text}");
        assert_eq!(lab.read(".git/config"), "[core]\n\tbare = false\n", "{tier}: {text}");
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
        let text = said(&run(&lab, kernel, attack));
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
        let text = said(&run(&lab, kernel, "echo works; rm .idea .envrc; mkdir .idea; true"));
        assert!(text.contains("works"), "{tier}: {text}");
        assert_eq!(fs::read_link(lab.ws().join(".idea")).unwrap(), Path::new("shared"), "{tier}: {text}");
        assert_eq!(fs::read_link(lab.ws().join(".envrc")).unwrap(), Path::new("nowhere"), "{tier}: {text}");
    }
}

#[test]
fn a_new_repository_may_be_made_but_not_one_that_runs_programs() {
    for (kernel, tier) in confining() {
        let lab = Lab::new();
        let text = said(&run(&lab, kernel, "git init -q . && git config user.name me"));
        assert!(text.contains("exit_code: 0") && !text.contains("protected"), "{tier}: {text}");
        assert!(lab.read(".git/config").contains("name = me"));
        let lab = Lab::new();
        let text = said(&run(&lab, kernel, "git init -q . && git config core.fsmonitor ./evil"));
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
            let end = std::time::Instant::now() + crate::support::run::PATIENCE;
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
        let text = said(&run(&lab, kernel, script));
        assert!(text.contains("--allow-net"), "{tier}: {text}");
        let outside = outside();
        let outside = outside.path().join("new");
        let text = said(&run(&lab, kernel, &format!("echo x > '{}'", outside.display())));
        // Below /tmp the place is not refused but not there: the command has a /tmp of its own.
        let is_seen = !outside.starts_with("/tmp") || tier == "rules";
        assert!(text.contains("--allow-write DIR") == is_seen && !outside.exists(), "{tier}: {text}");
        let text = said(&run(&lab, kernel, "exit 3"));
        assert!(!text.contains("--allow"), "{tier}: {text}");
    }
}

#[test]
fn loopback_works_inside_and_tmp_is_private() {
    let lab = project();
    let script = "python3 - <<'E' || node -e 'const n=require(\"net\");const s=n.createServer(c=>c.end()).listen(0,\"127.0.0.1\",()=>n.connect(s.address().port,\"127.0.0.1\").on(\"connect\",()=>{console.log(\"connected\");process.exit()}))'\n\
        import socket\ns=socket.create_server(('127.0.0.1',0));socket.create_connection(s.getsockname());print('connected')\nE\n\
        echo x > /tmp/mine && ls /tmp";
    let text = said(&run(&lab, Kernel::Native, script));
    assert!(text.contains("connected") && text.contains("mine"), "{text}");
    assert!(!Path::new("/tmp/mine").exists());
}
