//! Arguments of bubblewrap for the file system view of a mount plan.

use super::SandboxPolicy;
use super::mount_plan::{self, MountAccess, MountChange};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Returns the arguments of bubblewrap for `policy`, before the program that it starts as process 1. All sources are paths of
/// the host, whatever the earlier arguments mount. The order is that of the paths.
pub fn arguments(policy: &SandboxPolicy, cwd: &Path, is_root: bool) -> Vec<OsString> {
    let mut arguments = Arguments(Vec::new());
    arguments.add(["--unshare-ipc", "--unshare-pid", "--as-pid-1", "--die-with-parent"]);
    if !is_root {
        arguments.add(["--unshare-user"]);
    }
    if !policy.network {
        arguments.add(["--unshare-net"]);
    }
    let whole = policy.writable.iter().any(|path| path == Path::new("/"));
    arguments.add([if whole { "--bind" } else { "--ro-bind" }, "/", "/"]);
    let mut hidden = Vec::new();
    for (path, change) in mount_plan::plan(policy) {
        match change {
            MountChange::Bind(from, rights) => {
                arguments.bind(
                    if rights == MountAccess::Writable { "--bind" } else { "--ro-bind" },
                    &from,
                    &path,
                );
            }
            // Another program may remove the path meanwhile.
            MountChange::Pin => arguments.bind("--bind-try", &path, &path),
            MountChange::Protect => arguments.bind("--ro-bind-try", &path, &path),
            MountChange::Hide if path.is_dir() => {
                arguments.add([
                    OsStr::new("--perms"),
                    OsStr::new("0755"),
                    OsStr::new("--tmpfs"),
                    path.as_os_str(),
                ]);
                hidden.push(path);
            }
            MountChange::Hide => arguments.bind("--ro-bind", Path::new("/dev/null"), &path),
            MountChange::Devices => arguments.add([OsStr::new("--dev"), path.as_os_str()]),
        }
    }
    for path in &hidden {
        arguments.add([OsStr::new("--remount-ro"), path.as_os_str()]);
    }
    arguments.add(["--proc", "/proc", "--remount-ro", "/proc"]);
    arguments.add([OsStr::new("--chdir"), cwd.as_os_str(), OsStr::new("--")]);
    arguments.0
}

/// Argument list under construction.
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<Word: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = Word>) {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        self.add([OsStr::new(how), from.as_os_str(), to.as_os_str()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_and_what_may_be_changed_are_in_the_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let policy =
            SandboxPolicy { writable: vec![dir.clone()], temporary: dir.clone(), ..SandboxPolicy::default() };
        let arguments = arguments(&policy, &dir, false);
        let has = |words: &[&OsStr]| arguments.windows(words.len()).any(|window| window == words);
        let [bind, dir] = [OsStr::new("--bind"), dir.as_os_str()];
        assert!(has(&[OsStr::new("--ro-bind"), OsStr::new("/"), OsStr::new("/")]));
        assert!(has(&[bind, dir, dir]) && has(&[bind, dir, OsStr::new("/tmp")]));
        assert!(has(&[OsStr::new("--unshare-net")]) && has(&[OsStr::new("--unshare-user")]));
        let shared = super::arguments(&SandboxPolicy { network: true, ..policy }, Path::new("/"), true);
        assert!(!shared.iter().any(|word| word == "--unshare-net" || word == "--unshare-user"));
    }
}
