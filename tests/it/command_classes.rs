//! What a command is, by the worst of its parts, and what follows from that in each mode.

use crate::support::calls::obeyed;
use crate::support::run::Lab;

fn with_three_files() -> Lab {
    Lab::with_a_txt().file("kept.txt", "kept\n").file("sub/b.txt", "beta\n")
}

fn texts(commands: &[&str]) -> Vec<String> {
    commands.iter().map(|text| (*text).to_owned()).collect()
}

/// Each of these commands is answered with a text that contains `part`.
#[track_caller]
fn all_are_told(lab: &Lab, mode: &str, commands: &[&str], part: &str) {
    for (command, result) in commands.iter().zip(obeyed(lab, mode, &texts(commands))) {
        assert!(result.contains(part), "{command}: {result}");
    }
}

/// Commands that could not be undone if they had anything to undo.
const DESTRUCTIVE: [&str; 5] = [
    "rm -r sub",
    "rm -f sub/*",
    "sh -c 'rm -r sub'",
    "find sub -exec rm -r {} +",
    "if true; then rm -r sub; fi",
];

#[test]
fn s07_the_worst_part_of_a_command_decides() {
    let runs = [
        "ls; pwd",
        "ls sub | wc -l",
        "cat a.txt && (cd sub && cat b.txt)",
        "grep -c a a.txt 2>/dev/null # touch made",
        "cat a.txt\nls",
    ];
    all_are_told(&with_three_files(), "confirm-sensitive", &runs, "exit_code: 0");
    let asked = [
        "ls; touch made",
        "ls && touch made",
        "ls | tee made",
        "cat a.txt > made",
        "f() { touch made; }; f",
        "git push",
        "ls; $MADE",
        "ls )",
        "cd sub && cat ../../b.txt",
    ];
    let lab = with_three_files();
    all_are_told(&lab, "confirm-sensitive", &[&asked[..], &DESTRUCTIVE].concat(), "needs a confirmation");
    assert!(!lab.exists("made") && lab.exists("sub/b.txt"));
}

#[test]
fn what_cannot_be_undone_runs_in_yolo() {
    for command in DESTRUCTIVE {
        let lab = with_three_files();
        let result = obeyed(&lab, "yolo", &texts(&[command])).remove(0);
        assert!(result.contains("exit_code") && !lab.exists("sub/b.txt"), "{command}: {result}");
    }
}

#[test]
fn s09_allowed_only_takes_known_commands_in_lists_and_pipes_only() {
    let lab = with_three_files().config("commands: {allowed_only: true}\n");
    all_are_told(&lab, "yolo", &["ls; cat a.txt | wc -l", "cd sub && ls"], "exit_code: 0");
    let refused = ["touch made", "ls; touch made", "ls > made", "sh -c ls", "if true; then ls; fi"];
    all_are_told(&lab, "yolo", &refused, "`commands.allowed_only` permits only");
    assert!(!lab.exists("made"));
}

#[test]
fn s11_what_a_command_writes_is_held_to_the_rules_about_files_in_every_form() {
    let lab = with_three_files().config("guardrails: {protected_files: [kept.txt]}\n");
    let refused = [
        "sed -i s/k/x/ kept.txt",
        "cp a.txt kept.txt",
        "mv a.txt kept.txt",
        "mv kept.txt made",
        "ln -sf a.txt kept.txt",
        "git checkout -- kept.txt",
        "git restore kept.txt",
        "git -C . rm kept.txt",
        "cat a.txt | tee kept.txt",
        "cat a.txt >| kept.txt",
        "{ cat a.txt; ls; } &> kept.txt",
        "while false; do ls; done > kept.txt",
        "f() { echo x > kept.txt; }; f",
        "find sub -exec cp {} kept.txt ';'",
        "sh -c 'echo x > kept.txt'",
        "echo 'echo x > kept.txt' | sh",
        "bash <<'E'\necho x > kept.txt\nE",
        "timeout 5 env A=1 tee kept.txt",
        "cd sub && echo x > ../kept.txt",
        "echo x > $'kept\\x2etxt'",
        "patch kept.txt a.txt",
        "rsync a.txt kept.txt",
    ];
    all_are_told(&lab, "yolo", &refused, "Protected file blocked by guardrail");
    all_are_told(&lab, "yolo", &["cd .git && echo x > hooks/pre-commit"], "(pattern: .git)");
    assert_eq!((lab.read("kept.txt").as_str(), lab.read("a.txt").as_str()), ("kept\n", "alpha\n"));
}

#[test]
fn class_39_what_is_too_much_to_look_through_never_runs_and_is_to_be_split() {
    let many = vec!["true"; 300].join("; ");
    let long = format!("echo {}", "a".repeat(10_000));
    let deep = format!("{}true{}", "( ".repeat(60), " )".repeat(60));
    all_are_told(&Lab::new(), "yolo", &[&many, &long, &deep], "split it");
}

// Fault B14: reading git and version commands asked where `make` ran.
#[test]
fn a_query_is_decided_like_a_build_and_asks_where_it_could_show_sensitive_files() {
    let decision = |lab: &Lab, text: &str| {
        let shown =
            lab.agent(&["policy", "test", "--mode", "confirm-sensitive", &format!("run_command {text}")]);
        shown.stdout.split_whitespace().next().unwrap_or_default().to_owned()
    };
    let lab = Lab::new().file("a.txt", "a\n");
    for text in [
        "git status",
        "git log --oneline",
        "git diff",
        "git branch",
        "git remote -v",
        "cargo --version",
        "pip list",
        "env",
    ] {
        assert_eq!(decision(&lab, text), decision(&lab, "make"), "{text}");
    }
    assert_ne!(decision(&lab, "git branch new"), "allow");
    let lab = lab.config("guardrails: {sensitive_files: [.env]}\n");
    assert_eq!(decision(&lab, "git status"), decision(&lab, "make"));
    for text in ["git diff", "git status -v", "git status -vv", "git status --verbose"] {
        assert_ne!(decision(&lab, text), "allow", "{text}");
    }
}
