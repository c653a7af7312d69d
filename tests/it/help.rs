//! The manual and the help of commands, as a person reads them on a screen of 24 rows and 80 columns.

use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use crate::support::terminal::{AtTerminal, shown};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs `agent` with all its streams at a terminal to its end; gives back what it wrote.
fn at_terminal(lab: &Lab, args: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = lab.command(args);
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    let done = AtTerminal::launch_on_screen(command).finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.stderr
}

/// A paragraph of a page of the manual, on one line.
const PARAGRAPH: &str = "Then your rules apply (policy.rules, below). If no rule matches, the mode decides. It is set by --mode, else by the configuration, else by the agent.";

#[test]
fn u20_a_topic_is_drawn_for_the_width_of_the_terminal() {
    let lab = Lab::new();
    let written = at_terminal(&lab, &["help", "permissions"], &[("PAGER", "cat")]);
    assert!(written.contains("\u{1b}[1mPermissions\u{1b}[0m\r\n"), "{written}");
    let seen = shown(&written);
    let rows: Vec<&str> = seen.lines().collect();
    let first = rows.iter().position(|row| row.starts_with("Then your rules")).unwrap();
    let count = rows[first..].iter().take_while(|row| !row.is_empty()).count();
    assert_eq!((rows[first..first + count].join(" ").as_str(), count), (PARAGRAPH, 2), "{seen}");
    assert!(seen.contains("─┼─") && !seen.contains("|---") && !seen.contains("**"), "{seen}");
}

#[test]
fn u20_the_manual_is_unchanged_where_it_is_not_read_on_a_terminal() {
    let page = Lab::new().env("PAGER", "false").agent(&["help", "providers"]).exits(0);
    let source =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/help/providers.md")).unwrap();
    let expected: String = source.split_inclusive('\n').filter(|line| !line.starts_with("<!--")).collect();
    assert_eq!(page.stdout, expected);
}

#[test]
fn u20_a_topic_that_is_longer_than_the_screen_is_shown_with_the_pager() {
    let lab = Lab::new();
    let paged = at_terminal(&lab, &["help", "permissions"], &[("PAGER", "sed 's/^/paged: /'")]);
    assert!(paged.lines().filter(|row| !row.is_empty()).all(|row| row.starts_with("paged: ")), "{paged}");
    for variables in [[("PAGER", ""), ("TERM", "xterm")], [("PAGER", "echo paged"), ("TERM", "dumb")]] {
        let printed = at_terminal(&lab, &["help", "permissions"], &variables);
        assert!(!printed.contains("paged"), "{printed}");
    }
}

#[test]
fn u20_without_a_pager_of_the_user_less_is_started_if_it_is_there() {
    let lab = Lab::new();
    let programs = lab.home().join("bin");
    fs::create_dir_all(&programs).unwrap();
    let path = programs.to_str().unwrap();
    let printed = at_terminal(&lab, &["help", "permissions"], &[("PATH", path)]);
    assert!(shown(&printed).starts_with("Permissions\n"), "{printed}");
    let less = programs.join("less");
    fs::write(&less, "#!/bin/sh\necho less \"$@\"\n").unwrap();
    fs::set_permissions(&less, fs::Permissions::from_mode(0o755)).unwrap();
    let paged = at_terminal(&lab, &["help", "permissions"], &[("PATH", path)]);
    assert_eq!(paged, "less -FRX\r\n");
}

#[test]
fn u20_an_unknown_topic_is_answered_with_the_nearest_one() {
    let unknown = Lab::new().agent(&["help", "permision"]).exits(3);
    assert!(unknown.stderr.contains("did you mean `permissions`?"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("`agent help` lists the topics"), "{}", unknown.stderr);
    assert_eq!(unknown.stderr.lines().count(), 1, "{}", unknown.stderr);
}

/// The rows of the help of `args`, as they are on the screen.
fn rows(args: &[&str]) -> Vec<String> {
    let seen = shown(&at_terminal(&Lab::new(), args, &[("PAGER", "cat")]));
    seen.lines().map(str::to_owned).collect()
}

/// The options that begin a row.
fn options(rows: &[String]) -> usize {
    rows.iter().filter(|row| row.trim_start().starts_with('-')).count()
}

#[test]
fn u20_the_short_help_of_run_and_chat_fits_the_screen_and_names_a_dozen_options() {
    for command in ["run", "chat"] {
        let short = rows(&[command, "-h"]);
        assert!(short.len() <= 25 && short.iter().all(|row| row.chars().count() <= 80), "{short:#?}");
        assert_eq!(options(&short), 12, "{short:#?}");
        assert!(short.iter().any(|row| row.contains("--model <MODEL>   Model: ")), "{short:#?}");
    }
}

#[test]
fn u20_the_long_help_of_run_and_chat_has_all_options_in_seven_groups() {
    for (command, own) in [("run", "--history <FILE>"), ("chat", "--budget-total <USD>")] {
        let long = rows(&[command, "--help"]);
        let headings: Vec<&str> =
            long.iter().filter_map(|row| row.strip_suffix(':')).filter(|row| !row.starts_with(' ')).collect();
        let groups = ["Task", "Model", "Permissions", "Limits", "Sandbox", "Output", "CI"];
        assert_eq!(headings, groups, "{long:#?}");
        for option in
            ["--config <FILE>", "--exit-code-on-partial <N>", "--allow-host <HOST[:PORT]>", own, "--help"]
        {
            assert!(long.iter().any(|row| row.contains(option)), "{option}: {long:#?}");
        }
    }
}

#[test]
fn u20_the_manual_pages_describe_the_options_that_the_short_help_leaves_out() {
    let lab = Lab::new();
    lab.agent(&["man", "--dir", "pages"]).exits(0);
    let page = fs::read_to_string(lab.ws().join("pages/agent-run.1")).unwrap();
    assert!(page.contains("Earlier conversation"), "{page}");
}

#[test]
fn u20_a_help_that_is_longer_than_the_screen_is_shown_with_the_pager() {
    for (args, is_long) in
        [(vec!["run", "--help"], true), (vec!["run", "-h"], false), (vec!["--help"], false)]
    {
        let written = at_terminal(&Lab::new(), &args, &[("PAGER", "echo paged")]);
        assert_eq!(written == "paged\r\n", is_long, "{args:?}: {written}");
    }
}

#[test]
fn u20_the_help_shows_a_dozen_commands_and_all_of_them_on_request() {
    let usual = rows(&["--help"]);
    let listed = usual.iter().skip_while(|row| *row != "Commands:").skip(1).take_while(|row| !row.is_empty());
    assert!(usual.len() < 24 && listed.count() == 12, "{usual:#?}");
    assert!(usual.iter().any(|row| row.contains("`agent help commands` lists all commands")), "{usual:#?}");
    let all = rows(&["help", "commands"]);
    for row in ["Work", "Machine-readable", "• run: Run a task in the workspace"] {
        assert!(all.iter().any(|shown| shown == row), "{row}: {all:#?}");
    }
    let of_a_command = Lab::new().agent(&["help", "run"]).exits(3).stderr;
    assert!(of_a_command.contains("`agent run --help` describes this command"), "{of_a_command}");
    let long = at_terminal(&Lab::new(), &["help"], &[("PAGER", "echo paged; cat")]);
    assert!(
        long.starts_with("paged\r\n") && shown(&long).lines().all(|row| row.chars().count() < 80),
        "{long}"
    );
}

/// The topics to which a text refers.
fn topics_in(text: &str) -> Vec<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let after = words.split("`agent help ").skip(1).map(str::to_owned);
    after
        .filter_map(|rest| Some(rest.split_once('`')?.0.to_owned()))
        .filter(|topic| topic != "TOPIC")
        .collect()
}

#[test]
fn u20_each_reference_of_the_manual_and_the_readme_is_to_a_topic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = Lab::new().agent(&["help"]).exits(0).stdout;
    let known: Vec<&str> =
        list.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect();
    let pages = fs::read_dir(root.join("config/help")).unwrap().map(|page| page.unwrap().path());
    for path in pages.chain([root.join("README.md"), root.join("hooks/README.md")]) {
        let topics = topics_in(&fs::read_to_string(&path).unwrap());
        let unknown: Vec<_> = topics.iter().filter(|topic| !known.contains(&topic.as_str())).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", path.display());
    }
}

#[test]
fn u20_sessions_and_figures_fit_80_columns() {
    let lab = Lab::with_a_txt();
    let server = Server::start("turns: [{text: done}]");
    let task = "explain at length what the parser of this project does with a line that is too long";
    let model = "openai/a-model-with-quite-a-long-name-2026-11-28";
    lab.agent(&["run", task, "--model", model, "--api-base", &server.url(), "--api-key", KEY]).exits(0);
    for (args, parts) in [
        (&["sessions", "list"][..], ["ID ", "success", "explain at length what"]),
        (&["stats"], ["MODEL ", "OUTPUT ", "openai/a-model-with"]),
    ] {
        let written = at_terminal(&lab, args, &[]);
        let lines: Vec<&str> = written.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{written}");
        assert!(parts.iter().all(|part| written.contains(part)), "{written}");
    }
}
