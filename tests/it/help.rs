//! The manual and the help of commands, as a person reads them on a screen of 24 rows and 80 columns.

use crate::support::run::Lab;
use crate::support::terminal::{AtTerminal, shown};
use std::fs;
use std::os::unix::fs::PermissionsExt;

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
