//! Messages between the agent and its launcher process.
//!
//! All messages use the socket that is the launcher's standard input. The request is a byte that carries descriptors
//! ([`super::network_namespace`]), the length (u32, little endian), that many bytes of JSON, and the command's standard input.
//! The reply has five bytes: a tag and an i32. A report on protected files may follow it.

use super::limits::{CommandLimits, ExceededLimit};
use super::sandbox::{SandboxPolicy, SandboxProbe};
use super::tier::Tier;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

/// Hidden first argument that makes the binary a launcher.
pub(super) const LAUNCH_ARGUMENT: &str = "__launch";

/// Path of bubblewrap, which some systems allow to create namespaces. No other program of that name is used.
pub(super) const BUBBLEWRAP: &str = "/usr/bin/bwrap";

/// Longest JSON part that the launcher reads, in bytes. The kernel's default stack limit restricts a command line and an
/// environment to 2 MiB each, and escapes can double them.
const MAX_REQUEST_BYTES: u32 = 16 * 1024 * 1024;

/// Request to start one command.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LaunchRequest {
    /// Tier that confines the command and holds its tree together.
    pub(super) tier: Tier,
    /// Program and arguments. Empty only checks whether the tier works.
    pub(super) argv: Vec<String>,
    /// Paths and network that the command may access, if the tier confines it.
    pub(super) policy: SandboxPolicy,
    /// Resource limits of the command.
    pub(super) limits: CommandLimits,
    /// Whether to create a network for the commands of a run instead of starting one.
    pub(super) makes_network: bool,
    /// Whether the network gets a listener for the proxy of the agent.
    pub(super) listens: bool,
    /// Probe to run instead of a command.
    pub(super) probe: Option<SandboxProbe>,
    /// Whether bubblewrap has already arranged the file system view.
    pub(super) in_bubblewrap: bool,
    /// Directory for files that a command created in place of protected files.
    pub(super) quarantine: PathBuf,
    /// Complete environment of the command.
    pub(super) env: BTreeMap<String, String>,
    /// Umask of the user, for the command.
    pub(super) umask: Option<u32>,
    /// Standard input of the command.
    pub(super) stdin: StdinSource,
}

/// Standard input of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StdinSource {
    /// `/dev/null`.
    #[default]
    Null,
    /// So many bytes that follow the request.
    Bytes(u64),
    /// The last descriptor of the first byte.
    Descriptor,
}

impl StdinSource {
    /// Returns the number of bytes that follow the request.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Null | Self::Descriptor => 0,
        }
    }
}

/// Request to the fork server for a snapshot of protected files before the first of the commands that run concurrently.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SnapshotRequest {
    /// Tier of the commands, which determines the protected files.
    pub(super) tier: Tier,
    /// Policy of the commands.
    pub(super) policy: SandboxPolicy,
}

/// Reply of the launcher process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchReply {
    /// The command exited with this code.
    Exited(i32),
    /// The command exited and left processes running, which are ended.
    Left {
        /// Its exit code.
        code: u8,
        /// Number of the processes, less than 2^23.
        processes: i32,
    },
    /// A signal ended the command.
    Signalled(i32),
    /// The command exceeded a limit and was ended.
    Exceeded(ExceededLimit),
    /// The program could not be executed. Contains an errno, which is never 0.
    NotStarted(i32),
    /// The kernel refuses the tier. Contains an errno, which is never 0.
    Refused(i32),
}

impl LaunchRequest {
    /// Creates a request that only checks whether the tier works.
    pub(super) fn without_command(tier: Tier) -> Self {
        Self { tier, ..Self::default() }
    }

    /// Encodes the length prefix and the JSON.
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
    /// Reads a request written by [`encode`](Self::encode).
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
    /// Byte with which the agent requests SIGTERM for the processes of a command.
    pub(super) const TERMINATE: u8 = b't';

    /// Number of bytes of one reply.
    pub(super) const BYTES: usize = 5;

    #[cfg(any(target_os = "linux", test))]
    /// Encodes the reply as five bytes.
    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let (tag, value) = match self {
            Self::Exited(code) => (b'x', code),
            Self::Left { code, processes } => {
                (b'e', processes.clamp(0, (1 << 23) - 1) << 8 | i32::from(code))
            }
            Self::Signalled(signal) => (b's', signal),
            Self::Exceeded(excess) => (b'l', excess.code()),
            Self::NotStarted(errno) => (b'n', errno),
            Self::Refused(errno) => (b'r', errno),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    #[cfg(target_os = "linux")]
    /// Sends the reply. Ignores failures, because the agent may be gone.
    pub(super) fn send(self, to: &mut impl io::Write) {
        let _peer_may_be_gone = to.write_all(&self.encode());
    }

    #[cfg(target_os = "linux")]
    /// Creates the reply for a program that could not be executed.
    pub(super) fn not_started(error: &io::Error) -> Self {
        Self::NotStarted(errno(error))
    }

    #[cfg(target_os = "linux")]
    /// Creates the reply for a tier that the kernel refuses.
    pub(super) fn refused(error: &io::Error) -> Self {
        Self::Refused(errno(error))
    }

    /// Decodes the first reply in `bytes`, if it is complete.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let [tag, a, b, c, d, ..] = *bytes else { return None };
        let value = i32::from_le_bytes([a, b, c, d]);
        match tag {
            b'x' => Some(Self::Exited(value)),
            b'e' => Some(Self::Left { code: a, processes: value >> 8 }),
            b's' => Some(Self::Signalled(value)),
            b'l' => ExceededLimit::from_code(value).map(Self::Exceeded),
            b'n' => Some(Self::NotStarted(value)),
            b'r' => Some(Self::Refused(value)),
            _ => None,
        }
    }
}

#[cfg(any(target_os = "linux", test))]
/// Returns the errno that fits `error` best: its own, that of the wrapped error, or that of its kind.
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
    fn a_request_is_decoded_as_encoded() {
        let request = LaunchRequest {
            argv: vec!["sh".to_owned(), "-c".to_owned(), "echo 'ä\n'".to_owned()],
            env: BTreeMap::from([("A".to_owned(), "b=c".to_owned())]),
            stdin: StdinSource::Bytes(7),
            ..LaunchRequest::without_command(Tier::Subreaper)
        };
        let read = LaunchRequest::read(&mut request.encode().unwrap().as_slice()).unwrap();
        assert_eq!(
            (read.tier, read.argv, read.env, read.stdin.bytes()),
            (request.tier, request.argv, request.env, 7)
        );
    }

    #[test]
    fn an_error_without_an_errno_is_not_encoded_as_success() {
        let denied = || io::Error::from_raw_os_error(libc::EACCES);
        for (error, expected) in [
            (denied(), libc::EACCES),
            (io::Error::other(denied()), libc::EACCES),
            (io::ErrorKind::Unsupported.into(), libc::EOPNOTSUPP),
            (io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data"), libc::EINVAL),
            (io::Error::other("fork gave no process id"), libc::EIO),
            (io::Error::from_raw_os_error(0), libc::EIO),
        ] {
            assert_eq!(errno(&error), expected, "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_reply_is_decoded_as_encoded(value: i32, code: u8, processes in 0..1 << 23) {
            let left = LaunchReply::Left { code, processes };
            for answer in [left, LaunchReply::Exited(value), LaunchReply::Signalled(value), LaunchReply::NotStarted(value), LaunchReply::Refused(value)] {
                prop_assert_eq!(LaunchReply::decode(&answer.encode()), Some(answer));
            }
        }

        #[test]
        fn garbage_is_not_a_request(bytes: Vec<u8>) {
            prop_assert!(LaunchRequest::read(&mut bytes.as_slice()).is_err());
        }
    }
}
