//! Signature of an approval answer: shows that the answer was given on this machine, in this session and to this request.
//!
//! It is a hash with a key that is stored with the sessions of a workspace and never sent or exported.

use agent_core::approval::{ApprovalAnswer, ApprovalRequest};
use agent_runtime::private_file;
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes of a BLAKE3 key.
const KEY_BYTES: usize = blake3::KEY_LEN;
/// Permissions that the key file must not grant to others.
const GROUP_AND_OTHER_BITS: u32 = 0o077;

/// Signs the answers of one session.
pub struct AnswerSigner {
    key: [u8; KEY_BYTES],
    session: String,
}

impl AnswerSigner {
    /// Loads the key from `state`, the state directory of the workspace of `session`, or creates it.
    ///
    /// # Errors
    /// When the key cannot be created or read, or another user may have read or created it.
    pub fn load_or_create(state: &Path, session: &str) -> io::Result<Self> {
        let file = state.join("answers.key");
        let key = match read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(state, &file)?;
                read(&file)?
            }
            key => key?,
        };
        Ok(Self { key, session: session.to_owned() })
    }

    /// Returns the signature of `answer` to the request `request`, in hexadecimal.
    pub fn sign(&self, request: &ApprovalRequest, answer: &ApprovalAnswer) -> String {
        let text = serde_json::to_vec(&(&self.session, request, answer)).unwrap_or_default();
        blake3::keyed_hash(&self.key, &text).to_hex().to_string()
    }
}

fn read(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let (mut file, metadata) = private_file::open(path)?;
    if !private_file::is_own(&metadata, GROUP_AND_OTHER_BITS) {
        return Err(io::Error::other("another user may have read or created it"));
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(key)
}

/// Creates a key, unless another process has just created one.
fn make(state: &Path, path: &Path) -> io::Result<()> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key)?;
    let mut written = tempfile::NamedTempFile::new_in(state)?;
    written.write_all(&key)?;
    private_file::synced(written.as_file().sync_all())?;
    match written.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn asked() -> ApprovalRequest {
        ApprovalRequest { id: "a".into(), call_id: "c1".into(), ..ApprovalRequest::default() }
    }

    #[test]
    fn s22_a_seal_is_on_one_answer_to_all_of_one_question_in_one_session_of_one_workspace() {
        let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let seal = AnswerSigner::load_or_create(here.path(), "s1").unwrap();
        let with = |change: fn(&mut ApprovalRequest)| {
            let mut other = asked();
            change(&mut other);
            seal.sign(&other, &ApprovalAnswer::Approve)
        };
        let all = [
            seal.sign(&asked(), &ApprovalAnswer::Approve),
            seal.sign(&asked(), &ApprovalAnswer::Deny { reason: None }),
            AnswerSigner::load_or_create(here.path(), "s2").unwrap().sign(&asked(), &ApprovalAnswer::Approve),
            AnswerSigner::load_or_create(there.path(), "s1")
                .unwrap()
                .sign(&asked(), &ApprovalAnswer::Approve),
            with(|request| request.id = "b".into()),
            with(|request| request.call_id = "c2".into()),
            with(|request| request.tool = "run_command".into()),
            with(|request| request.summary = "b.txt".into()),
            with(|request| request.preview = Some("+x".into())),
            with(|request| request.notes = vec!["a leads to b".into()]),
            with(|request| request.subject.arguments = "1".into()),
            with(|request| request.subject.links = "1".into()),
        ];
        let unique: BTreeSet<&String> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        let again = AnswerSigner::load_or_create(here.path(), "s1").unwrap();
        assert_eq!(again.sign(&asked(), &ApprovalAnswer::Approve), all[0], "the key stays");
    }

    #[test]
    fn s22_a_key_that_others_can_read_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        AnswerSigner::load_or_create(dir.path(), "s1").unwrap();
        let key = File::open(dir.path().join("answers.key")).unwrap();
        assert_eq!(key.metadata().unwrap().mode() & 0o777, 0o600);
        key.set_permissions(Permissions::from_mode(0o644)).unwrap();
        assert!(AnswerSigner::load_or_create(dir.path(), "s1").is_err());
    }
}
