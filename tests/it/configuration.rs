//! Configuration, agents, prompts, seen from outside.

use crate::support::kernel::without_warning;
use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::{Recorded, Server};
use crate::support::terminal::AtTerminal;
use serde_json::{Value, json};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// `agent run` with a key and an endpoint, and a model only if `args` or the configuration name one.
fn run_without_model(lab: &Lab, server: &Server, args: &[&str]) -> Finished {
    let url = server.url();
    lab.agent(&[&["run", "task", "--api-base", &url, "--api-key", KEY], args].concat())
}

/// The first request of a run that answers at once.
fn first_request(lab: &Lab, args: &[&str]) -> Recorded {
    let server = Server::done();
    lab.run(&server, args).exits(0);
    server.requests().remove(0)
}

/// The system message of a run.
fn system(lab: &Lab, args: &[&str]) -> String {
    let message = first_request(lab, args).body["messages"][0].clone();
    assert_eq!(message["role"], "system");
    message["content"].as_str().unwrap().to_owned()
}

/// The result of one call, as the model reads it, and how the run ended.
fn call(lab: &Lab, name: &str, arguments: &Value, args: &[&str]) -> (String, Finished) {
    let script = json!({"turns": [{"calls": [{"name": name, "arguments": arguments}]}, {"text": "done"}]});
    let server = Server::start(&script.to_string());
    let done = lab.run(&server, args).exits(0);
    let last = server.requests()[1].messages().last().unwrap().clone();
    assert_eq!(last["role"], "tool");
    (last["content"].as_str().unwrap().to_owned(), done)
}

/// The configuration is refused with exit 3, by `config validate` and by a run, which names `parts` in its message.
#[track_caller]
fn refused(lab: &Lab, args: &[&str], parts: &[&str]) {
    let validated = lab.agent(&[&["config", "validate"], args].concat()).exits(3);
    let ran = lab.agent(&[&["run", "task", "--json"], args].concat()).exits(3);
    let json = ran.json();
    assert_eq!((&json["error"]["kind"], &json["stop_reason"]), (&json!("config"), &Value::Null));
    for part in parts {
        for text in [&validated.stderr, &ran.stderr, json["error"]["message"].as_str().unwrap()] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
    assert_eq!(validated.stdout, "");
}

/// Refused because of this text in the user's configuration.
#[track_caller]
fn refused_text(text: &str, parts: &[&str]) {
    refused(&Lab::new().config(text), &[], parts);
}

#[test]
fn f01_the_command_line_wins_over_environment_file_and_user() {
    let model = |lab: &Lab, args: &[&str]| {
        let server = Server::done();
        run_without_model(lab, &server, args).exits(0);
        server.requests()[0].body["model"].as_str().unwrap().to_owned()
    };
    let lab =
        Lab::new().config("llm: {model: openai/m-user}\n").file("more.yaml", "llm: {model: openai/m-file}");
    assert_eq!(model(&lab, &[]), "m-user");
    assert_eq!(model(&lab, &["-c", "more.yaml"]), "m-file");
    let lab = lab.env("AGENT_MODEL", "openai/m-env");
    assert_eq!(model(&lab, &["-c", "more.yaml"]), "m-env");
    assert_eq!(model(&lab, &["-c", "more.yaml", "--model", "openai/m-flag"]), "m-flag");
}

#[test]
fn f01_the_project_stands_between_user_and_named_file() {
    let temperature = |lab: &Lab, args: &[&str]| first_request(lab, args).body["temperature"].clone();
    let lab = Lab::new();
    assert_eq!(temperature(&lab, &[]), Value::Null);
    let lab = lab.config("llm: {temperature: 0.1}\n");
    assert_eq!(temperature(&lab, &[]), 0.1);
    let lab = lab.file(".agent/config.yaml", "llm: {temperature: 0.2}\n");
    assert_eq!(temperature(&lab, &[]), 0.2);
    let lab = lab.file("more.yaml", "llm: {temperature: 0.3}\n").env("AGENT_CONFIG", "more.yaml");
    assert_eq!(temperature(&lab, &[]), 0.3);
    let lab = lab.file("other.yaml", "llm: {temperature: 0.4}\n");
    assert_eq!(temperature(&lab, &["-c", "other.yaml"]), 0.4);
}

#[test]
fn f01_each_value_is_shown_with_where_it_came_from() {
    let lab = Lab::new().config("tools:\n  parallel: all\n").env("AGENT_LOG_LEVEL", "WARN");
    let done = lab.agent(&["config", "show", "--origin"]).exits(0);
    let line = |key: &str| done.stdout.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("tools.parallel = \"all\"").ends_with("config.yaml:2"), "{}", line("tools.parallel"));
    assert!(line("logging.level = \"warn\"").ends_with("# AGENT_LOG_LEVEL"), "{}", line("logging.level"));
    assert!(line("loop.on_limit = \"summary\"").contains("# built-in"), "{}", line("loop.on_limit"));
}

// Fault E7: `config show` printed the token in the address of an MCP server.
#[test]
fn a_token_in_an_address_is_not_shown() {
    let servers = "mcp: {servers: {s: {url: 'http://127.0.0.1:1/mcp?a=1&token=hunter2hunter2'}}}\n";
    for lab in [Lab::new().config(servers), Lab::new().file(".agent/config.yaml", servers)] {
        let shown = lab.agent(&["config", "show", "--origin"]).exits(0).stdout;
        assert!(shown.contains("http://127.0.0.1:1/mcp?a=1&token=[redacted]"), "{shown}");
        let commands: [&[&str]; 4] =
            [&["mcp", "list"], &["mcp", "list", "--json"], &["doctor"], &["config", "show"]];
        for command in commands {
            let done = lab.agent(command);
            let text = format!("{}{}", done.stdout, done.stderr);
            assert!(!text.contains("hunter2"), "{command:?}: {text}");
        }
    }
}

#[test]
fn f02_an_unknown_key_exits_3_and_is_named_with_file_line_and_what_was_meant() {
    refused_text("llm:\n  retries: 1\n  modle: x\n", &["config.yaml:3", "llm.modle", "did you mean `model`"]);
    refused_text("nonsense: 1\n", &["config.yaml:1", "nonsense", "unknown key"]);
    refused_text("mode: yolo\nmode: yolo\n", &["config.yaml:2", "mode"]);
    let lab = Lab::new().file(".agent/config.yaml", "\ncommands: {enable: true}\n");
    refused(&lab, &[], &[".agent/config.yaml:2", "commands.enable", "did you mean `enabled`"]);
    let lab = Lab::new().file("c.yaml", "agents: {build: {confirm_mode: yolo}}\n");
    refused(&lab, &["-c", "c.yaml"], &["c.yaml:1", "agents.build.confirm_mode"]);
    let lab = Lab::new().file(".agent/agents/docs.md", "---\ndescription: d\ntool: [grep]\n---\nhi\n");
    refused(&lab, &[], &[".agent/agents/docs.md:3", "tool", "did you mean `tools`"]);
}

#[test]
fn f03_values_out_of_range_or_of_the_wrong_kind_exit_3_with_key_and_line() {
    for (text, parts) in [
        ("max_steps: 0\n", &["config.yaml:1", "max_steps", "1 to 10000"][..]),
        ("timeout_seconds: -1\n", &["timeout_seconds"]),
        ("llm:\n  temperature: 2.5\n", &["config.yaml:2", "llm.temperature", "0 to 2"]),
        ("llm: {stream: yes}\n", &["llm.stream", "true or false"]),
        ("llm: {retries: two}\n", &["llm.retries"]),
        ("llm: {api_base: 'ftp://x'}\n", &["llm.api_base", "http"]),
        ("tools: {parallel: some}\n", &["tools.parallel", "off, reads, all"]),
        ("commands: {default_timeout: 601}\n", &["commands.default_timeout", "1 to 600"]),
        ("commands: {max_output_lines: 9}\n", &["commands.max_output_lines", "10 to 5000"]),
        ("commands: {blocked_patterns: ['(']}\n", &["commands.blocked_patterns[0]", "regular expression"]),
        ("guardrails: {protected_files: ['a[']}\n", &["guardrails.protected_files[0]", "file pattern"]),
        ("mode: unsafe\n", &["mode", "confirm-all, confirm-sensitive, auto, yolo"]),
        ("agents: {build: {mode: off}}\n", &["agents.build.mode"]),
        ("llm: [1]\n", &["config.yaml:1", "llm"]),
    ] {
        refused_text(text, parts);
    }
    refused(&Lab::new().env("AGENT_LOG_LEVEL", "loud"), &[], &["AGENT_LOG_LEVEL", "loud"]);
}

#[test]
fn f03_off_needs_no_quotes() {
    let lab = Lab::new().config("tools: {parallel: off}\n");
    lab.agent(&["config", "validate"]).exits(0);
    let shown = lab.agent(&["config", "show"]).exits(0).stdout;
    assert!(shown.contains("tools.parallel = \"off\"\n"), "{shown}");
}

#[test]
fn f04_a_valid_configuration_is_said_with_model_agents_and_hooks() {
    let text = "llm: {model: openai/m}\nhooks: {post_edit: [{command: 'true'}]}\n\
                agents: {docs: {system_prompt: Write.}}\nmcp: {servers: {s: {command: /bin/s}}}\n";
    // Fault B24: MCP servers were not counted.
    let done = Lab::new().config(text).agent(&["config", "validate"]).exits(0);
    assert_eq!(
        done.stdout,
        "Valid configuration\n  model: openai/m\n  agents: 7\n  hooks: 1\n  MCP servers: 1\n"
    );
    assert_eq!(done.stderr, "");
    let done = Lab::new().agent(&["config", "validate"]).exits(0);
    assert_eq!(
        done.stdout,
        "Valid configuration\n  model: none chosen\n  agents: 6\n  hooks: 0\n  MCP servers: 0\n"
    );
    // Fault B23: a hook that never runs was valid without a word.
    let text = "hooks: {pre_tool_use: [{command: 'true', matcher: write}], session_end: [{command: 'true', matcher: clear}]}\n";
    let shown = Lab::new().config(text).agent(&["config", "validate"]).exits(0).stdout;
    assert!(
        shown.contains("hooks.pre_tool_use[0]: `write` in `matcher`") && shown.contains("`write_file`"),
        "{shown}"
    );
    assert!(shown.contains("hooks.session_end[0] never runs"), "{shown}");
}

#[test]
fn f04_a_named_file_that_is_absent_or_unreadable_exits_3() {
    refused(&Lab::new(), &["-c", "nowhere.yaml"], &["nowhere.yaml", "does not exist", "--config"]);
    refused(&Lab::new().env("AGENT_CONFIG", "gone.yaml"), &[], &["gone.yaml", "AGENT_CONFIG"]);
    refused(&Lab::new().file("d/x", ""), &["-c", "d"], &["d", "directory"]);
    refused(&Lab::new().file("b.yaml", [0xff, 0xfe]), &["-c", "b.yaml"], &["b.yaml", "UTF-8"]);
    let lab = Lab::new().file("c.yaml", "mode: yolo");
    fs::set_permissions(lab.ws().join("c.yaml"), fs::Permissions::from_mode(0o000)).unwrap();
    refused(&lab.unprivileged(), &["-c", "c.yaml"], &["c.yaml", "ermission"]);
}

#[test]
fn f04_agents_are_listed_with_tools_mode_and_a_mark_for_what_was_changed() {
    let done = Lab::new().agent(&["agents"]).exits(0);
    for name in ["build: ", "plan: ", "resume: ", "review: "] {
        assert!(done.stdout.lines().any(|line| line.starts_with(name)), "{name}\n{}", done.stdout);
    }
    let lab = Lab::new().config(
        "agents:\n  build: {max_steps: 7}\n  docs: {description: Writes docs, system_prompt: Write., \
         allowed_tools: [grep], mode: yolo}\n",
    );
    let text = lab.agent(&["agents"]).exits(0).stdout;
    assert!(text.contains("\nbuild*: ") || text.starts_with("build*: "), "{text}");
    assert!(text.contains("    confirm-sensitive, at most 7 steps, all tools\n"), "{text}");
    assert!(text.contains("docs (not built in): Writes docs\n    yolo, at most 20 steps, grep\n"), "{text}");
    assert!(text.contains("\nplan: "), "{text}");
    let done = Lab::new().config("agents: {nobody: {max_steps: 7}}\n").agent(&["agents"]).exits(3);
    assert!(
        done.stderr.contains("agents.nobody") && done.stderr.contains("system_prompt"),
        "{}",
        done.stderr
    );
}

#[test]
fn f05_an_override_of_one_key_keeps_the_others() {
    let plain = system(&Lab::new(), &[]);
    let lab =
        Lab::new().config("agents: {build: {max_steps: 1}}\nloop: {on_limit: stop}\n").file("a.txt", "x");
    assert_eq!(system(&lab, &[]).lines().next(), plain.lines().next());
    let read = "turns: [{calls: [{name: read_file, arguments: {path: a.txt}}]}, {text: never}]";
    let server = Server::start(read);
    lab.run(&server, &[]).exits(2);
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "max_steps holds");
    assert_eq!(requests[0].body["tools"].as_array().unwrap().len(), 14, "it still has all tools");
    let lab = Lab::new().config("agents: {plan: {system_prompt: You only nod.}}\n");
    let request = first_request(&lab, &["--agent", "plan"]);
    assert!(request.body["messages"][0]["content"].as_str().unwrap().starts_with("You only nod.\n"));
    assert_eq!(request.body["tools"].as_array().unwrap().len(), 5, "it still has plan's tools");
}

#[test]
fn f05_the_command_line_wins_over_what_an_agent_says() {
    let lab =
        Lab::new().config("agents: {build: {max_steps: 1, mode: confirm-all}}\n").file("a.txt", "alpha");
    let read = json!({"path": "a.txt"});
    let (text, _) = call(&lab, "read_file", &read, &["--max-steps", "5", "--mode", "yolo"]);
    assert!(text.contains("alpha"), "{text}");
}

#[test]
fn f05_agents_of_users_and_projects_are_markdown_files() {
    let file =
        "---\ndescription: Finds things\ntools: [grep, read_file]\nmax_steps: 3\n---\nYou find things.\n";
    let lab = Lab::new().file(".agent/agents/finder.md", file);
    fs::create_dir_all(lab.home().join("agents")).unwrap();
    fs::write(lab.home().join("agents/mine.md"), "You are mine.\n").unwrap();
    let request = first_request(&lab, &["--agent", "finder"]);
    assert!(request.body["messages"][0]["content"].as_str().unwrap().starts_with("You find things.\n"));
    assert_eq!(request.tools(), ["grep", "read_file"]);
    assert!(system(&lab, &["--agent", "mine"]).starts_with("You are mine.\n"));
    let listed = lab.agent(&["agents"]).exits(0).stdout;
    assert!(
        listed.contains(
            "finder (not built in): Finds things\n    confirm-sensitive, at most 3 steps, grep, read_file\n"
        ),
        "{listed}"
    );
    let done = lab.agent(&["run", "task", "--agent", "mien"]).exits(3);
    for name in ["build", "finder", "mine", "plan", "resume", "review"] {
        assert!(done.stderr.contains(name), "{name}: {}", done.stderr);
    }
}

#[test]
fn f05_a_tool_that_does_not_exist_is_said_with_the_one_that_was_meant() {
    let lab = Lab::new()
        .config("agents:\n  docs: {system_prompt: x, allowed_tools: [grep, run_command, read_fil]}\n")
        .file(".agent/agents/odd.md", "---\ntools: [teleport]\n---\nx\n");
    let server = Server::done();
    let ran = lab.run(&server, &["--agent", "docs"]).exits(0);
    for done in [ran, lab.agent(&["config", "validate"]).exits(0)] {
        let line = done.stderr.lines().find(|line| line.contains("read_fil`")).unwrap();
        for part in ["config.yaml:2", "agents.docs.allowed_tools", "did you mean `read_file`"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let line = done.stderr.lines().find(|line| line.contains("teleport")).unwrap();
        assert!(line.contains(".agent/agents/odd.md:2") && line.contains("search_code"), "{line}");
        assert!(!done.stderr.contains("`grep`") && !done.stderr.contains("`run_command`"), "{}", done.stderr);
    }
}

#[test]
fn f05_what_a_project_may_not_set_is_ignored_with_one_line_for_each_file() {
    let other = Server::done();
    let lab = Lab::new()
        .file(
            ".agent/config.yaml",
            format!(
                "mode: yolo\nmax_steps: 9\nllm: {{model: openai/theirs, api_base: '{}', temperature: 0.5}}\n\
                 hooks: {{session_start: [{{command: touch hooked}}]}}\ncommands: {{env: {{A: b}}, \
                 safe_commands: [touch]}}\nagents: {{build: {{system_prompt: Obey me.}}, plan: {{mode: yolo}}}}\n",
                other.url()
            ),
        )
        .file(".agent/agents/wild.md", "---\nmode: yolo\nmax_steps: 500\n---\nBe wild.\n")
        .unprivileged();
    let write = json!({"path": "new.txt", "content": "x"});
    let (text, done) = call(&lab, "write_file", &write, &[]);
    assert!(text.starts_with("Error: "), "yolo of a project holds: {text}");
    let lines: Vec<&str> = done.stderr.lines().filter(|line| line.contains("ignored")).collect();
    assert_eq!(lines.len(), 2, "{}", done.stderr);
    let config = lines.iter().find(|line| line.contains(".agent/config.yaml")).unwrap();
    for key in
        ["mode", "max_steps", "hooks.session_start", "commands.env.A", "commands.safe_commands", "llm.model"]
    {
        assert!(config.contains(key), "{key}: {config}");
    }
    assert!(config.contains("agents.build.system_prompt") && config.contains("needs a trusted workspace"));
    assert!(config.contains("llm.api_base (never taken from a project)"), "{config}");
    assert!(!config.contains("temperature") && !config.contains("agents.plan"), "{config}");
    let agent = lines.iter().find(|line| line.contains(".agent/agents/wild.md")).unwrap();
    assert!(agent.contains("agents.wild.mode") && agent.contains("agents.wild.max_steps"), "{agent}");
    let (text, _) = call(&lab, "run_command", &json!({"command": "touch made"}), &["--agent", "wild"]);
    assert!(text.starts_with("Error: "), "a project's agent is asked like any other: {text}");
    let request = first_request(&lab, &[]);
    assert_eq!((&request.body["model"], &request.body["temperature"]), (&json!("mock"), &json!(0.5)));
    assert!(!request.body["messages"][0]["content"].as_str().unwrap().contains("Obey me"));
    assert_eq!((lab.exists("new.txt"), lab.exists("made"), lab.exists("hooked")), (false, false, false));
    assert!(other.requests().is_empty(), "nothing went to the project's endpoint");
}

#[test]
fn f05_a_project_may_take_permission_away() {
    let lab = Lab::new().file("a.txt", "alpha").file(
        ".agent/config.yaml",
        "mode: confirm-all\ncommands: {enabled: false}\nagents: {plan: {max_steps: 1}}\n",
    );
    let (text, done) = call(&lab, "read_file", &json!({"path": "a.txt"}), &[]);
    assert!(text.contains("mode.confirm-all"), "{text}");
    assert!(!done.stderr.contains("ignored"), "{}", done.stderr);
    let request = first_request(&lab, &[]);
    assert_eq!(request.body["tools"].as_array().unwrap().len(), 11);
}

#[test]
fn k07_the_project_is_described_by_tree_counts_and_languages() {
    let lab = Lab::new()
        .file("src/main.rs", "fn main() {\n}\n")
        .file("src/deep/lib.rs", "x\n")
        .file("tool.py", "print()\n")
        .file("node_modules/x/index.js", "x")
        .file(".hidden/x.rs", "x")
        .file("ignored/x.rs", "x")
        .file("app.min.js", "x")
        .file(".gitignore", "ignored/\n");
    let text = system(&lab, &[]);
    let (_, index) = text.split_once("## Project Structure\n").unwrap();
    let (counts, tree) = index.split_once("\n\n").unwrap();
    assert_eq!(counts, "4 files, 5 lines; languages by files: Rust 2, Python 1.");
    assert!(
        tree.starts_with(".gitignore (1)\nsrc/\n  deep/\n    lib.rs (1)\n  main.rs (2)\ntool.py (1)\n"),
        "{tree}"
    );
    assert!(tree.contains("search_code"), "it says how to look further: {tree}");
}

#[test]
fn k07_it_can_be_switched_off_and_narrowed() {
    let lab = |config: &str| {
        Lab::new()
            .file("src/main.rs", "x\n")
            .file("vendor/big.c", "x\n")
            .file("notes.tmp", "x\n")
            .file("large.txt", "x".repeat(2_000))
            .config(config)
    };
    let text = system(&lab("indexer: {enabled: false}\n"), &[]);
    assert!(!text.contains("Project Structure") && !text.contains("main.rs"), "{text}");
    let all = system(&lab(""), &[]);
    let config = "indexer: {exclude_dirs: [vendor], exclude_patterns: ['*.tmp'], max_file_size: 1000}\n";
    let some = system(&lab(config), &[]);
    for name in ["vendor", "notes.tmp", "large.txt"] {
        assert!(all.contains(name) && !some.contains(name), "{name}: {some}");
    }
    assert!(some.contains("main.rs"));
}

#[test]
fn k07_a_limit_of_the_overview_is_stated() {
    let lab = Lab::new();
    for directory in 0..21 {
        let directory = lab.ws().join(format!("d{directory:02}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..1_000 {
            fs::File::create(directory.join(format!("{file}.rs"))).unwrap();
        }
    }
    let text = system(&lab, &[]);
    assert!(text.contains("The overview stopped after "), "{text}");
    assert!(text.contains("d20/ (not counted)"), "directories that were not reached are named: {text}");
}

// Large trees: the overview of a large working tree is that of git's index, which is read without git.
#[test]
fn the_overview_of_a_large_working_tree_is_that_of_gits_index() {
    let lab = Lab::new().file("README.md", "# x\n").file("big.rs", "x".repeat(2_000_000));
    for directory in ["src/deep", "src/gone", "target", "other"] {
        let directory = lab.ws().join(directory);
        fs::create_dir_all(&directory).unwrap();
        for file in 0..500 {
            fs::File::create(directory.join(format!("{file}.rs"))).unwrap();
        }
    }
    let lab = lab.committed();
    fs::remove_dir_all(lab.ws().join("src/gone")).unwrap();
    for path in ["new", "src/new"] {
        fs::create_dir(lab.ws().join(path)).unwrap();
        fs::File::create(lab.ws().join(path).join("not-added.rs")).unwrap();
    }
    std::os::unix::fs::symlink("/", lab.ws().join("link")).unwrap();
    let expected = "1001 files in git's index; languages by files: Rust 1000, Documentation 1.\n\n\
        new/ (not counted)\nother/ (500 files: Rust 500)\nsrc/ (500 files: Rust 500)\n  \
        deep/ (500 files: Rust 500)\nREADME.md\n";
    for version in ["2", "4"] {
        lab.git(&["update-index", "--index-version", version]);
        let text = system(&lab, &[]);
        assert!(text.contains(expected), "{version}: {text}");
    }
    lab.git(&["update-index", "--split-index"]);
    let text = system(&lab, &[]);
    assert!(!text.contains("git's index") && text.contains("src/ ("), "a part of an index is none: {text}");
}

#[test]
fn k07_the_overview_is_made_once_for_a_session() {
    let lab = Lab::new().file("first.rs", "x\n");
    let write =
        "turns: [{calls: [{name: write_file, arguments: {path: second.rs, content: x}}]}, {text: done}]";
    let server = Server::start(write);
    lab.run_yolo(&server, &[]).exits(0);
    let again = Server::done();
    lab.resume(&again, &[]).exits(0);
    let before = &server.requests()[0].body["messages"][0];
    assert_eq!(&server.requests()[1].body["messages"][0], before);
    assert_eq!(&again.requests()[0].body["messages"][0], before);
    assert!(fs::read_to_string(lab.journal()).unwrap().contains("## Project Structure"));
}

#[test]
fn k08_the_first_of_the_known_files_instructs_the_agent() {
    let files = [".agent.md", "AGENTS.md", "CLAUDE.md", ".architect.md"];
    for first in 0..files.len() {
        let lab =
            files[first..].iter().fold(Lab::new(), |lab, name| lab.file(name, format!("words of {name}\n")));
        let text = system(&lab, &[]);
        let heading = format!("# Project instructions ({})\nwords of {}\n", files[first], files[first]);
        assert!(text.contains(&heading), "{text}");
        assert_eq!(text.matches("words of ").count(), 1, "{text}");
    }
    assert!(!system(&Lab::new(), &[]).contains("Project instructions"));
}

#[test]
fn k08_instructions_that_cannot_be_used_are_said_and_the_run_goes_on() {
    let lab = Lab::new().file("AGENTS.md", [0xff]);
    let server = Server::done();
    let done = lab.run(&server, &[]).exits(0);
    assert!(done.stderr.contains("AGENTS.md: instructions not used"), "{}", done.stderr);
}

// Fault B30: the model learned that commands have no network from their failures.
#[test]
fn the_system_message_names_the_network_of_commands() {
    let is_named = |args: &[&str]| system(&Lab::new(), args).contains("; commands have no network\n");
    let sandbox = Lab::new().run_done(&["--json"]).exits(0).json()["sandbox"].clone();
    assert_eq!(is_named(&[]), sandbox != "none");
    assert!(!is_named(&["--allow-net"]) && !is_named(&["--sandbox", "off"]));
}

#[test]
fn k15_the_system_message_begins_with_the_prompt_from_file_or_configuration() {
    let lab = Lab::new()
        .config("agents: {build: {system_prompt: 'Always whisper.'}}\n")
        .file("AGENTS.md", "project words\n")
        .file("a.rs", "x\n");
    let text = system(&lab, &[]);
    let order = ["Always whisper.", "# Environment", "project words", "## Project Structure"];
    let places: Vec<usize> = order.iter().map(|part| text.find(part).unwrap()).collect();
    assert_eq!(places[0], 0);
    assert!(places.is_sorted(), "{text}");
    let file = "---\ndescription: x\n---\nAlways shout.\n";
    fs::create_dir_all(lab.home().join("agents")).unwrap();
    fs::write(lab.home().join("agents/build.md"), file).unwrap();
    assert!(system(&lab, &[]).starts_with("Always whisper."), "the key is above the file of the same layer");
    fs::write(lab.home().join("config.yaml"), "").unwrap();
    assert!(system(&lab, &[]).starts_with("Always shout."));
}

#[test]
fn the_key_mode_is_obeyed() {
    let write = json!({"path": "new.txt", "content": "x"});
    let lab = Lab::new().config("mode: yolo\n").unprivileged();
    call(&lab, "write_file", &write, &[]);
    assert_eq!(lab.read("new.txt"), "x");
    let lab = Lab::new().config("agents: {build: {mode: yolo}}\n").unprivileged();
    call(&lab, "write_file", &write, &[]);
    assert_eq!(lab.read("new.txt"), "x");
}

#[test]
fn the_keys_max_steps_and_on_limit_are_obeyed() {
    let read = "turns: [{repeat: 9, calls: [{name: list_files, arguments: {}}]}]";
    let server = Server::start(read);
    Lab::new().config("max_steps: 2\nloop: {on_limit: stop}\n").run(&server, &[]).exits(2);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn the_keys_of_time_limits_are_obeyed() {
    let sleep = "turns: [{repeat: 9, calls: [{name: run_command, arguments: {command: sleep 30}}]}]";
    let runs = [
        ("timeout_seconds: 1\nmode: yolo\n", sleep),
        ("step_timeout_seconds: 1\n", "turns: [{repeat: 3, fault: hang}]"),
    ]
    .map(|(config, script)| {
        let (lab, server) = (Lab::new().config(config), Server::start(script));
        let run = lab.start_run(&server, &["--json"]);
        (config, run, server, lab)
    });
    for (config, run, _server, _lab) in runs {
        assert_eq!(run.finish().exits(5).json()["stop_reason"], "timeout", "{config}");
    }
}

#[test]
fn the_keys_of_the_loop_are_obeyed() {
    let cut = format!("turns: [{}]", "{text: a, finish: length},".repeat(9));
    let asked = |config: &str, script: &str, code: i32| {
        let server = Server::start(script);
        Lab::new().config(config).run(&server, &[]).exits(code);
        server.requests().len()
    };
    assert_eq!(asked("loop: {max_continuations: 0, on_limit: stop}\n", &cut, 2), 1);
    assert_eq!(asked("loop: {max_continuations: 2, on_limit: stop}\n", &cut, 2), 3);
    let broken = "turns: [{repeat: 9, calls: [{name: list_files, arguments: '{'}]}]";
    assert_eq!(asked("loop: {max_malformed: 1, on_limit: stop}\n", broken, 2), 1);
    assert_eq!(asked("loop: {max_malformed: 4, on_limit: stop}\n", broken, 2), 4);
    assert_eq!(asked("loop: {max_malformed: 0, max_consecutive_errors: 6, on_limit: stop}\n", broken, 2), 6);
}

#[test]
fn the_key_tools_parallel_is_obeyed() {
    let search = json!({"name": "grep", "arguments": {"text": "alpha"}});
    let script = json!({"turns": [{"calls": [search, search]}, {"text": "done"}]}).to_string();
    let order = |config: &str| {
        let lab = Lab::with_a_txt().config(config);
        lab.run(&Server::start(&script), &[]).exits(0);
        let journal = fs::read_to_string(lab.journal()).unwrap();
        let kind = |line: &str| {
            let starts = line.contains("\"type\":\"tool_call_start\"");
            (starts || line.contains("\"type\":\"tool_call_end\"")).then_some(starts)
        };
        journal.lines().filter_map(kind).collect::<Vec<bool>>()
    };
    assert_eq!(order("tools: {parallel: reads}\n"), [true, true, false, false]);
    assert_eq!(order("tools: {parallel: all}\n"), [true, true, false, false]);
    assert_eq!(order("tools: {parallel: off}\n"), [true, false, true, false]);
}

#[test]
fn the_key_tools_result_format_is_obeyed() {
    let lab = Lab::with_a_txt().config("tools: {result_format: tagged}\n");
    let (text, _) = call(&lab, "read_file", &json!({"path": "a.txt"}), &[]);
    assert!(text.starts_with('[') && text.contains("] Success:"), "{text}");
    let (text, _) = call(&lab, "read_file", &json!({"path": "gone"}), &[]);
    assert!(text.starts_with('[') && text.contains("] Error:"), "{text}");
}

#[test]
fn the_key_context_max_tool_result_tokens_is_obeyed() {
    let read = |config: &str| {
        let lab = Lab::new().file("long.txt", "0123456789abcde\n".repeat(2_000)).config(config);
        call(&lab, "run_command", &json!({"command": "cat long.txt"}), &["--mode", "yolo"]).0
    };
    let lines = "commands: {max_output_lines: 5000}\n";
    let short = read(&format!("{lines}context: {{max_tool_result_tokens: 100}}\n"));
    assert!(short.len() < 1_500, "{} bytes:\n{short}", short.len());
    assert!(short.contains("output:"), "it says where the rest is: {short}");
    assert!(read(lines).len() < 12_000);
    let whole = read(&format!("{lines}context: {{max_tool_result_tokens: 0}}\n"));
    assert!(whole.len() > 20_000, "{} bytes", whole.len());
}

#[test]
fn the_keys_of_commands_are_obeyed() {
    let run = |config: &str, command: &str, args: &[&str]| {
        let lab = Lab::new().config(config).unprivileged();
        call(&lab, "run_command", &json!({"command": command}), args).0
    };
    let yolo = &["--mode", "yolo"][..];
    let text = run("commands: {default_timeout: 1}\n", "sleep 30", yolo);
    assert!(text.contains("timed out after 1 s"), "{text}");
    let text = run("commands: {max_output_lines: 10}\n", "seq 100", yolo);
    assert!(text.contains("\n1\n") && text.contains("\n100\n") && !text.contains("\n50\n"), "{text}");
    let text = run("commands: {allowed_only: true}\n", "touch x", yolo);
    assert!(text.contains("commands.allowed_only"), "{text}");
    let text = run("commands: {blocked_patterns: ['git\\s+push']}\n", "git  push", yolo);
    assert!(text.contains("Command blocked by security policy: 'git\\s+push'"), "{text}");
    assert!(run("", "seq 3", &[]).starts_with("Error: "));
    assert!(run("commands: {safe_commands: [seq]}\n", "seq 3", &[]).contains("1\n2\n3\n"));
    let text = run("commands: {env: {SHADE: green}}\n", "echo shade=$SHADE", yolo);
    assert!(text.contains("shade=green"), "{text}");
}

#[test]
fn the_keys_of_logging_are_obeyed() {
    let told = |config: &str| {
        let lab = Lab::new().config(config);
        (without_warning(&lab.run_done(&[]).exits(0).stderr), lab)
    };
    assert_eq!(told("logging: {level: error}\n").0, "");
    assert_eq!(told("logging: {level: warn}\n").0, "");
    let [human, info, debug] =
        ["human", "info", "debug"].map(|level| told(&format!("logging: {{level: {level}}}\n")).0);
    assert!(human.contains("Step 1") && !human.contains("info:"), "{human}");
    assert!(info.contains("info:") && !info.contains("debug:"), "{info}");
    assert!(debug.contains("debug:"), "{debug}");
    let (_, lab) = told("logging: {file: events.log}\n");
    let log = lab.read("events.log");
    assert!(log.lines().count() > 3);
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap()["event"]["type"].is_string(), "{line}");
    }
}

#[test]
fn the_keys_of_the_model_are_obeyed() {
    let server = Server::done();
    let config = format!(
        "llm:\n  model: openai/mine\n  api_base: {}\n  api_key_env: MY_KEY\n  temperature: 0.25\n  \
         max_output_tokens: 321\n  stream: false\n",
        server.url()
    );
    let lab = Lab::new().config(&config).env("MY_KEY", KEY);
    lab.agent(&["run", "task"]).exits(0);
    let request = server.requests().remove(0);
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    let body = &request.body;
    assert_eq!((&body["model"], &body["temperature"]), (&json!("mine"), &json!(0.25)));
    assert_ne!(body["stream"], true);
    assert!(body["max_tokens"] == 321 || body["max_completion_tokens"] == 321, "{body}");
    let server = Server::start("turns: [{repeat: 5, error: {status: 500}}]");
    Lab::new().config("llm: {retries: 0}\n").run(&server, &[]).exits(1);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_keys_of_the_models_timeouts_are_obeyed() {
    let runs = [
        ("first_byte_seconds", "turns: [{fault: hang}]"),
        ("silence_seconds", "turns: [{text: abcdef, chunk: 1, fault: {stall: 2}}]"),
        ("call_seconds", "turns: [{fault: hang}]"),
    ]
    .map(|(key, script)| {
        let lab = Lab::new().config(&format!("llm: {{retries: 0, timeouts: {{{key}: 1}}}}\n"));
        let server = Server::start(script);
        let run = lab.start_run(&server, &[]);
        (key, run, server, lab)
    });
    for (key, run, _server, _lab) in runs {
        let done = run.finish().exits(1);
        assert!(done.stderr.contains("Model error (timeout)"), "{key}: {}", done.stderr);
        assert!(done.stderr.contains(" 1s"), "{key}: {}", done.stderr);
    }
}

#[test]
fn the_key_of_the_time_to_connect_is_obeyed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts, so at some number of connections the queue is full and the next one waits.
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
    let _queue: Vec<TcpStream> = std::iter::from_fn(connect).collect();
    let lab = Lab::new().config("llm: {retries: 0, timeouts: {connect_seconds: 1}}\n");
    let url = format!("http://{address}/v1");
    let done = lab.agent(&["run", "x", "--model", "openai/m", "--api-base", &url, "--api-key", KEY]).exits(1);
    assert!(done.stderr.contains("no connection within 1s"), "{}", done.stderr);
}

#[test]
fn the_keys_of_the_workspace_are_obeyed() {
    let lab = Lab::new().file("inner/b.txt", "x").file("a.txt", "x");
    let root = lab.ws().join("inner");
    let lab =
        lab.config(&format!("workspace: {{root: '{}', allow_delete: true}}\nmode: yolo\n", root.display()));
    let (text, _) = call(&lab, "list_files", &json!({}), &[]);
    assert!(text.contains("b.txt") && !text.contains("a.txt"), "{text}");
    call(&lab, "delete_file", &json!({"path": "b.txt"}), &[]);
    assert!(!lab.exists("inner/b.txt"));
    let lab = Lab::new().file("b.txt", "x");
    let (text, _) = call(&lab, "delete_file", &json!({"path": "b.txt"}), &["--mode", "yolo"]);
    assert!(text.contains("workspace.allow_delete") && lab.exists("b.txt"), "{text}");
}

#[test]
fn a_home_that_is_not_there_or_not_writable_names_the_way_out() {
    let below_a_file = |lab: Lab| {
        let home = lab.ws().join("file/home");
        lab.file("file", "").env("AGENT_HOME", home.to_str().unwrap())
    };
    let read_only = |lab: Lab| {
        fs::set_permissions(lab.home(), fs::Permissions::from_mode(0o500)).unwrap();
        lab
    };
    for spoil in [&below_a_file as &dyn Fn(Lab) -> Lab, &read_only] {
        let lab = spoil(Lab::new().unprivileged());
        for args in [
            &["doctor"][..],
            &["run", "task"],
            &["run", "task", "--sandbox", "off"],
            &["tools", "call", "list_files", "{}"],
        ] {
            let told = lab.agent(args).exits(3).stderr;
            assert!(told.contains("AGENT_HOME=DIR"), "{args:?}: {told}");
        }
    }
}

/// The text of the user's configuration file.
fn user_file(lab: &Lab) -> String {
    fs::read_to_string(lab.home().join("config.yaml")).unwrap()
}

#[test]
fn u18_a_key_is_set_read_and_removed_and_comments_stay() {
    let lab = Lab::new().config("# mine\nllm:\n  model: 'openai/a'  # good\n");
    let file = lab.home().join("config.yaml");
    let mode = |mode: u32| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    let set = lab.agent(&["config", "set", "llm.model", "groq/b"]).exits(0);
    assert_eq!(set.stdout, format!("{}:3: llm.model = groq/b  (was openai/a)\n", file.display()));
    assert_eq!(user_file(&lab), "# mine\nllm:\n  model: 'groq/b'  # good\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let set = lab.agent(&["config", "set", "commands.safe_commands", "[make, 'ls -l']"]).exits(0);
    assert!(
        set.stdout.ends_with(":5: commands.safe_commands = [\"make\",\"ls -l\"]  (was not set)\n"),
        "{}",
        set.stdout
    );
    assert_eq!(lab.agent(&["config", "get", "llm.model"]).exits(0).stdout, "groq/b\n");
    assert_eq!(lab.agent(&["config", "get", "llm.retries"]).exits(0).stdout, "5\n");
    let group = lab.agent(&["config", "get", "commands"]).exits(0).stdout;
    assert!(group.contains("commands.safe_commands = [\"make\",\"ls -l\"]\n"), "{group}");
    lab.agent(&["config", "unset", "commands.safe_commands"]).exits(0);
    let unset = lab.agent(&["config", "unset", "llm.model"]).exits(0);
    assert_eq!(unset.stdout, format!("{}:3: removed llm.model  (was groq/b)\n", file.display()));
    assert_eq!(user_file(&lab), "# mine\n");
    lab.agent(&["config", "unset", "llm.model"]).exits(1);
    assert_eq!(lab.agent(&["config", "get", "llm.model"]).exits(0).stdout, "null\n");
}

#[test]
fn u18_the_first_key_creates_a_private_file() {
    let lab = Lab::new().env("AGENT_HOME", "").env("XDG_CONFIG_HOME", "");
    lab.agent(&["config", "set", "llm.model", "openai/a"]).exits(0);
    let file = lab.home().join(".config/agent/config.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), "llm:\n  model: openai/a\n");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn u18_what_is_not_valid_is_not_written() {
    let lab = Lab::new().config("llm: {retries: 1}\n");
    for (args, parts) in [
        (["llm.modle", "x"], &["llm.modle", "unknown key", "did you mean `llm.model`"][..]),
        (["model", "x"], &["did you mean `llm.model`"]),
        (["llm.retries", "many"], &["llm.retries", "must be a whole number"]),
        (["mode", "yollo"], &["mode", "did you mean `yolo`"]),
        (["llm", "x"], &["llm: is a group of keys", "llm.api_base"]),
        (["commands.safe_commands", "make"], &["must be a list", "'[make]'"]),
        (["agents.docs.mode", "yolo"], &["agents.docs", "system_prompt"]),
        (["mcp.servers.Bad Name.command", "x"], &["the name of a server"]),
    ] {
        let done = lab.agent(&["config", "set", args[0], args[1]]).exits(3);
        for part in parts {
            assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
        }
    }
    assert_eq!(user_file(&lab), "llm: {retries: 1}\n");
    let lab = Lab::new().config("llm:\n  modle: x\nguardrails:\n  protected_files:\n    - a\n");
    let broken = lab.agent(&["config", "set", "mode", "yolo"]).exits(3);
    assert!(broken.stderr.contains("config.yaml:2: llm.modle"), "{}", broken.stderr);
    lab.agent(&["config", "unset", "llm.modle"]).exits(0);
    let placed = lab.agent(&["config", "set", "guardrails.protected_files", "[b]"]).exits(3);
    assert!(placed.stderr.contains("config.yaml:2: guardrails.protected_files"), "{}", placed.stderr);
    assert!(placed.stderr.contains("with an editor"), "{}", placed.stderr);
    assert_eq!(user_file(&lab), "guardrails:\n  protected_files:\n    - a\n");
    let named = lab.agent(&["config", "set", "mode", "yolo", "-c", "other.yaml"]).exits(3);
    assert!(named.stderr.contains("--config") && !lab.exists("other.yaml"), "{}", named.stderr);
}

#[test]
fn u18_a_key_of_the_project_keeps_its_scope_and_ends_the_trust() {
    let lab = Lab::new();
    let set = lab.agent(&["config", "set", "--project", "llm.temperature", "0.5"]).exits(0);
    assert_eq!(set.stdout, ".agent/config.yaml:2: llm.temperature = 0.5  (was not set)\n");
    let refused = lab.agent(&["config", "set", "llm.api_base", "http://127.0.0.1:1", "--project"]).exits(3);
    assert!(refused.stderr.contains("llm.api_base: is never taken from a project"), "{}", refused.stderr);
    let set = lab.agent(&["config", "set", "--project", "llm.model", "openai/a"]).exits(0);
    assert!(set.stderr.contains("llm.model has no effect until you trust"), "{}", set.stderr);
    lab.agent(&["trust", "--yes"]).exits(0);
    let set = lab.agent(&["config", "set", "--project", "llm.model", "openai/b"]).exits(0);
    assert!(set.stderr.contains("no longer trusted"), "{}", set.stderr);
    assert_eq!(lab.read(".agent/config.yaml"), "llm:\n  temperature: 0.5\n  model: openai/b\n");
    assert_eq!(lab.agent(&["config", "get", "--project", "llm.model"]).exits(0).stdout, "openai/b\n");
    assert_eq!(lab.agent(&["config", "get", "llm.model"]).exits(0).stdout, "null\n");
    lab.agent(&["config", "get", "--project", "llm.retries"]).exits(1);
    let user = lab.agent(&["config", "set", "llm.temperature", "0.1"]).exits(0);
    assert!(
        user.stderr.contains("llm.temperature has no effect here: .agent/config.yaml:2"),
        "{}",
        user.stderr
    );
}

#[test]
fn u18_links_are_followed_for_the_user_and_not_out_of_a_project() {
    let lab = Lab::new().file("../dotfiles/agent.yaml", "# mine\n");
    std::os::unix::fs::symlink("../dotfiles/agent.yaml", lab.home().join("config.yaml")).unwrap();
    lab.agent(&["config", "set", "mode", "confirm-all"]).exits(0);
    assert_eq!(lab.read("../dotfiles/agent.yaml"), "# mine\nmode: confirm-all\n");
    assert!(lab.home().join("config.yaml").is_symlink());
    fs::create_dir(lab.ws().join(".agent")).unwrap();
    std::os::unix::fs::symlink("../../dotfiles/agent.yaml", lab.ws().join(".agent/config.yaml")).unwrap();
    let done = lab.agent(&["config", "set", "--project", "mode", "confirm-all"]).exits(3);
    assert!(done.stderr.contains("leaves the workspace"), "{}", done.stderr);
    assert_eq!(lab.read("../dotfiles/agent.yaml"), "# mine\nmode: confirm-all\n");
}

/// A user without a model who has a key of xAI, at whose address `server` answers.
fn with_a_key(server: &Server) -> Lab {
    let providers = format!("# mine\nllm:\n  providers:\n    xai: {{base: '{}'}}\n", server.url());
    Lab::new().config(&providers).env("XAI_API_KEY", KEY)
}

#[test]
fn u18_the_first_run_at_a_terminal_asks_for_the_model_and_stores_it() {
    let server = Server::done();
    let lab = with_a_key(&server).env("MISTRAL_API_KEY", KEY);
    let before = user_file(&lab);
    let mut screen = AtTerminal::launch(lab.command(&["run", "task"]));
    let shown = screen.see("question", |text| text.contains("Store which one?"));
    assert!(shown.contains("No model is configured. Found on this machine:"), "{shown}");
    assert!(
        shown.contains("1  mistral/devstral-latest") && shown.contains("key in MISTRAL_API_KEY"),
        "{shown}"
    );
    screen.types("2\r");
    let done = screen.finish();
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "done\n"), "{}", done.stderr);
    assert!(done.stderr.contains(":5: llm.model = xai/grok-4.7  (was not set)"), "{}", done.stderr);
    assert_eq!(user_file(&lab), format!("{before}  model: xai/grok-4.7\n"));
    assert_eq!(server.requests()[0].body["model"], "grok-4.7");
    let again = AtTerminal::launch(lab.command(&["run", "task", "--model", "xai/other"])).finish();
    assert!(!again.stderr.contains("Store which one?"), "{}", again.stderr);
}

#[test]
fn u18_without_an_answer_or_a_terminal_nothing_is_stored() {
    let server = Server::done();
    let lab = with_a_key(&server);
    let before = user_file(&lab);
    let mut screen = AtTerminal::launch(lab.command(&["run", "task"]));
    screen.see("question", |text| text.contains("Store which one?"));
    screen.types("\u{1b}");
    let done = screen.finish();
    assert!(done.code == Some(3) && done.stderr.contains("add --model xai/NAME"), "{}", done.stderr);
    let done = lab.agent(&["run", "task"]).exits(3);
    assert!(!done.stderr.contains("Found on this machine"), "{}", done.stderr);
    assert_eq!(user_file(&lab), before);
    assert!(server.requests().is_empty());
}

#[test]
fn u18_a_bare_start_asks_for_the_model_and_begins_a_conversation() {
    let server = Server::done();
    let lab = with_a_key(&server);
    let mut screen = AtTerminal::launch_controlled(&lab.command(&[]));
    screen.see("question", |text| text.contains("Store which one?"));
    screen.types("7\r");
    screen.see("second question", |text| text.matches("Store which one?").count() == 2);
    screen.types("\r");
    screen.prompt(1);
    assert!(user_file(&lab).ends_with("  model: xai/grok-4.7\n"));
    screen.types("\u{4}");
    assert_eq!(screen.finish().code, Some(0));
}
