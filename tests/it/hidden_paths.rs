//! What commands do not see or change although it lies in what they may change, in each kind of kernel.

use crate::sandbox::{confining, project, run_script, said};
use crate::support::calls::{call, every_tool, told};
use crate::support::kernel::Kernel;
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use serde_json::json;
use std::fs;
use std::path::Path;

const SECRET: &str = "stand-in of a secret";

/// A project with hidden places in it, and a link to one of them.
fn with_hidden_places() -> Lab {
    let lab = project().file("keys/id", SECRET).file("deep/er/keys/id", SECRET).file("work/file", "");
    std::os::unix::fs::symlink("keys", lab.ws().join("alias")).unwrap();
    let config = format!("sandbox: {{hidden: ['{0}/keys', '{0}/deep/er/keys']}}\n", lab.ws().display());
    lab.config(&config)
}

#[test]
fn class_55_what_is_hidden_below_a_writable_directory_is_neither_seen_nor_changed() {
    for (kernel, tier) in confining() {
        let lab = with_hidden_places();
        let server = Server::done();
        let args = ["run", "task", "--model", "openai/mock", "--api-key", KEY, "--api-base", &server.url()];
        let told = kernel.agent(&lab, &args).exits(0).stderr;
        assert_eq!(told.contains("because paths below it are hidden"), tier == "rules", "{tier}: {told}");
        let script = "cat keys/id deep/er/keys/id alias/id\n\
                      for d in keys deep/er/keys alias; do echo x >> $d/id; echo x > $d/new; done\n\
                      mv deep moved; mv deep/er deep/moved; mv keys seen; mv deep/er/keys work/\n\
                      rm -rf keys deep/er/keys\n\
                      echo made > work/new; echo changed > work/file; cat work/new";
        let first = said(&run_script(&lab, kernel, script));
        let again =
            "cat seen/id moved/er/keys/id deep/moved/keys/id work/keys/id keys/id deep/er/keys/id alias/id";
        let second = said(&run_script(&lab, kernel, again));
        assert!(!first.contains(SECRET) && !second.contains(SECRET), "{tier}: {first}{second}");
        assert!(first.contains("made") && lab.read("work/file") == "changed\n", "{tier}: {first}");
        for name in ["keys", "deep/er/keys"] {
            assert_eq!(lab.read(&format!("{name}/id")), SECRET, "{tier}: {first}");
            assert!(!lab.exists(&format!("{name}/new")), "{tier}: {first}");
        }
    }
}

#[test]
fn class_55_a_link_that_a_command_puts_in_the_place_of_a_writable_directory_opens_nothing() {
    for (kernel, tier) in confining() {
        let lab = project().file("part/file", "");
        let outside = lab.home().join("outside");
        let keys = outside.join("keys");
        fs::create_dir_all(&keys).unwrap();
        fs::write(keys.join("id"), SECRET).unwrap();
        let config = format!(
            "sandbox: {{hidden: ['{}'], writable: ['{}/part']}}\n",
            keys.display(),
            lab.ws().display()
        );
        let lab = lab.config(&config);
        let script = format!(
            "rm -rf part; ln -s '{0}' part\nsh -c 'cat part/id'\necho x >> part/id\nln -sfn '{0}' '{1}/link'; true",
            keys.display(),
            outside.display()
        );
        let first = said(&run_script(&lab, kernel, &script));
        let second = said(&run_script(&lab, kernel, "cat part/id; echo x >> part/id"));
        assert!(!first.contains(SECRET) && !second.contains(SECRET), "{tier}: {first}{second}");
        assert_eq!(fs::read_to_string(keys.join("id")).unwrap(), SECRET, "{tier}: {first}{second}");
        assert!(!outside.join("link").exists(), "{tier}");
    }
}

#[test]
fn class_20_what_we_obey_ourselves_stays_wherever_commands_may_write() {
    for (kernel, tier) in confining() {
        let lab = project();
        let config = format!("sandbox: {{writable: ['{}']}}\n", lab.outside().display());
        let lab = lab.config(&config);
        let home = lab.home();
        let script = "cd ../home && echo '# evil' >> config.yaml; mkdir -p agents; echo evil > agents/evil.yaml\n\
                      rm -f config.yaml; mv ../home ../moved; ls state && echo sees state\n\
                      cat state/sandbox.json && echo reads state; echo x > ../beside && echo wrote";
        let text = said(&run_script(&lab, kernel, script));
        assert_eq!(fs::read_to_string(home.join("config.yaml")).unwrap(), config, "{tier}: {text}");
        assert!(!home.join("agents").exists() && home.join("state/sandbox.json").exists(), "{tier}: {text}");
        assert!(!text.contains("reads state") && !text.contains("sandbox.json\n"), "{tier}: {text}");
        // Where something is hidden, rules let nothing new be made in the directories above it.
        assert_eq!(text.contains("wrote"), tier != "rules", "{tier}: {text}");
    }
}

#[test]
fn class_55_keys_are_not_seen_where_variables_say_that_they_are() {
    for (kernel, tier) in confining() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let keys = [
            "xdg/gh/hosts.yml",
            "xdg/github-copilot/apps.json",
            "data/goose/sessions",
            "cargo/credentials.toml",
            "gnupg/key",
            "kube/a",
            "kube/b",
            "aws",
            ".local/share/opencode/auth.json",
            ".qwen/oauth.json",
            ".claude.json",
            ".bash_history",
            ".local/share/fish/fish_history",
            ".config/sops/age/keys.txt",
            ".gradle/gradle.properties",
            ".huggingface/token",
            ".Xauthority",
            ".thunderbird/x/logins.json",
        ];
        for name in keys.iter().chain(&["xdg/git/config", "cargo/config.toml"]) {
            fs::create_dir_all(Path::new(&at(name)).parent().unwrap()).unwrap();
            fs::write(at(name), SECRET).unwrap();
        }
        let lab = project()
            .env("HOME", place.path().to_str().unwrap())
            .env("XDG_CONFIG_HOME", &at("xdg"))
            .env("XDG_DATA_HOME", &at("data"))
            .env("CARGO_HOME", &at("cargo"))
            .env("GNUPGHOME", &at("gnupg"))
            .env("KUBECONFIG", &format!("{}:{}", at("kube/a"), at("kube/b")))
            .env("AWS_SHARED_CREDENTIALS_FILE", &at("aws"))
            .env("SSH_AUTH_SOCK", &at("agent.socket"))
            .env("DOCKER_HOST", &format!("unix://{}", at("docker.socket")))
            .env("DOCKER_CONFIG", "/");
        let sockets = ["agent", "docker"].map(|name| at(&format!("{name}.socket")));
        let _listeners = sockets.each_ref().map(|path| std::os::unix::net::UnixListener::bind(path).unwrap());
        let script = sockets.map(|path| format!("[ -S '{path}' ] && echo sees a socket\n")).concat();
        let text = said(&run_script(&lab, kernel, &script));
        // Rules hide no names; sockets cannot be made there.
        assert_eq!(text.contains("sees"), tier == "rules", "{tier}: {text}");
        let script: Vec<String> = keys.iter().map(|name| format!("cat '{}'\n", at(name))).collect();
        let script = script.concat();
        let text = said(&run_script(&lab, kernel, &format!("{script}cd '{}'; ls; echo done", at("xdg/git"))));
        assert!(!text.contains(SECRET) && text.contains("done"), "{tier}: {text}");
        let text = said(&run_script(&lab, kernel, &format!("cat '{}'", at("xdg/git/config"))));
        assert!(text.contains(SECRET), "{tier}: {text}");
    }
}

#[test]
fn class_28_what_a_persons_shells_and_desktop_start_stays_where_the_home_directory_may_be_changed() {
    let paths = [".bashrc", ".zshenv", ".config/autostart/x.desktop", ".local/bin/ls", ".gitconfig"];
    let home = || {
        Lab::new()
            .started()
            .file(".bashrc", "kept\n")
            .file(".config/fish/config.fish", "kept\n")
            .file("notes.txt", "")
    };
    let kept = |lab: &Lab, context: &str| {
        assert_eq!(lab.read(".bashrc") + &lab.read(".config/fish/config.fish"), "kept\nkept\n", "{context}");
        let made = paths.iter().find(|path| **path != ".bashrc" && lab.exists(path));
        assert_eq!(made, None, "{context}");
    };
    let at_home = |lab: Lab| {
        let ws = lab.ws().to_str().unwrap().to_owned();
        lab.env("HOME", &ws)
    };
    let lab = at_home(home());
    let write = |path: &&str| call("write_file", &json!({"path": path, "content": "evil", "mode": "append"}));
    for (path, said) in paths.iter().zip(told(&lab, paths.iter().map(write).collect())) {
        assert!(said.contains("Protected file blocked"), "{path}: {said}");
    }
    kept(&lab, "tools");
    let lines = paths.map(|path| format!("mkdir -p $(dirname {path}); echo evil >> {path}\n")).concat();
    let script = format!(
        "cd \"$HOME\"\n{lines}mv .config/fish x; echo evil >> x/config.fish; echo new > notes.txt; true"
    );
    for (kernel, tier) in confining() {
        let lab = at_home(home());
        let text = said(&run_script(&lab, kernel, &script));
        kept(&lab, &format!("{tier}: {text}"));
        assert_eq!(lab.read("notes.txt"), "new\n", "{tier}: {text}");
        let beside = at_home(home());
        let place = beside.ws();
        let lab = project().env("HOME", place.to_str().unwrap());
        let lab = lab.config(&format!("sandbox: {{writable: ['{}']}}\n", place.display()));
        let text = said(&run_script(&lab, kernel, &script));
        kept(&beside, &format!("{tier}, beside: {text}"));
        assert_eq!(beside.read("notes.txt"), "new\n", "{tier}: {text}");
    }
}

#[test]
fn class_55_no_tool_sees_keys_in_a_workspace_that_is_a_home_directory() {
    let hidden = [".ssh/id_stand_in", ".netrc", ".config/gh/hosts.yml", "elsewhere/key", "of_ours/file"];
    let mut lab = Lab::new().started().file("project/.npmrc", "for all to see\n");
    for path in hidden {
        lab = lab.file(path, format!("{SECRET}\n"));
    }
    std::os::unix::fs::symlink("elsewhere", lab.ws().join(".aws")).unwrap();
    let home = lab.ws().to_str().unwrap().to_owned();
    let lab = lab.config(&format!("sandbox: {{hidden: ['{home}/of_ours']}}\n")).env("HOME", &home);
    let reads = hidden.iter().chain(&[".SSH/id_stand_in", ".aws/key"]).flat_map(|path| every_tool(path));
    let searches = [
        call("grep", &json!({"text": "stand-in of"})),
        call("find_files", &json!({"pattern": "*stand_in*"})),
    ];
    let read = call("read_file", &json!({"path": "project/.npmrc"}));
    let told = told(&lab, reads.chain(searches).chain([read]).collect());
    let (last, told) = told.split_last().unwrap();
    for said in told {
        assert!(!said.contains(SECRET) && !said.contains("id_stand_in\n"), "{said}");
    }
    assert!(last.contains("for all to see"), "{last}");
    for path in hidden {
        assert_eq!(lab.read(path), format!("{SECRET}\n"), "{path}");
    }
}

#[test]
fn a_command_finds_the_machines_tmp_where_it_may_change_that() {
    for (kernel, tier) in confining() {
        let lab = project().config("sandbox: {writable: [/tmp]}\n");
        if !lab.outside().starts_with("/tmp") {
            return;
        }
        let script = "echo of-the-run > $TMPDIR/file && cat $TMPDIR/file; echo $TMPDIR; echo mine > mine; \
                      cd ..; echo there > ws/there; ls -d /tmp; echo evil >> ws/.git/config";
        let text = said(&run_script(&lab, kernel, script));
        assert!(text.contains("of-the-run") && !text.contains("\n/tmp/file"), "{tier}: {text}");
        assert_eq!(lab.read("there"), "there\n", "{tier}: {text}");
        assert_eq!(lab.read(".git/config"), "[core]\n\tbare = false\n", "{tier}: {text}");
        let beside = lab.outside().join("beside");
        let text = said(&run_script(
            &lab,
            kernel,
            &format!("mkdir '{0}' && echo real > '{0}/file'", beside.display()),
        ));
        // The state that is hidden lies there too, and rules let nothing new be made above it.
        assert_eq!(beside.join("file").exists(), tier != "rules", "{tier}: {text}");
    }
}

#[test]
fn a_directory_to_write_to_that_is_not_there_is_told() {
    let lab = project().config("sandbox: {writable: [/nonexistent/configured]}\n");
    let server = Server::done();
    let args = ["run", "task", "--model", "openai/mock", "--api-key", KEY, "--api-base", &server.url()];
    let told = Kernel::Native.agent(&lab, &args).exits(0).stderr;
    assert!(told.contains("sandbox.writable: /nonexistent/configured is not a directory"), "{told}");
    let told = Kernel::Native.agent(&lab, &[&args[..], &["--allow-write", "/nonexistent/x"]].concat());
    let told = told.exits(3).stderr;
    assert!(told.contains("--allow-write") && told.contains("/nonexistent/x is not a directory"), "{told}");
}

#[test]
fn a_pipe_that_ends_well_after_a_failure_without_network_comes_with_the_hint() {
    for (kernel, tier) in confining() {
        let lab = project();
        let script = "{ echo 'npm error code ENOTFOUND'; echo 'npm error network'; } | tail -5";
        let text = said(&run_script(&lab, kernel, script));
        assert!(text.contains("--allow-net"), "{tier}: {text}");
    }
}
