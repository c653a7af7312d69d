//! What the agent tells its launcher process, and the one record that comes back.
//!
//! Both travel over the socket that is the launcher's standard input: a byte that carries descriptors ([`super::network`]),
//! the request as a length (u32, little endian), that many bytes of JSON and the command's standard input; the answer as five
//! bytes, a tag and an i32. A report about protected files may follow it.

use super::limits::{CommandLimits, ExceededLimit};
use super::sandbox::{SandboxPolicy, SandboxProbe};
use super::tier::Tier;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

/// The hidden first argument that makes the binary a launcher.
pub(super) const LAUNCH_ARGUMENT: &str = "__launch";

/// The program that some systems allow what they refuse to others. Never another of that name.
pub(super) const BUBBLEWRAP: &str = "/usr/bin/bwrap";

/// The longest JSON part the launcher reads, in bytes: a command line and an environment are each limited to 2 MiB by
/// the kernel's default stack limit, and escapes can double them.
const MAX_REQUEST_BYTES: u32 = 16 * 1024 * 1024;

/// What the launcher is to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LaunchRequest {
    /// How to hold the tree.
    pub(super) tier: Tier,
    /// Program and arguments; empty asks only whether the tier works.
    pub(super) argv: Vec<String>,
    /// What the command may reach, where the tier confines it.
    pub(super) policy: SandboxPolicy,
    /// What it may take of the machine.
    pub(super) limits: CommandLimits,
    /// Whether a network for the commands of a run is made instead of starting one.
    pub(super) makes_network: bool,
    /// What is tried instead of a command.
    pub(super) probe: Option<SandboxProbe>,
    /// Whether the view of the file system has been arranged already, by the program that started this launcher.
    pub(super) in_bubblewrap: bool,
    /// Where what a command makes of protected files is moved to.
    pub(super) quarantine: PathBuf,
    /// The whole environment of the command.
    pub(super) env: BTreeMap<String, String>,
    /// Which rights the command does not give, as its user has set it.
    pub(super) umask: Option<u32>,
    /// Bytes of standard input that follow.
    pub(super) stdin_bytes: u64,
}

/// What the fork server is to look at before the first of the commands that run at one time, so that it can be put back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SnapshotRequest {
    /// What holds the command, and with it what is held.
    pub(super) tier: Tier,
    /// What it may reach.
    pub(super) policy: SandboxPolicy,
}

/// What became of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchReply {
    /// The command exited with this code.
    Exited(i32),
    /// A signal ended the command.
    Signalled(i32),
    /// The command took too much and was ended.
    Exceeded(ExceededLimit),
    /// The program could not be executed; an errno, which is never 0.
    NotStarted(i32),
    /// The kernel refuses the tier; likewise.
    Refused(i32),
}

impl LaunchRequest {
    /// A request that starts nothing: it only asks whether the tier works.
    pub(super) fn without_command(tier: Tier) -> Self {
        Self {
            tier,
            argv: Vec::new(),
            policy: SandboxPolicy::default(),
            limits: CommandLimits::default(),
            makes_network: false,
            probe: None,
            in_bubblewrap: false,
            quarantine: PathBuf::new(),
            env: BTreeMap::new(),
            umask: None,
            stdin_bytes: 0,
        }
    }

    /// The length prefix and the JSON.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).ok().filter(|length| *length <= MAX_REQUEST_BYTES);
        let length =
            length.ok_or_else(|| io::Error::other("the command and its environment are too long"))?;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(json);
        Ok(bytes)
    }

    #[cfg(any(target_os = "linux", test))]
    /// Reads what [`encode`](Self::encode) wrote.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_REQUEST_BYTES {
            return Err(io::Error::other("not a request"));
        }
        let mut json = Vec::with_capacity(length as usize);
        from.take(u64::from(length)).read_to_end(&mut json)?;
        Ok(serde_json::from_slice(&json)?)
    }
}

impl LaunchReply {
    /// The bytes of one answer.
    pub(super) const BYTES: usize = 5;

    #[cfg(any(target_os = "linux", test))]
    /// The five bytes.
    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let (tag, value) = match self {
            Self::Exited(code) => (b'x', code),
            Self::Signalled(signal) => (b's', signal),
            Self::Exceeded(excess) => (b'l', excess.code()),
            Self::NotStarted(errno) => (b'n', errno),
            Self::Refused(errno) => (b'r', errno),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    #[cfg(target_os = "linux")]
    /// Sends the answer; whether anyone still listens does not matter.
    pub(super) fn send(self, to: &mut impl io::Write) {
        let _nobody_listens = to.write_all(&self.encode());
    }

    #[cfg(target_os = "linux")]
    /// The program could not be executed.
    pub(super) fn not_started(error: &io::Error) -> Self {
        Self::NotStarted(errno(error))
    }

    #[cfg(target_os = "linux")]
    /// The kernel refuses the tier.
    pub(super) fn refused(error: &io::Error) -> Self {
        Self::Refused(errno(error))
    }

    /// The first answer in `bytes`, if they begin with one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let [tag, a, b, c, d, ..] = *bytes else { return None };
        let value = i32::from_le_bytes([a, b, c, d]);
        match tag {
            b'x' => Some(Self::Exited(value)),
            b's' => Some(Self::Signalled(value)),
            b'l' => ExceededLimit::from_code(value).map(Self::Exceeded),
            b'n' => Some(Self::NotStarted(value)),
            b'r' => Some(Self::Refused(value)),
            _ => None,
        }
    }
}

#[cfg(any(target_os = "linux", test))]
/// The errno that says best what `error` says: its own, that of the error which it wraps, or that of its kind.
fn errno(error: &io::Error) -> i32 {
    let wrapped =
        std::iter::successors(error.get_ref().map(|inner| inner as &dyn std::error::Error), |inner| {
            inner.source()
        });
    let mut own = wrapped.filter_map(|inner| inner.downcast_ref::<io::Error>()?.raw_os_error());
    let of_kind = || match error.kind() {
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::BrokenPipe => libc::EPIPE,
        io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
        _ => libc::EIO,
    };
    error.raw_os_error().or_else(|| own.next()).filter(|errno| *errno != 0).unwrap_or_else(of_kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_order_survives_the_way() {
        let request = LaunchRequest {
            argv: vec!["sh".to_owned(), "-c".to_owned(), "echo 'ä\n'".to_owned()],
            env: BTreeMap::from([("A".to_owned(), "b=c".to_owned())]),
            stdin_bytes: 7,
            ..LaunchRequest::without_command(Tier::Subreaper)
        };
        let read = LaunchRequest::read(&mut request.encode().unwrap().as_slice()).unwrap();
        assert_eq!(
            (read.tier, read.argv, read.env, read.stdin_bytes),
            (request.tier, request.argv, request.env, 7)
        );
    }

    #[test]
    fn an_error_without_an_errno_is_not_told_as_a_success() {
        let denied = || io::Error::from_raw_os_error(libc::EACCES);
        for (error, told) in [
            (denied(), libc::EACCES),
            (io::Error::other(denied()), libc::EACCES),
            (io::ErrorKind::Unsupported.into(), libc::EOPNOTSUPP),
            (io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data"), libc::EINVAL),
            (io::Error::other("fork gave no process id"), libc::EIO),
            (io::Error::from_raw_os_error(0), libc::EIO),
        ] {
            assert_eq!(errno(&error), told, "{error}");
        }
    }

    proptest! {
        #[test]
        fn an_answer_survives_the_way(value: i32) {
            for answer in [LaunchReply::Exited(value), LaunchReply::Signalled(value), LaunchReply::NotStarted(value), LaunchReply::Refused(value)] {
                prop_assert_eq!(LaunchReply::decode(&answer.encode()), Some(answer));
            }
        }

        #[test]
        fn garbage_is_no_order(bytes: Vec<u8>) {
            prop_assert!(LaunchRequest::read(&mut bytes.as_slice()).is_err());
        }
    }
}
