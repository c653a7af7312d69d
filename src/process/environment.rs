//! Builds the environment of child processes from an allow-list of variables.

use agent_core::secret::Secret;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// General variables for a shell and its programs.
const GENERAL: &[&str] = &[
    "CI",
    "COLORTERM",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
];

/// Variables with the locations of toolchains and their caches. None of them can name code that a shell, an interpreter or a
/// loader runs by itself (`LD_PRELOAD`, `BASH_ENV`, `NODE_OPTIONS`, `PYTHONSTARTUP`, `RUSTC_WRAPPER`, …).
const TOOLCHAINS: &[&str] = &[
    "ANDROID_HOME",
    "CARGO_HOME",
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "CONDA_PREFIX",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_CACHE_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Variables that are always set for children: no pager and no prompt, because children have no terminal.
const FIXED: &[(&str, &str)] = &[("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat")];

/// Shortest secret, in bytes, that is also searched inside longer values. A shorter one must equal the whole value.
const MIN_CONTAINED_SECRET_BYTES: usize = 8;

/// Builds the environment of children from the `full` environment of this process and the `extra` variables of `commands.env`.
///
/// Entries of `PATH` that are relative or inside `workspace` are dropped, so that a repository cannot replace `ls`.
pub fn child_environment(
    full: &BTreeMap<String, String>,
    extra: &BTreeMap<String, String>,
    workspace: &Path,
    secrets: &[Secret],
) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = full
        .iter()
        .filter(|(name, _)| is_allowed(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .chain(FIXED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        .collect();
    if let Some(path) = env.get_mut("PATH") {
        *path = outside(path, workspace);
    }
    env.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    drop_secrets(&mut env, secrets);
    env
}

/// Removes variables whose value contains one of `secrets`, and variables that the kernel does not accept.
pub fn drop_secrets(env: &mut BTreeMap<String, String>, secrets: &[Secret]) {
    env.retain(|name, value| {
        let holds = |secret: &Secret| {
            let secret = secret.expose();
            !secret.is_empty()
                && (value == secret || (secret.len() >= MIN_CONTAINED_SECRET_BYTES && value.contains(secret)))
        };
        is_name(name) && !value.contains('\0') && !secrets.iter().any(holds)
    });
}

/// Checks whether `name` is valid as the name of an environment variable.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Checks whether commands get the user's variable `name`, so that its value is no secret.
pub fn is_allowed(name: &str) -> bool {
    GENERAL.contains(&name) || TOOLCHAINS.contains(&name) || name.starts_with("LC_")
}

/// Returns the absolute entries of the search path `path` that are outside `workspace`. If the workspace is `/`, all absolute
/// entries are returned.
fn outside(path: &str, workspace: &Path) -> String {
    let is_all = workspace == Path::new("/");
    let is_outside = |entry: &&str| {
        let entry = Path::new(entry);
        let plain: PathBuf = entry.components().collect();
        let climbs = entry.components().any(|part| part == std::path::Component::ParentDir);
        entry.is_absolute() && !climbs && (is_all || !plain.starts_with(workspace))
    };
    path.split(':').filter(is_outside).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn only_listed_variables_pass() {
        let full = map(&[
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("CARGO_HOME", "/c"),
            ("LD_PRELOAD", "/x.so"),
            ("BASH_ENV", "x"),
            ("NODE_OPTIONS", "-r x"),
            ("PYTHONPATH", "x"),
            ("GIT_DIR", "x"),
            ("IFS", "x"),
            ("OPENAI_API_KEY", "k"),
        ]);
        let env = child_environment(&full, &BTreeMap::new(), Path::new("/w"), &[]);
        let names: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(names, ["CARGO_HOME", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "LC_ALL", "PAGER"]);
    }

    #[test]
    fn the_search_path_has_nothing_of_the_workspace() {
        let full = map(&[("PATH", "/usr/bin:.:bin::/w/bin:/w:/w2/bin:/w2/../w/bin:/bin")]);
        let env = child_environment(&full, &BTreeMap::new(), Path::new("/w"), &[]);
        assert_eq!(env["PATH"], "/usr/bin:/w2/bin:/bin");
        let env =
            child_environment(&map(&[("PATH", "/usr/bin:.:/bin")]), &BTreeMap::new(), Path::new("/"), &[]);
        assert_eq!(env["PATH"], "/usr/bin:/bin", "with the workspace `/`, absolute entries remain");
    }

    #[test]
    fn a_secret_is_dropped_wherever_it_comes_from() {
        let full = map(&[("HOME", "sk-12345678"), ("TERM", "abc")]);
        let extra = map(&[("TOKEN", "sk-12345678"), ("HEADER", "Bearer sk-12345678"), ("SAFE", "abcd")]);
        let secrets = [Secret::new("sk-12345678"), Secret::new("abc"), Secret::new("")];
        let env = child_environment(&full, &extra, Path::new("/w"), &secrets);
        let names: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(names, ["GIT_PAGER", "GIT_TERMINAL_PROMPT", "PAGER", "SAFE"]);
    }

    proptest! {
        #[test]
        fn no_entry_of_the_workspace_survives(entries in prop::collection::vec("(/w|/u|\\.|\\.\\.|a|/)*", 0..6)) {
            let path = outside(&entries.join(":"), Path::new("/w"));
            for entry in path.split(':').filter(|entry| !entry.is_empty()) {
                let climbs = entry.split('/').any(|part| part == "..");
                prop_assert!(entry.starts_with('/') && !climbs && !Path::new(entry).starts_with("/w"));
            }
        }
    }
}
