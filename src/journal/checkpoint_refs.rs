//! Git refs of a session's checkpoints: their names, and the refs that the session has created.

use crate::read;
use agent_core::event::Event;
use std::io;
use std::path::Path;

/// Returns the name of the ref for the checkpoint of `session` after `step`.
pub fn ref_name(session: &str, step: u32) -> String {
    format!("refs/agent/{session}/{step}")
}

/// Returns the refs of the checkpoints that `session` has created, read from the journal at `path`. In the journal of a
/// copied session, refs of the original are skipped.
///
/// # Errors
/// When the journal cannot be read.
pub fn list_refs(path: &Path, session: &str) -> io::Result<Vec<String>> {
    let mut references = Vec::new();
    read::for_each_record(path, |_, record| {
        if let Some(Event::Checkpoint { step, reference: name, .. }) = record.map(|record| record.event)
            && name == ref_name(session, step)
        {
            references.push(name);
        }
        true
    })?;
    Ok(references)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::encode;
    use agent_core::event::Record;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn only_the_sessions_own_checkpoints_count_whatever_a_journal_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut file = File::create_new(&path).unwrap();
        let names = ["refs/agent/own/1", "refs/agent/other/1", "refs/heads/main", "refs/agent/own/1\nx", "x"];
        for name in names {
            let event = Event::Checkpoint {
                step: 1,
                reference: name.into(),
                commit: "c".into(),
                omitted_files: Vec::new(),
            };
            let record = Record { v: 1, seq: 0, run: "r".into(), step: 1, wall_ms: 1, mono_us: 1, event };
            let mut line = Vec::new();
            encode(&record, &mut line).unwrap();
            file.write_all(&line).unwrap();
        }
        assert_eq!(list_refs(&path, "own").unwrap(), ["refs/agent/own/1"]);
        assert_eq!(list_refs(&path, "none").unwrap(), Vec::<String>::new());
    }
}
