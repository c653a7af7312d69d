//! Project overview for the system message: number of files, languages and tree, within limits of time and size.

use crate::git_index::{GitIndex, HASH_BYTES};
use crate::walk::{IgnoreRules, has_plain_ignore_files, project_walk};
use agent_runtime::clock::Clock;
use agent_runtime::private_file;
use agent_text::lines::one_line;
use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::{DirEntry, WalkBuilder};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of files for a tree of files with line counts. With more, the tree lists directories with file counts.
const DETAILED_FILES: usize = 300;
/// Maximum size of the tree in bytes: about 2,000 tokens, as much as one larger file.
const MAX_TREE_BYTES: usize = 8 << 10;
/// Maximum number of characters of one name.
const MAX_NAME: usize = 80;
/// Maximum number of listed languages.
const LANGUAGES: usize = 5;
/// Maximum number of directories of the root.
const MAX_TOP: usize = 1_000;
/// Maximum depth of listed directories in a tree without files.
const MAX_DEPTH: usize = 6;

/// Directories of tools. Directories whose name starts with a dot are skipped too.
const SKIPPED_DIRECTORIES: [&str; 7] =
    ["node_modules", "__pycache__", "venv", "dist", "build", "target", "*.egg-info"];
/// Files without information on the project.
const SKIPPED_FILES: [&str; 11] = [
    ".git",
    "*.min.js",
    "*.min.css",
    "*.map",
    "*.pyc",
    "*.pyo",
    "*.pyd",
    "*.lock",
    "*.log",
    ".DS_Store",
    "Thumbs.db",
];

/// Options of the index.
#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// Size in bytes above which files are skipped.
    pub max_file_size: u64,
    /// Additional globs for names of directories to skip.
    pub exclude_dirs: Vec<String>,
    /// Additional globs for names of files to skip.
    pub exclude_patterns: Vec<String>,
    /// Wall-clock time after which the walk stops. The overview reports it.
    pub time: Duration,
    /// Number of entries after which the walk stops. The overview reports it.
    pub entries: usize,
}

/// Default time limit of the index. Leaves two thirds of the 300 ms for a first request after a cold start.
pub const INDEX_TIME: Duration = Duration::from_millis(200);
/// Default entry limit of the index. The directories of a larger project are enough for an overview.
pub const INDEX_ENTRIES: usize = 20_000;
/// Number of entries of a small project. Git's index gives the files of a larger one, which are too many to be looked at.
const SMALL_PROJECT_ENTRIES: usize = 1_000;
/// Wall-clock time after which the walk of a project that is not small stops.
const LARGE_PROJECT_TIME: Duration = Duration::from_millis(30);
/// Number of files of git's index between two checks of the clock.
const CLOCK_INTERVAL: usize = 256;

/// File of the project.
#[derive(Debug)]
struct Listed {
    /// Path from the root.
    path: PathBuf,
    lines: Option<u64>,
}

/// Numbers of files.
#[derive(Debug, Default)]
struct Tally {
    files: usize,
    languages: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        for (language, files) in &other.languages {
            *self.languages.entry(language).or_default() += files;
        }
    }
}

/// Files found, by walking or in git's index.
#[derive(Debug, Default)]
struct Found {
    all: Tally,
    /// Files by directory: those in it and below it.
    directories: BTreeMap<PathBuf, Tally>,
    /// Directory of the last files, and those of its files that are not counted above yet.
    last: (PathBuf, Tally),
    /// The first files, one more than are shown.
    files: Vec<Listed>,
    at_root: Vec<PathBuf>,
    /// Directories at the root.
    top: Vec<PathBuf>,
    /// Reason for an early stop.
    stopped: Option<String>,
    /// Whether the files are those of git's index.
    is_of_git: bool,
}

impl Found {
    fn add(&mut self, path: &Path) {
        let directory = path.parent().unwrap_or(Path::new(""));
        if self.last.0 != directory {
            self.count_last();
            directory.clone_into(&mut self.last.0);
        }
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        self.last.1.files += 1;
        if let Some(language) = language(extension) {
            *self.last.1.languages.entry(language).or_default() += 1;
        }
        if self.files.len() <= DETAILED_FILES {
            self.files.push(Listed { path: path.to_owned(), lines: None });
        }
        if directory.as_os_str().is_empty() {
            self.at_root.push(path.to_owned());
        }
    }

    /// Counts the files of the last directory.
    fn count_last(&mut self) {
        let (directory, counted) = std::mem::take(&mut self.last);
        if counted.files == 0 {
            return;
        }
        self.all.add(&counted);
        for directory in directory.ancestors().filter(|path| !path.as_os_str().is_empty()) {
            if directory.components().count() <= MAX_DEPTH {
                self.directories.entry(directory.to_owned()).or_default().add(&counted);
            }
        }
    }

    fn finish(mut self) -> Self {
        self.count_last();
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.at_root.sort();
        self
    }

    /// Checks whether there may be files that are not counted.
    fn is_partial(&self) -> bool {
        self.stopped.is_some() || self.is_of_git
    }
}

/// Names that are left out.
struct Skipped {
    directories: GlobSet,
    files: GlobSet,
}

/// Returns the overview of the project at `root` as Markdown. `None` if it has no files.
///
/// # Errors
/// Fails if an exclusion is not a valid glob.
pub fn project_index(
    root: &Path,
    options: &IndexOptions,
    source: &Clock,
) -> Result<Option<String>, globset::Error> {
    let began = source.elapsed();
    let late = |limit: Duration| source.elapsed() > began.saturating_add(limit);
    let skipped = Arc::new(Skipped {
        directories: names(&SKIPPED_DIRECTORIES, &options.exclude_dirs)?,
        files: names(&SKIPPED_FILES, &options.exclude_patterns)?,
    });
    let mut found = match files_of_git(root, options, &skipped, &late) {
        Some(found) => found,
        None => walk(root, options, &skipped, &late),
    };
    if found.all.files == 0 && found.stopped.is_none() {
        return Ok(None);
    }
    if found.all.files <= DETAILED_FILES {
        for file in &mut found.files {
            if !late(options.time) {
                file.lines = count_lines(&root.join(&file.path), options.max_file_size);
            }
        }
    }
    Ok(Some(render(&found)))
}

/// Lists the files of a large project that git's index contains, in directories that exist. `None` if there is no such index,
/// or the project is small.
fn files_of_git(
    root: &Path,
    options: &IndexOptions,
    skipped: &Arc<Skipped>,
    late: &dyn Fn(Duration) -> bool,
) -> Option<Found> {
    let index = GitIndex::open(root).filter(|index| index.count() as usize > SMALL_PROJECT_ENTRIES)?;
    let mut found = HASH_BYTES.into_iter().find_map(|hash_bytes| {
        let mut found = Found { is_of_git: true, ..Found::default() };
        let mut directory = (Vec::new(), true);
        let mut visited = 0_usize;
        let visit = &mut |path: &[u8], size: u32| {
            visited += 1;
            if visited.is_multiple_of(CLOCK_INTERVAL) && late(options.time) {
                found.stopped = Some(format!("{} ms", options.time.as_millis()));
                return false;
            }
            let (parent, name) = split_last(path);
            if directory.0 != parent {
                directory = (parent.to_owned(), is_listed_directory(root, parent, skipped));
            }
            let is_listed = directory.1 && u64::from(size) <= options.max_file_size;
            if is_listed && !skipped.files.is_match(folded(OsStr::from_bytes(name))) {
                found.add(Path::new(OsStr::from_bytes(path)));
            }
            true
        };
        index.visit(hash_bytes, visit).map(|()| found)
    })?;
    found.count_last();
    if found.all.files <= SMALL_PROJECT_ENTRIES && found.stopped.is_none() {
        return None;
    }
    found.top = top(root, skipped);
    Some(found.finish())
}

/// Splits a path into its directory and its last part.
fn split_last(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (directory, name) = path.split_at(slash.unwrap_or(0));
    (directory, name.strip_prefix(b"/").unwrap_or(name))
}

/// Checks whether the files of a directory are listed: it exists, and no part of its path is skipped.
fn is_listed_directory(root: &Path, path: &[u8], skipped: &Skipped) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    !path.iter().any(|name| is_skipped_directory(name, skipped))
        && root.join(path).symlink_metadata().is_ok_and(|found| found.is_dir())
}

fn is_skipped_directory(name: &OsStr, skipped: &Skipped) -> bool {
    let name = folded(name);
    name.starts_with('.') || skipped.directories.is_match(name)
}

/// Lists the files in order of their paths until a limit is reached.
fn walk(
    root: &Path,
    options: &IndexOptions,
    skipped: &Arc<Skipped>,
    late: &dyn Fn(Duration) -> bool,
) -> Found {
    let builder = project_builder(root, skipped);
    let mut found = Found::default();
    for (count, entry) in builder.build().filter_map(Result::ok).enumerate() {
        let is_small = count <= SMALL_PROJECT_ENTRIES;
        let time = if is_small { options.time } else { options.time.min(LARGE_PROJECT_TIME) };
        if count > options.entries {
            found.stopped = Some(format!("{} entries", options.entries));
            break;
        }
        if late(time) {
            found.stopped = Some(format!("{} ms", time.as_millis()));
            break;
        }
        found.top.extend(top_directory(root, &entry));
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file
            && !skipped.files.is_match(folded(entry.file_name()))
            && entry.metadata().is_ok_and(|file| file.len() <= options.max_file_size)
            && let Some(path) = relative(root, &entry)
        {
            found.add(&path);
        }
    }
    if found.stopped.is_some() {
        found.top = top(root, skipped);
    }
    found.finish()
}

/// Creates a walk of the directories and files that are not skipped.
fn project_builder(root: &Path, skipped: &Arc<Skipped>) -> WalkBuilder {
    let skipped = Arc::clone(skipped);
    let mut builder = project_walk(root);
    builder.sort_by_file_name(Ord::cmp);
    builder.filter_entry(move |entry| {
        let is_skipped = || is_skipped_directory(entry.file_name(), &skipped);
        !is_directory(entry) || entry.depth() == 0 || !is_skipped() && has_plain_ignore_files(entry.path())
    });
    builder
}

/// Returns the first directories at the root. A walk of depth 1 would also read each of these directories.
fn top(root: &Path, skipped: &Skipped) -> Vec<PathBuf> {
    let rules = has_plain_ignore_files(root).then(|| IgnoreRules::read(root, None)).flatten();
    let is_listed = |entry: &fs::DirEntry| {
        let path = entry.path();
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && !is_skipped_directory(&entry.file_name(), skipped)
            && !rules.as_ref().is_some_and(|rules| rules.ignores(&path, true))
            && has_plain_ignore_files(&path)
    };
    let entries = root.read_dir().into_iter().flatten().filter_map(Result::ok).filter(is_listed);
    let mut top: Vec<PathBuf> = entries.map(|entry| entry.file_name().into()).collect();
    top.sort();
    top.truncate(MAX_TOP);
    top
}

fn top_directory(root: &Path, entry: &DirEntry) -> Option<PathBuf> {
    let is_top = entry.depth() == 1 && is_directory(entry);
    is_top.then(|| relative(root, entry)).flatten()
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn relative(root: &Path, entry: &DirEntry) -> Option<PathBuf> {
    entry.path().strip_prefix(root).ok().map(Path::to_owned)
}

/// Returns a name in the lower case that [`names`] expects.
fn folded(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

/// Compiles globs on names, ignoring case. On lower-case names most need no regular expression.
fn names(usual: &[&str], own: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    let own = own.iter().map(|pattern| pattern.trim_end_matches('/'));
    for pattern in usual.iter().copied().chain(own) {
        set.add(Glob::new(&pattern.to_lowercase())?);
    }
    set.build()
}

/// Counts the lines of a file. `None` if it is binary or unreadable. Never blocks on a pipe, never follows a link.
fn count_lines(path: &Path, max_size: u64) -> Option<u64> {
    let (file, metadata) = private_file::open(path).ok()?;
    if !metadata.is_file() {
        return None;
    }
    let mut file = file.take(max_size);
    let mut buffer = [0; 16 << 10];
    let (mut lines, mut last) = (0_u64, b'\n');
    loop {
        let length = file.read(&mut buffer).ok()?;
        let chunk = buffer.get(..length)?;
        let Some(end) = chunk.last() else { break };
        if chunk.contains(&0) {
            return None;
        }
        last = *end;
        lines += chunk.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
    }
    Some(lines + u64::from(last != b'\n'))
}

fn render(found: &Found) -> String {
    let mut text = format!("## Project Structure\n{} files", found.all.files);
    if found.is_of_git {
        text.push_str(" in git's index");
    }
    let lines: Vec<u64> = found.files.iter().filter_map(|file| file.lines).collect();
    if !lines.is_empty() {
        let _ = write!(text, ", {} lines", lines.iter().sum::<u64>());
    }
    let languages = languages(&found.all);
    if !languages.is_empty() {
        let _ = write!(text, "; languages by files: {languages}");
    }
    text.push_str(".\n");
    if let Some(limit) = &found.stopped {
        let _ = writeln!(text, "The overview stopped after {limit}: there is more than is counted here.");
    }
    text.push('\n');
    text.push_str(&tree(found));
    text.push_str("\nLook further with list_files, find_files, search_code and grep.\n");
    text
}

/// Renders the most detailed tree that fits.
fn tree(found: &Found) -> String {
    let deepest = if files_are_few(found) { 0 } else { MAX_DEPTH };
    let mut candidates = (1..=deepest).rev().map(|depth| directory_tree(found, depth));
    let detailed = files_are_few(found).then(|| file_tree(found));
    let fits = |tree: &String| tree.len() <= MAX_TREE_BYTES;
    detailed.filter(fits).or_else(|| candidates.find(fits)).unwrap_or_else(|| cut(&directory_tree(found, 1)))
}

fn files_are_few(found: &Found) -> bool {
    found.all.files <= DETAILED_FILES && !found.is_partial()
}

/// Renders every file with its lines, below its directories.
fn file_tree(found: &Found) -> String {
    let mut text = String::new();
    let mut open: Vec<String> = Vec::new();
    for file in &found.files {
        let mut parts = parts(&file.path);
        let Some(name) = parts.pop() else { continue };
        let shared = open.iter().zip(&parts).take_while(|(a, b)| a == b).count();
        for (depth, directory) in parts.iter().enumerate().skip(shared) {
            let _ = writeln!(text, "{}{directory}/", indent(depth));
        }
        let lines = file.lines.map_or_else(String::new, |lines| format!(" ({lines})"));
        let _ = writeln!(text, "{}{name}{lines}", indent(parts.len()));
        open = parts;
    }
    text
}

/// Renders directories down to `depth` with the number of files below them, and the files at the root.
fn directory_tree(found: &Found, depth: usize) -> String {
    let none = Tally::default();
    let mut counted: BTreeMap<&Path, &Tally> = BTreeMap::new();
    counted.extend(found.top.iter().map(|top| (top.as_path(), &none)));
    let shown = found.directories.iter().filter(|(path, _)| path.components().count() <= depth);
    counted.extend(shown.map(|(path, tally)| (path.as_path(), tally)));
    let mut text = String::new();
    for (directory, tally) in counted {
        let mut parts = parts(directory);
        let name = parts.pop().unwrap_or_default();
        let _ = match (tally.files, found.is_partial()) {
            (0, true) => writeln!(text, "{}{name}/ (not counted)", indent(parts.len())),
            (0, false) => Ok(()),
            (count, _) => {
                let languages = languages(tally);
                let colon = if languages.is_empty() { "" } else { ": " };
                writeln!(text, "{}{name}/ ({count} files{colon}{languages})", indent(parts.len()))
            }
        };
    }
    for file in &found.at_root {
        let _ = writeln!(text, "{}", parts(file).join("/"));
    }
    text
}

/// Returns the first lines that fit, with the number of further ones.
fn cut(tree: &str) -> String {
    let end = tree.get(..tree.floor_char_boundary(MAX_TREE_BYTES)).and_then(|text| text.rfind('\n'));
    let (shown, rest) = tree.split_at(end.map_or(0, |end| end + 1));
    format!("{shown}[... {} more lines omitted ...]\n", rest.lines().count())
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

/// Returns the parts of a path, sanitised for display.
fn parts(path: &Path) -> Vec<String> {
    path.components().map(|part| one_line(&part.as_os_str().to_string_lossy(), MAX_NAME)).collect()
}

/// Returns the most frequent languages with their numbers of files, in a deterministic order.
fn languages(tally: &Tally) -> String {
    let mut counts: Vec<_> = tally.languages.iter().collect();
    counts.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let shown = counts.iter().take(LANGUAGES).map(|(language, count)| format!("{language} {count}"));
    shown.collect::<Vec<_>>().join(", ")
}

/// Returns the language of a file extension.
fn language(extension: &str) -> Option<&'static str> {
    Some(match extension.to_ascii_lowercase().as_str() {
        "rs" => "Rust",
        "py" | "pyi" => "Python",
        "js" | "jsx" | "mjs" | "cjs" => "JavaScript",
        "ts" | "tsx" | "mts" | "cts" => "TypeScript",
        "go" => "Go",
        "java" => "Java",
        "kt" | "kts" => "Kotlin",
        "scala" => "Scala",
        "c" | "h" => "C",
        "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => "C++",
        "cs" => "C#",
        "fs" | "fsx" => "F#",
        "swift" => "Swift",
        "rb" => "Ruby",
        "php" => "PHP",
        "pl" | "pm" => "Perl",
        "lua" => "Lua",
        "r" => "R",
        "jl" => "Julia",
        "hs" => "Haskell",
        "ml" | "mli" => "OCaml",
        "ex" | "exs" => "Elixir",
        "erl" | "hrl" => "Erlang",
        "clj" | "cljs" | "cljc" => "Clojure",
        "dart" => "Dart",
        "zig" => "Zig",
        "nim" => "Nim",
        "sh" | "bash" | "zsh" => "Shell",
        "ps1" => "PowerShell",
        "sql" => "SQL",
        "html" | "htm" => "HTML",
        "css" | "scss" | "sass" | "less" => "CSS",
        "vue" => "Vue",
        "svelte" => "Svelte",
        "tf" => "Terraform",
        "proto" => "Protocol Buffers",
        "md" | "rst" | "adoc" => "Documentation",
        "json" | "yaml" | "yml" | "toml" | "xml" => "Data",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;
    use std::fs::File;
    use std::fs::create_dir_all;

    fn options() -> IndexOptions {
        IndexOptions {
            max_file_size: 1_000_000,
            exclude_dirs: Vec::new(),
            exclude_patterns: Vec::new(),
            time: Duration::from_mins(1),
            entries: INDEX_ENTRIES,
        }
    }

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            create_dir_all(path.parent().unwrap()).unwrap();
            File::create(&path)
                .map(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                .unwrap()
                .unwrap();
        }
        directory
    }

    fn index(root: &Path, options: &IndexOptions) -> String {
        project_index(root, options, &Clock::new()).unwrap().unwrap()
    }

    #[test]
    fn an_ignore_file_that_is_a_pipe_or_a_device_holds_nothing() {
        let root = project(&[("a.rs", ""), ("sub/b.rs", "")]);
        std::os::unix::fs::symlink("/dev/zero", root.path().join(".gitignore")).unwrap();
        let mode = Mode::RUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.path().join("sub/.ignore"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        let index = index(root.path(), &options());
        assert!(index.contains("a.rs") && !index.contains("b.rs"), "{index}");
    }

    #[test]
    fn k07_a_small_project_is_shown_file_by_file() {
        let root = project(&[
            ("README.md", "# x\n"),
            ("src/main.rs", "fn main() {\n}\n"),
            ("src/deep/a.rs", "x"),
            ("tests/b.rs", ""),
        ]);
        assert_eq!(
            index(root.path(), &options()),
            "## Project Structure\n4 files, 4 lines; languages by files: Rust 3, Documentation 1.\n\n\
             README.md (1)\nsrc/\n  deep/\n    a.rs (1)\n  main.rs (2)\ntests/\n  b.rs (0)\n\n\
             Look further with list_files, find_files, search_code and grep.\n"
        );
    }

    #[test]
    fn k07_tools_own_directories_and_excluded_files_are_left_out() {
        let root = project(&[
            ("a.rs", ""),
            (".git/config", ""),
            ("node_modules/x/index.js", ""),
            ("x.min.js", ""),
            ("Cargo.lock", ""),
            ("big.rs", "123456"),
            ("ignored.rs", ""),
            (".gitignore", "ignored.rs\n"),
            ("vendor/v.rs", ""),
            ("gen.pb.rs", ""),
        ]);
        let options = IndexOptions {
            max_file_size: 20,
            exclude_dirs: vec!["vendor/".into()],
            exclude_patterns: vec!["*.pb.rs".into()],
            ..options()
        };
        let text = index(root.path(), &IndexOptions { max_file_size: 12, ..options });
        assert!(text.contains("\n\n.gitignore (1)\na.rs (0)\nbig.rs (1)\n\n"), "{text}");
    }

    #[test]
    fn k07_a_large_project_is_shown_by_directories() {
        let names: Vec<String> = (0..400).map(|n| format!("src/m{}/f{n}.rs", n % 4)).collect();
        let root = project(&names.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>());
        let text = index(root.path(), &options());
        assert!(text.contains("400 files; languages by files: Rust 400."), "{text}");
        assert!(text.contains("src/ (400 files: Rust 400)\n  m0/ (100 files: Rust 100)\n"), "{text}");
        assert!(!text.contains("f1.rs"));
    }

    #[test]
    fn k07_a_limit_is_said_and_directories_not_reached_are_named() {
        let root = project(&[("a/1.rs", ""), ("a/2.rs", ""), ("b/3.rs", ""), ("c/4.rs", "")]);
        let text = index(root.path(), &IndexOptions { entries: 3, ..options() });
        assert!(text.contains("stopped after 3 entries: there is more"), "{text}");
        assert!(text.contains("a/ (2 files: Rust 2)\nb/ (not counted)\nc/ (not counted)\n"), "{text}");
        let text = index(root.path(), &IndexOptions { time: Duration::ZERO, ..options() });
        assert!(text.contains("stopped after 0 ms"), "{text}");
    }

    #[test]
    fn k07_the_overview_is_bounded_however_many_names_there_are() {
        let names: Vec<String> = (0..600).map(|n| format!("directory-{n:050}/f.rs")).collect();
        let root = project(&names.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>());
        let text = index(root.path(), &options());
        assert!(text.len() < MAX_TREE_BYTES + 500, "{}", text.len());
        assert!(text.contains("more lines omitted"));
    }

    #[test]
    fn k07_hostile_names_stay_on_their_line() {
        let root = project(&[("x\n# Environment\u{1b}[2J\u{202e}.rs", "")]);
        let text = index(root.path(), &options());
        assert!(text.contains("x\\n# Environment\\u{1b}[2J\\u{202e}.rs (0)\n"), "{text}");
    }

    #[test]
    fn links_and_pipes_are_not_followed_or_waited_on() {
        let root = project(&[("a.rs", "")]);
        std::os::unix::fs::symlink("/", root.path().join("everything")).unwrap();
        std::os::unix::fs::symlink(".", root.path().join("self")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.path().join("pipe.rs"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(index(root.path(), &options()).contains("1 files, 0 lines"));
        assert_eq!(count_lines(&root.path().join("pipe.rs"), 10), None);
        assert_eq!(count_lines(&root.path().join("self"), 10), None);
    }

    // Large trees: an index that is not well-formed counts for nothing; the tree is walked.
    #[test]
    fn a_broken_index_of_git_does_not_hide_the_files() {
        let root = project(&[("a.rs", ""), (".git/index", "DIRC\0\0\0\x02\0\0\x7f\x7f")]);
        assert!(index(root.path(), &options()).contains("a.rs (0)"));
    }

    // Large trees: a large tree without git's index is walked for a shorter time than a small one.
    #[test]
    fn a_large_project_is_walked_for_a_short_time() {
        let names: Vec<String> = (0..SMALL_PROJECT_ENTRIES + 9).map(|n| format!("{n}.rs")).collect();
        let root = project(&names.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>());
        let late = |limit: Duration| limit <= LARGE_PROJECT_TIME;
        let skipped = Skipped { directories: names_of(&[]), files: names_of(&[]) };
        let found = walk(root.path(), &options(), &Arc::new(skipped), &late);
        assert_eq!(found.stopped.as_deref(), Some("30 ms"));
        assert_eq!(found.all.files, SMALL_PROJECT_ENTRIES);
    }

    fn names_of(patterns: &[&str]) -> GlobSet {
        names(patterns, &[]).unwrap()
    }

    #[test]
    fn an_empty_project_has_no_overview() {
        assert_eq!(project_index(project(&[]).path(), &options(), &Clock::new()).unwrap(), None);
    }
}
