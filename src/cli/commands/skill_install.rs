//! `agent skills install`: copies the skills of a git repository into the project or the user's configuration.

use agent_config::settings::Settings;
use agent_config::skills::{SKILL_FILE, is_name, parse};
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_core::skill::Skill;
use agent_messages as messages;
use agent_process::scratch_dir::private_temp_dir;
use agent_redactor::url_credentials;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_runtime::private_file;
use agent_terminal::{PromptAnswer, PromptQuestion, Style, one_line};
use agent_workspace::git::clone;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Maximum number of files of a skill, and of their bytes together.
const MAX_FILES: usize = 100;
const MAX_BYTES: u64 = 1 << 20;

/// Maximum bytes of `SKILL.md`.
const MAX_SKILL_BYTES: u64 = 48 << 10;

/// File in an installed skill that states where it is from.
const SOURCE_FILE: &str = "source";

/// Directories of a repository that may contain skills, besides its root.
const PLACES: [&str; 4] = ["", "skills", ".claude/skills", ".agent/skills"];

/// Name of the clone in its temporary directory.
const CLONE: &str = "clone";

/// A skill of a repository.
struct Candidate {
    skill: Skill,
    /// Its files: path within the skill and content.
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// Installs the skills of `source`, an address with an optional `#REF`, into `parent`; `is_private` makes their files private to
/// the user.
///
/// # Errors
/// Fails for an address that is not allowed, when git fails, for a repository without usable skills, and when the user declines.
pub fn install(
    app: &App,
    settings: &Settings,
    source: &str,
    parent: &Path,
    is_private: bool,
    yes: bool,
) -> AppResult<()> {
    let (address, reference) = parse_source(source)?;
    let mut named = tempfile::Builder::new();
    let staging = private_temp_dir(named.prefix("agent-skills-"), &std::env::temp_dir())
        .map_err(|error| io_error(&error))?;
    let mut own = settings.clone();
    own.workspace = staging.path().canonicalize().map_err(|error| io_error(&error))?;
    own.sandbox.network = true;
    if let Some(path) = local_path(address, &settings.workspace) {
        // A repository below `/tmp` is visible to commands only where they may write.
        own.sandbox.writable.push(path.to_string_lossy().into_owned());
    }
    let address = local_path(address, &settings.workspace)
        .map_or_else(|| address.to_owned(), |path| path.to_string_lossy().into_owned());
    // What is shown and stored: the address may contain a password or token.
    let (shown_source, shown_address) = (url_credentials::hide(source), url_credentials::hide(&address));
    let commit = app.block_on(async {
        let launcher = assemble::launcher(app, &own)?;
        let cloned = clone::clone(&launcher, &own.workspace, &address, reference, CLONE).await;
        cloned
            .map_err(|why| failed(&messages::skill_clone_failed(&shown_source, &url_credentials::hide(&why))))
    })?;
    let found = candidates(&own.workspace.join(CLONE), repository_name(&shown_address))?;
    if found.is_empty() {
        return Err(failed(&messages::skills_not_found(&shown_source)));
    }
    if let Some(existing) = found.iter().find(|one| parent.join(&one.skill.name).symlink_metadata().is_ok()) {
        return Err(failed(&messages::skill_exists(&existing.skill.name, &parent.to_string_lossy())));
    }
    confirm(app, &found, &shown_address, &commit, yes)?;
    for one in &found {
        write(one, parent, is_private, &shown_address, &commit).map_err(|error| io_error(&error))?;
    }
    let names: Vec<&str> = found.iter().map(|one| one.skill.name.as_str()).collect();
    print(&app.terminal, &messages::skills_installed(&names.join(", "), &parent.to_string_lossy()))
}

/// Returns the address and the branch or tag of `source`.
fn parse_source(source: &str) -> AppResult<(&str, Option<&str>)> {
    let (address, reference) =
        source.split_once('#').map_or((source, None), |(address, reference)| (address, Some(reference)));
    let is_plain =
        |text: &str| !text.is_empty() && !text.starts_with('-') && !text.contains(char::is_control);
    let is_ssh = address.starts_with("ssh://")
        || address.split_once(':').is_some_and(|(host, path)| host.contains('@') && !path.starts_with(':'));
    let is_local = ["/", "./", "../", "file:///"].iter().any(|start| address.starts_with(start));
    let is_allowed = address.starts_with("https://") || is_ssh || is_local;
    if is_allowed && is_plain(address) && reference.is_none_or(is_plain) && !address.contains("::") {
        Ok((address, reference))
    } else {
        Err(AppError::new(FailureKind::Usage, messages::SKILL_SOURCES))
    }
}

/// Returns the absolute path of a repository on this machine.
fn local_path(address: &str, base: &Path) -> Option<PathBuf> {
    let path = address.strip_prefix("file://").unwrap_or(address);
    let is_local = ["/", "./", "../"].iter().any(|start| path.starts_with(start));
    is_local.then(|| base.join(path)).map(|path| path.canonicalize().unwrap_or(path))
}

/// Returns the last part of an address, the name of a skill in the root of its repository.
fn repository_name(address: &str) -> &str {
    let name = address.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    name.strip_suffix(".git").unwrap_or(name)
}

/// Returns the skills of the repository in `root`: one in its root, else those in the directories of [`PLACES`].
fn candidates(root: &Path, name: &str) -> AppResult<Vec<Candidate>> {
    if root.join(SKILL_FILE).symlink_metadata().is_ok() {
        return Ok(vec![candidate(root, &name.to_lowercase())?]);
    }
    let mut found: Vec<Candidate> = Vec::new();
    for place in PLACES {
        refuse_link(root, Path::new(place))?;
        let Ok(entries) = root.join(place).read_dir() else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.join(SKILL_FILE).symlink_metadata().is_ok()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            refuse_link(root, &Path::new(place).join(&*name))?;
            if !found.iter().any(|one| one.skill.name == name) {
                found.push(candidate(path, &name)?);
            }
        }
    }
    Ok(found)
}

/// Refuses a directory of the repository in `root` with a link in its `path`, because it could lead out.
fn refuse_link(root: &Path, path: &Path) -> AppResult<()> {
    let is_link = |part: &&Path| root.join(part).is_symlink();
    match path.ancestors().find(is_link) {
        None => Ok(()),
        Some(part) => {
            let part = one_line(&part.to_string_lossy(), usize::MAX);
            Err(failed(&messages::skill_unusable(&format!("{part} is a symbolic link"))))
        }
    }
}

fn candidate(directory: &Path, name: &str) -> AppResult<Candidate> {
    let text = read_text(&directory.join(SKILL_FILE), MAX_SKILL_BYTES);
    let skill = text.and_then(|text| parse(name, name, &text.unwrap_or_default()));
    let skill = skill.map_err(|error| failed(&error.file(format!("{name}/{SKILL_FILE}")).to_string()))?;
    if !is_name(&skill.name) {
        return Err(failed(&messages::skill_unusable(&skill.name)));
    }
    let mut files = Vec::new();
    collect(directory, Path::new(""), &mut files).map_err(|error| {
        failed(&messages::skill_unusable(&format!("{}: {error}", one_line(name, usize::MAX))))
    })?;
    Ok(Candidate { skill, files })
}

/// Reads the regular files below `directory` except those of git. Links are refused, because they could lead out.
fn collect(directory: &Path, below: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    for entry in directory.join(below).read_dir()? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if path == Path::new(".git") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(directory, &path, files)?;
            continue;
        }
        let (file, metadata) = private_file::open(&directory.join(&path))?;
        let size: u64 = files.iter().map(|(_, content)| content.len() as u64).sum();
        if !metadata.is_file() || files.len() >= MAX_FILES || size + metadata.len() > MAX_BYTES {
            let limit = format!("it has a link, over {MAX_FILES} files, or over {MAX_BYTES} bytes");
            return Err(io::Error::other(limit));
        }
        let mut content = Vec::new();
        File::take(file, MAX_BYTES).read_to_end(&mut content)?;
        files.push((path, content));
    }
    files.sort();
    Ok(())
}

/// Shows what would be installed, and asks unless `yes`.
fn confirm(app: &App, found: &[Candidate], address: &str, commit: &str, yes: bool) -> AppResult<()> {
    let mut text = format!("{} at {commit}\n", one_line(address, usize::MAX));
    for Candidate { skill, files } in found {
        let description = one_line(&skill.description, usize::MAX);
        let _infallible = writeln!(text, "\n{}: {description}", skill.name);
        for (path, content) in files {
            let path = one_line(&path.to_string_lossy(), usize::MAX);
            let _infallible = writeln!(text, "    {path} ({} bytes)", content.len());
        }
    }
    app.notify(Style::Plain, text.trim_end());
    if yes {
        return Ok(());
    }
    if !app.terminal.can_ask() {
        return Err(AppError::new(FailureKind::Usage, messages::SKILLS_NEED_YES));
    }
    let question = PromptQuestion {
        language: Language::En,
        title: messages::INSTALL_QUESTION,
        reason: messages::INSTALL_REASON,
        notes: &[],
        preview: Some(&contents(found)),
        lasting: None,
        saved: None,
    };
    match app.block_on(async { Ok(app.terminal.ask(&question, &CancellationToken::new()).await) })? {
        PromptAnswer::Yes => Ok(()),
        PromptAnswer::Always | PromptAnswer::Save | PromptAnswer::No(_) | PromptAnswer::Abort => {
            Err(failed(messages::SKILLS_NOT_INSTALLED))
        }
    }
}

/// Returns the text of every file that would be installed.
fn contents(found: &[Candidate]) -> String {
    let mut text = String::new();
    for Candidate { skill, files } in found {
        for (path, content) in files {
            let path = one_line(&path.to_string_lossy(), usize::MAX);
            let content = str::from_utf8(content).unwrap_or(messages::SKILL_FILE_IS_BINARY);
            let _infallible = writeln!(text, "\n{}/{path}:\n{}", skill.name, content.trim_end());
        }
    }
    text
}

/// Writes a skill next to its place and moves it there, so that it is complete or absent.
fn write(one: &Candidate, parent: &Path, is_private: bool, address: &str, commit: &str) -> io::Result<()> {
    if is_private {
        private_file::create_private_dir(parent)?;
    } else {
        std::fs::create_dir_all(parent)?;
    }
    let staged = tempfile::Builder::new().prefix(".install-").tempdir_in(parent)?;
    let target = staged.path().join(&one.skill.name);
    let mut hash = blake3::Hasher::new();
    for (path, content) in &one.files {
        hash.update(path.to_string_lossy().as_bytes()).update(&[0]).update(content);
        private_file::create_new(&target.join(path), is_private)?.write_all(content)?;
    }
    let source = format!("address: {address}\ncommit: {commit}\nhash: {}\n", hash.finalize().to_hex());
    private_file::create_new(&target.join(SOURCE_FILE), is_private)?.write_all(source.as_bytes())?;
    rustix::fs::rename(&target, parent.join(&one.skill.name))?;
    Ok(())
}

fn io_error(error: &io::Error) -> AppError {
    failed(&format!("cannot install: {error}"))
}

fn failed(message: &str) -> AppError {
    AppError::new(FailureKind::Request, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k10_addresses_that_could_run_a_program_are_refused() {
        for source in [
            "https://host/a/b",
            "https://host/a/b.git#v1",
            "ssh://git@host/a",
            "git@host:a/b.git",
            "file:///srv/a",
            "./a",
            "/srv/a#main",
        ] {
            assert!(parse_source(source).is_ok(), "{source}");
        }
        for source in [
            "ext::sh -c id",
            "-u",
            "a/b",
            "http://host/a",
            "git://host/a",
            "https://host/a#--x",
            "",
            "fd::17",
            "/a\nb",
        ] {
            assert!(parse_source(source).is_err(), "{source}");
        }
        assert_eq!(repository_name("git@host:a/My-Skill.git"), "My-Skill");
    }
}
