//! Tests of the rules: the order of matching and the matching of commands.

use super::*;
use agent_tools::TouchedFile;
use proptest::prelude::*;

/// Parses rules, one JSON object each.
fn rules(rules: &[&str]) -> Rules {
    let rules: Vec<PolicyRule> = rules.iter().map(|rule| serde_json::from_str(rule).unwrap()).collect();
    Rules::new(&rules, "build").unwrap()
}

fn command(text: &str) -> Plan {
    Plan { command: Some(text.into()), ..Plan::default() }
}

fn touching(paths: &[&str]) -> Plan {
    let touch = |path: &&str| TouchedFile { path: (*path).into(), write: true };
    Plan { touched_files: paths.iter().map(touch).collect(), ..Plan::default() }
}

/// Returns the action and the index of the deciding rule.
fn decided(rules: &Rules, tool: &str, plan: &Plan) -> Option<(Action, String)> {
    rules.decide(tool, plan, "/srv/shop").map(|ruling| (ruling.action, ruling.rule))
}

fn action(rules: &Rules, text: &str) -> Option<Action> {
    rules.decide("run_command", &command(text), "/srv/shop").map(|ruling| ruling.action)
}

#[test]
fn s20_a_confined_rule_leaves_alone_what_cannot_be_undone_or_reaches_beyond() {
    let rules = rules(&[
        r#"{"action": "allow", "command": "git", "confined": true}"#,
        r#"{"action": "allow", "command": "mkdir", "confined": true}"#,
    ]);
    for text in ["git log -3", "git stash", "mkdir a", "mkdir -p a/b && git add ."] {
        assert_eq!(action(&rules, text), Some(Action::Allow), "{text}");
    }
    for text in ["git push", "git reset --hard", "mkdir /etc/x", "cd .. && mkdir a"] {
        assert_eq!(action(&rules, text), None, "{text}");
    }
}

// Fault E5: rules matched the text of names, so that one for a server or tool covered others.
#[test]
fn a_rule_on_a_tool_of_a_server_matches_both_names_and_no_wildcard_reaches_into_the_other() {
    for (pattern, name, matches) in [
        ("mcp__git*__read", "mcp__github__read", true),
        ("mcp__git*__read", "mcp__github__delete__read", false),
        ("mcp__*__read", "mcp__evil__delete__read", false),
        ("mcp__*__read*", "mcp__evil__read_all", true),
        ("mcp__a__*", "mcp__a__b__x", true),
        ("mcp__a_*__x", "mcp__a__b__x", false),
        ("mcp__a?b__x", "mcp__a_b__x", true),
        ("mcp__{a,b*}__x", "mcp__b1__x", true),
        ("mcp__{a,b*}__x", "mcp__b1__y__x", false),
        ("mcp__{a__x,b__y}", "mcp__b__y", true),
        ("mcp__*delete*", "mcp__a__delete_all", true),
        ("*", "mcp__a__b", true),
        ("mcp__*__*", "write_file", false),
    ] {
        let rule = format!(r#"{{"action": "allow", "tool": "{pattern}"}}"#);
        assert_eq!(
            decided(&rules(&[rule.as_str()]), name, &Plan::default()).is_some(),
            matches,
            "{pattern} {name}"
        );
    }
}

#[test]
fn s20_the_first_rule_that_matches_decides() {
    let rules = rules(&[
        r#"{"action": "allow", "tool": "edit_file", "path": "docs/"}"#,
        r#"{"action": "deny", "tool": "*_file", "path": "docs/", "reason": "drafts"}"#,
        r#"{"action": "ask", "tool": "*_file"}"#,
    ]);
    let by = |tool, path| decided(&rules, tool, &touching(&[path])).map(|(_, rule)| rule);
    assert_eq!(by("edit_file", "docs/a.md").as_deref(), Some("policy.rules[0]"));
    assert_eq!(by("edit_file", "/srv/shop/DOCS/./a.md").as_deref(), Some("policy.rules[0]"));
    assert_eq!(by("write_file", "docs/a.md").as_deref(), Some("policy.rules[1]"));
    assert_eq!(by("write_file", "a.md").as_deref(), Some("policy.rules[2]"));
    assert_eq!(by("grep", "docs/a.md"), None);
}

#[test]
fn s20_a_rule_names_files_hosts_and_agents() {
    let all = rules(&[
        r#"{"action": "deny", "agent": "plan"}"#,
        r#"{"action": "allow", "path": "docs/"}"#,
        r#"{"action": "deny", "path": "*.lock"}"#,
        r#"{"action": "ask", "host": "*.example.org"}"#,
    ]);
    let of = |paths: &[&str]| decided(&all, "edit_file", &touching(paths)).map(|(action, _)| action);
    assert_eq!(of(&["docs/a", "docs/b"]), Some(Action::Allow));
    assert_eq!(of(&["docs/a", "src/b"]), None, "allowed are calls about nothing else");
    assert_eq!(of(&["src/b", "x/y.lock"]), Some(Action::Deny));
    assert_eq!(of(&[]), None);
    let host = |host: &str| {
        let plan = Plan { host: Some(host.into()), ..Plan::default() };
        decided(&all, "web_fetch", &plan).map(|(action, _)| action)
    };
    assert_eq!((host("a.example.org"), host("example.org")), (Some(Action::Ask), None));
    let plan = Plan { command: Some("cat docs/a".into()), ..touching(&["docs/a"]) };
    assert_eq!(decided(&all, "run_command", &plan), None, "a command may touch more than it names");
    let plan = Plan { command: Some("cat a.lock".into()), ..touching(&["a.lock"]) };
    assert_eq!(decided(&all, "run_command", &plan).unwrap().0, Action::Deny);
}

#[test]
fn s20_one_denied_part_denies_a_command_however_it_is_written() {
    let rules = rules(&[r#"{"action": "deny", "command": "git push"}"#]);
    for text in [
        "git push",
        "git push --force origin main",
        "git status; git push",
        "true && (cd x; git push) || ls | wc",
        "echo $(git push)",
        "git -C dir push",
        "git -c a=b --no-pager push",
        "/usr/bin/git push",
        "'git' \"push\"",
        "gi\\t push",
        "A=1 git push >log 2>&1",
        "env A=1 git push",
        "timeout 5 nice git push",
        "find . -exec git push ;",
        "echo x | xargs git push",
        "env $program push",
        "timeout 5 \"$program\" push",
        "timeout -k 5 \"$program\" push",
        "sh -c 'git push'",
        "bash -ec \"sh -c 'git push'\"",
        "eval git push",
        "sh <<E\ngit push\nE",
        "if true; then git push; fi",
        "f() { git push; }; f",
        "git pu?h",
        "git $action",
        "$program push",
        "sh -c \"$text\"",
        "echo Z2l0IHB1c2g= | base64 -d | sh",
        "git push 'unfinished",
    ] {
        assert_eq!(action(&rules, text), Some(Action::Deny), "{text}");
    }
    for text in [
        "git pull",
        "git status",
        "git commit -m 'git push'",
        "echo git push",
        "cat push",
        "pushd x",
        "git -C dir status push",
        "for x in a b; do echo \"$x\"; done",
        "sh build.sh",
        "timeout \"$seconds\" git pull",
        "echo push | xargs -n 1 echo \"$x\"",
        "echo push | xargs -n 1 echo \"$x\" push",
        "",
        "# git push",
    ] {
        assert_eq!(action(&rules, text), None, "{text}");
    }
}

#[test]
fn s20_a_command_is_allowed_only_when_every_part_of_it_is() {
    let rules = rules(&[
        r#"{"action": "deny", "command": "git push --force"}"#,
        r#"{"action": "allow", "command": "git push"}"#,
        r#"{"action": "allow", "command": "ls"}"#,
        r#"{"action": "ask", "command": "git"}"#,
    ]);
    for text in ["git push", "git push origin \"$branch\"", "ls && git push; ls -l | ls", "ls 2>/dev/null"] {
        assert_eq!(action(&rules, text), Some(Action::Allow), "{text}");
    }
    for text in ["git push; git status", "ls $(git log)", "git -C x push", "PATH=. git push", "./git push"] {
        assert_eq!(action(&rules, text), Some(Action::Ask), "{text}");
    }
    for text in [
        "ls; touch x",
        "ls\ntouch x",
        "ls & touch x",
        "ls > x",
        "PATH=.; ls",
        "./ls",
        "ls $(touch x)",
        "ls `touch x`",
        "ls \"${x:-$(touch y)}\"",
        "ls <(touch x)",
        "ls <<E\n$(touch x)\nE",
        "x=$(touch y) ls",
        "[[ -n $(touch x) ]] && ls",
        "ls $((a[$(touch x)]))",
        "ls &> x",
        "ls >| x",
        "{ ls; } > x",
        "ls() { touch x; }; ls",
        "$x ls",
        "env ls",
        "l{s,x}",
        "'l's() { x; }",
        "if ls; then ls; fi",
    ] {
        assert_ne!(action(&rules, text), Some(Action::Allow), "{text}");
    }
    assert_eq!(action(&rules, "ls; git push --force"), Some(Action::Deny));
}

#[test]
fn s20_words_that_a_command_gets_from_elsewhere_are_not_told() {
    let rules = rules(&[r#"{"action": "deny", "command": "git push"}"#]);
    for text in [
        "echo push | xargs git",
        "echo push | xargs -n 1 git -C dir",
        "echo push | xargs -I % git %",
        "ls | parallel git {}",
        "find . -name push -exec git {} ;",
        "echo git | xargs -I X X push",
        "echo git | xargs -n 1 -P 4 -I{} {} push",
        "echo git | xargs -0rI % env A=1 bin/% push",
        "echo git | env xargs --replace=X timeout 5 X push",
        "ls | parallel {} push",
        "find . -name git -exec {} push ; -exec cat {} ;",
        "find . -exec env git push ;",
        "find . -exec cat {} \\; -exec nice -n 5 timeout 3 git push \\;",
        "find . -name git -exec env {} push ;",
        "xargs find . -exec env git push ;",
    ] {
        assert_eq!(action(&rules, text), Some(Action::Deny), "{text}");
    }
    for text in [
        "ls | xargs git add",
        "ls | xargs -I{} git add {}",
        "ls | xargs -I X cat X",
        "ls | xargs -I X cat X push",
        "ls | xargs -n 1 -I{} cp {} push",
        "find . -exec cp {} push ;",
        "find . -exec env cp {} push ;",
        "find . -exec nice git add {} +",
        "ls | xargs cat \"$x\"",
        "find . -exec git add {} +",
    ] {
        assert_eq!(action(&rules, text), None, "{text}");
    }
}

#[test]
fn s20_what_the_text_does_not_tell_is_held_to_the_strictest_rule_that_it_may_be_about() {
    let all = rules(&[
        r#"{"action": "ask", "command": "docker"}"#,
        r#"{"action": "ask", "command": "git push"}"#,
        r#"{"action": "deny", "command": "git"}"#,
        r#"{"action": "allow"}"#,
        r#"{"action": "deny", "command": "ls"}"#,
    ]);
    for (text, decides) in [
        ("$program push", Action::Deny),
        ("env $program push", Action::Deny),
        ("git $action", Action::Deny),
        ("git push 'unfinished", Action::Deny),
        ("sh -c \"$text\"", Action::Deny),
        ("echo push | xargs git", Action::Deny),
        ("git push \"$branch\"", Action::Ask),
        ("git -C dir push", Action::Ask),
        ("timeout 5 git push", Action::Ask),
        ("docker run \"$image\"", Action::Ask),
        ("ls", Action::Allow),
    ] {
        assert_eq!(action(&all, text), Some(decides), "{text}");
    }
}

#[test]
fn s20_of_rules_that_are_as_strict_the_first_is_named() {
    let rules =
        rules(&[r#"{"action": "deny", "command": "git push"}"#, r#"{"action": "deny", "command": "git"}"#]);
    let by = |text: &str| decided(&rules, "run_command", &command(text)).map(|(_, rule)| rule);
    assert_eq!(by("git $action").as_deref(), Some("policy.rules[0]"));
    assert_eq!(by("git pull").as_deref(), Some("policy.rules[1]"));
}

#[test]
fn s20_texts_inside_of_texts_are_looked_into_within_bounds() {
    let rules = rules(&[r#"{"action": "deny", "command": "git push"}"#]);
    let wrapped = |text: &str| format!("env {} -c '{}'", "sh ".repeat(60), text.replace('\'', r"'\''"));
    let deep = (0..4).fold("ls".to_owned(), |text, _| wrapped(&text));
    assert_eq!(action(&rules, &deep), Some(Action::Deny), "what is not looked into may be anything");
    assert_eq!(action(&rules, "sh -c 'sh -c ls'"), None);
}

#[test]
fn a_rule_that_cannot_be_compiled_is_named() {
    let rule: PolicyRule = serde_json::from_str(r#"{"action": "deny", "tool": "[x"}"#).unwrap();
    let error = Rules::new(&[rule], "build").unwrap_err().to_string();
    assert!(error.starts_with("policy.rules[0]: tool: "), "{error}");
}

proptest! {
    #[test]
    fn s20_what_is_put_around_a_denied_command_does_not_free_it(
        wrappers in prop::collection::vec(0_usize..6, 0..4),
    ) {
        let rules = rules(&[r#"{"action": "deny", "command": "git push"}"#, r#"{"action": "allow"}"#]);
        let wrapped = wrappers.iter().fold("git push".to_owned(), |text, wrapper| match wrapper {
            0 => format!("( {text} )"),
            1 => format!("ls; {text}; ls"),
            2 => format!("echo $( {text} )"),
            3 => format!("sh -c '{}'", text.replace('\'', r"'\''")),
            4 => format!("if true; then {text}; fi"),
            _ => format!("true && {text} &"),
        });
        prop_assert_eq!(action(&rules, &wrapped), Some(Action::Deny), "{}", wrapped);
    }

    #[test]
    fn s20_any_text_is_judged(text in "(git |push|sh -c |env |eval |[a'\"|;<>&$(){}` \n-]){0,60}") {
        let rules = rules(&[r#"{"action": "deny", "command": "git push"}"#]);
        action(&rules, &text);
    }
}
