//! `agent man`: the manual pages.

use crate::support::run::Lab;
use std::fs;
use std::process::Command;

#[test]
fn a_page_is_written_for_each_command_and_mandoc_has_nothing_to_say() {
    let lab = Lab::new();
    let page = lab.agent(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH AGENT 1 2026") && page.contains("agent\\-run(1)"), "{page}");
    lab.agent(&["man", "--dir", "pages"]).exits(0);
    let mut pages: Vec<_> =
        fs::read_dir(lab.ws().join("pages")).unwrap().map(|page| page.unwrap().path()).collect();
    pages.sort();
    let names: Vec<_> = pages.iter().map(|page| page.file_name().unwrap().to_str().unwrap()).collect();
    for name in ["agent.1", "agent-run.1", "agent-skills-install.1", "agent-memory-add.1"] {
        assert!(names.contains(&name), "{names:?}");
    }
    match Command::new("mandoc").args(["-T", "lint"]).args(&pages).output() {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout)),
        Err(error) => {
            assert!(!crate::support::extent::all(), "mandoc: {error}");
            eprintln!("mandoc is not installed here: {error}");
        }
    }
    let wrong = lab.file("file", "").agent(&["man", "--dir", "file"]).exits(1);
    assert!(wrong.stderr.contains("cannot write the pages"), "{}", wrong.stderr);
}
