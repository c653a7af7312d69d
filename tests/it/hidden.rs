//! What commands do not see or change although it lies in what they may change, in each kind of kernel.

use crate::sandbox::{confining, project, run, said};
use crate::support::run::Lab;
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
        let script = "cat keys/id deep/er/keys/id alias/id\n\
                      for d in keys deep/er/keys alias; do echo x >> $d/id; echo x > $d/new; done\n\
                      mv deep moved; mv deep/er deep/moved; mv keys seen; mv deep/er/keys work/\n\
                      rm -rf keys deep/er/keys\n\
                      echo made > work/new; echo changed > work/file; cat work/new";
        let first = said(&run(&lab, kernel, script));
        let again = "cat seen/id moved/er/keys/id deep/moved/keys/id work/keys/id keys/id deep/er/keys/id alias/id";
        let second = said(&run(&lab, kernel, again));
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
        let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let keys = outside.path().join("keys");
        fs::create_dir(&keys).unwrap();
        fs::write(keys.join("id"), SECRET).unwrap();
        let lab = project().file("part/file", "");
        let config = format!(
            "sandbox: {{hidden: ['{}'], writable: ['{}/part']}}\n",
            keys.display(),
            lab.ws().display()
        );
        let lab = lab.config(&config);
        let script = format!(
            "rm -rf part; ln -s '{0}' part\nsh -c 'cat part/id'\necho x >> part/id\nln -sfn '{0}' '{1}/link'; true",
            keys.display(),
            outside.path().display()
        );
        let first = said(&run(&lab, kernel, &script));
        let second = said(&run(&lab, kernel, "cat part/id; echo x >> part/id"));
        assert!(!first.contains(SECRET) && !second.contains(SECRET), "{tier}: {first}{second}");
        assert_eq!(fs::read_to_string(keys.join("id")).unwrap(), SECRET, "{tier}: {first}{second}");
        assert!(!Path::new(&outside.path().join("link")).exists(), "{tier}");
    }
}
