//! Where the keys and tokens of a person are: at their usual places in the home directory, and where variables say.

use super::ground::Ground;
use std::path::{Path, PathBuf};

/// What in a home directory opens doors elsewhere: keys, tokens, their agents' sockets, and the state of other programs
/// that hold conversations or passwords.
const AT_HOME: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".codex",
    ".colima",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/containers/auth.json",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/goose",
    ".config/hub",
    ".config/op",
    ".config/opencode",
    ".config/rclone",
    ".docker",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/containers",
    ".local/share/goose",
    ".local/share/keyrings",
    ".local/share/opencode",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".qwen",
    ".rd",
    ".ssh",
    ".terraform.d",
    ".vault-token",
    "snap/firefox",
];

/// Variables that move a part of the home directory elsewhere, and the part.
const MOVED: &[(&str, &str)] =
    &[("CARGO_HOME", ".cargo"), ("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")];

/// Variables that name such a file or directory itself, or several with colons between.
const NAMED: &[&str] = &[
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLAUDE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CODEX_HOME",
    "DOCKER_CONFIG",
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
    "TF_CLI_CONFIG_FILE",
    "npm_config_userconfig",
];

/// Where keys may be in the surroundings that `ground` tells of, whether they are there or not.
pub(super) fn places(ground: &Ground) -> impl Iterator<Item = PathBuf> {
    let at_home = ground.home.iter().flat_map(|home| AT_HOME.iter().map(|name| home.join(name)));
    let set = |name: &str| ground.variables.get(name);
    let moved = MOVED.iter().filter_map(move |(name, part)| Some((PathBuf::from(set(name)?), *part)));
    let moved = moved.flat_map(|(place, part)| {
        let below = AT_HOME.iter().filter_map(move |name| Path::new(name).strip_prefix(part).ok());
        below.map(move |name| place.join(name))
    });
    let named = NAMED.iter().filter_map(move |name| set(name)).flat_map(|value| value.split(':'));
    // What all the work is in cannot be hidden for the keys that are there too.
    let is_too_much =
        |path: &Path| ground.home.iter().chain([&ground.workspace]).any(|all| all.starts_with(path));
    let named = named.map(PathBuf::from).filter(move |path| !is_too_much(path));
    at_home.chain(moved.chain(named).filter(|path| path.is_absolute()))
}
