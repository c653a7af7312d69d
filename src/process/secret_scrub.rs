//! Overwrites secrets in `/proc/PID/environ` and `/proc/PID/cmdline` of this process.
//!
//! Every user can read the arguments, and root can always read the environment. Both files show the bytes that the kernel
//! stored before `main`; changing the environment does not change them.

use agent_core::secret::Secret;
use agent_redactor::MIN_BYTES;

/// Variables that libraries read at run time. They are never overwritten.
const VARIABLES_IN_USE: &[&str] = &["HOME", "PATH", "TMPDIR"];
/// Suffix of the variables that `reqwest` reads. Their values may contain a password that it needs.
const PROXY: &str = "_PROXY";

/// Overwrites `secrets` in the kernel's view of this process. Must be called after they were read. Does nothing if `/proc` is
/// missing (then no process can read them) or if other threads may be reading them.
pub(super) fn scrub<'a>(secrets: impl Iterator<Item = &'a Secret>) {
    let secrets: Vec<&str> = secrets.map(Secret::expose).filter(|secret| !secret.is_empty()).collect();
    if !secrets.is_empty() {
        let _not_readable = overwrite(&secrets);
    }
}

#[expect(unsafe_code, reason = "the initial arguments and environment have no safe address")]
#[expect(clippy::disallowed_methods, reason = "a small file of the kernel")]
fn overwrite(secrets: &[&str]) -> Option<()> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    for (start, length) in argument_ranges(&stat)? {
        // SAFETY: the kernel placed these bytes at the start of the process in a mapping that stays readable and writable for
        // the life of the process, and has just reported its address. This is the only thread, so nothing reads them now, and
        // no Rust reference to them exists: the standard library keeps raw pointers and copies what it reads. Only bytes before
        // a terminator change, and only to a terminator.
        let words = unsafe {
            std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u8>(start), length)
        };
        overwrite_secrets(words, secrets);
    }
    Some(())
}

/// Returns address and length of the arguments and of the environment from the text of `/proc/self/stat` (`proc_pid_stat(5)`).
/// `None` if there are other threads.
fn argument_ranges(stat: &str) -> Option<[(usize, usize); 2]> {
    // The second field, the name, may contain spaces. The fields after it are counted from the third.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<usize>().ok();
    let range = |from: usize| {
        let (start, end) = (field(from)?, field(from + 1)?);
        (start > 0 && end >= start).then(|| (start, end - start))
    };
    let threads = field(20)?;
    if threads == 1 { Some([range(48)?, range(50)?]) } else { None }
}

/// Overwrites `secrets` in `words`, each of which ends with a zero byte.
fn overwrite_secrets(words: &mut [u8], secrets: &[&str]) {
    for word in words.split_mut(|byte| *byte == 0).filter(|word| !is_looked_up(word)) {
        for secret in secrets {
            while let Some(start) = find(word, secret) {
                word.get_mut(start..start + secret.len()).unwrap_or_default().fill(0);
            }
        }
    }
}

/// Returns the position of `secret` in `word`. A short secret must be the whole word or the whole value after a name.
fn find(word: &[u8], secret: &str) -> Option<usize> {
    let text = std::str::from_utf8(word).ok()?;
    if secret.len() >= MIN_BYTES {
        return text.find(secret);
    }
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    let found = [text, value].into_iter().find(|whole| *whole == secret)?;
    Some(text.len() - found.len())
}

fn is_looked_up(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    let ends = name.len().checked_sub(PROXY.len()).and_then(|start| name.get(start..));
    ends.is_some_and(|ending| ending.eq_ignore_ascii_case(PROXY.as_bytes()))
        || VARIABLES_IN_USE.iter().any(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_overwritten_and_everything_else_stays() {
        let mut words = b"A=1\0KEY=secret-1234\0URL=x:secret-1234@y\0SHORT=abc\0X=abcd\0HOME=/secret-1234\0\
            https_proxy=secret-1234\0secret-1234\0--api-key=secret-1234\0padded-1234==\0=secret-1234\0abc\0"
            .to_vec();
        let length = words.len();
        overwrite_secrets(&mut words, &["secret-1234", "abc", "padded-1234=="]);
        assert_eq!(words.len(), length);
        let left = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let left: Vec<_> = left.map(String::from_utf8_lossy).collect();
        let stays = ["A=1", "KEY=", "URL=x:", "@y", "SHORT=", "X=abcd", "HOME=/secret-1234"];
        assert_eq!(left, [&stays[..], &["https_proxy=secret-1234", "--api-key=", "="]].concat());
    }

    #[test]
    fn the_kernel_says_where_they_are_unless_there_are_threads() {
        let stat = |threads: usize| {
            let fields: Vec<String> = (3..=52).map(|field: usize| field.to_string()).collect();
            format!("1 (a ) b) {}\n", fields.join(" ")).replace(" 20 ", &format!(" {threads} "))
        };
        assert_eq!(argument_ranges(&stat(1)), Some([(48, 1), (50, 1)]));
        assert_eq!(argument_ranges(&stat(2)), None);
        assert_eq!(argument_ranges("1 (a) S 1"), None);
    }
}
