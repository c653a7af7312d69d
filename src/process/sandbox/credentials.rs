//! Locations of the user's keys and tokens: the usual ones in the home directory, and those named by variables.

use super::settings::SandboxSettings;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Credentials in a home directory: keys, tokens, sockets of agents, shell histories, and the state of programs with
/// conversations or passwords.
const HOME_CREDENTIALS: &[&str] = &[
    ".1password",
    ".Xauthority",
    ".aliyun",
    ".aws",
    ".azure",
    ".bash_history",
    ".bitcoin",
    ".bitwarden-ssh-agent.sock",
    ".boto",
    ".cache/huggingface/token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codeium",
    ".codex",
    ".colima",
    ".composer/auth.json",
    ".config/1Password",
    ".config/BraveSoftware",
    ".config/Code",
    ".config/Code - OSS",
    ".config/Cursor",
    ".config/Signal",
    ".config/Slack",
    ".config/Windsurf",
    ".config/age",
    ".config/chromium",
    ".config/composer/auth.json",
    ".config/configstore",
    ".config/containers/auth.json",
    ".config/discord",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/goose",
    ".config/hcloud",
    ".config/heroku",
    ".config/hub",
    ".config/keepassxc",
    ".config/microsoft-edge",
    ".config/netlify",
    ".config/op",
    ".config/opencode",
    ".config/opera",
    ".config/pypoetry/auth.toml",
    ".config/rclone",
    ".config/sops",
    ".config/stripe",
    ".config/vivaldi",
    ".continue",
    ".cursor",
    ".databrickscfg",
    ".docker",
    ".electrum",
    ".ethereum",
    ".fly",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".huggingface",
    ".kaggle",
    ".kube",
    ".lima",
    ".local/share/amazon-q",
    ".local/share/com.vercel.cli",
    ".local/share/containers",
    ".local/share/fish/fish_history",
    ".local/share/goose",
    ".local/share/keyrings",
    ".local/share/opencode",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".mylogin.cnf",
    ".mysql_history",
    ".netrc",
    ".node_repl_history",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".qwen",
    ".rd",
    ".rediscli_history",
    ".s3cfg",
    ".snowflake",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
    ".var/app",
    ".vault-token",
    ".windsurf",
    ".zsh_history",
    "snap/chromium",
    "snap/firefox",
];

/// Variables that relocate a part of the home directory, with that part.
const HOME_PART_VARIABLES: &[(&str, &str)] =
    &[("CARGO_HOME", ".cargo"), ("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")];

/// Variables that contain the path of a credential file, directory or socket, or several separated by colons. In an address
/// without a host (`unix:///run/docker.sock`) the path follows the colon.
const CREDENTIAL_VARIABLES: &[&str] = &[
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLAUDE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CODEX_HOME",
    "CONTAINER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "RCLONE_CONFIG",
    "REGISTRY_AUTH_FILE",
    "SSH_AUTH_SOCK",
    "TF_CLI_CONFIG_FILE",
    "XAUTHORITY",
    "npm_config_userconfig",
];

/// Maximum number of other users' home directories to hide from root's commands. A user's machine rarely has more.
const MAX_HOMES: usize = 20;

/// Returns the paths where credentials may be with `settings`, whether they exist or not.
pub(super) fn credential_paths(settings: &SandboxSettings) -> impl Iterator<Item = PathBuf> {
    let homes: BTreeSet<PathBuf> = settings.home.iter().cloned().chain(homes_of_others()).collect();
    let at_home = homes.into_iter().flat_map(|home| HOME_CREDENTIALS.iter().map(move |name| home.join(name)));
    let set = |name: &str| settings.variables.get(name);
    let moved =
        HOME_PART_VARIABLES.iter().filter_map(move |(name, part)| Some((PathBuf::from(set(name)?), *part)));
    let moved = moved.flat_map(|(dir, part)| {
        let below = HOME_CREDENTIALS.iter().filter_map(move |name| Path::new(name).strip_prefix(part).ok());
        below.map(move |name| dir.join(name))
    });
    let named =
        CREDENTIAL_VARIABLES.iter().filter_map(move |name| set(name)).flat_map(|value| value.split(':'));
    // A directory that contains all of the work cannot be hidden because of the keys in it.
    let is_too_much =
        |path: &Path| settings.home.iter().chain([&settings.workspace]).any(|all| all.starts_with(path));
    let named = named.map(PathBuf::from).filter(move |path| !is_too_much(path));
    at_home.chain(moved.chain(named).filter(|path| path.is_absolute()))
}

/// Home directory of root (Filesystem Hierarchy Standard 3.0, section 3.14).
const ROOTS_HOME: &str = "/root";

/// Returns the home directories that only root can read.
fn homes_of_others() -> impl Iterator<Item = PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    let users = std::fs::read_dir("/home").ok().filter(|_| is_root).into_iter().flatten().flatten();
    users.map(|user| user.path()).chain(is_root.then(|| ROOTS_HOME.into())).take(MAX_HOMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_55_commands_of_root_see_nobodys_keys() {
        let settings = |home: &str| SandboxSettings { home: Some(home.into()), ..SandboxSettings::default() };
        let has =
            |home: &str, path: &str| credential_paths(&settings(home)).any(|found| found == Path::new(path));
        assert!(has("/home/me", "/home/me/.ssh"));
        let roots = format!("{ROOTS_HOME}/.ssh");
        assert_eq!(has("/home/me", &roots), rustix::process::geteuid().is_root());
    }
}
