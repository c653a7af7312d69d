//! Project overview for the system message: number of files, languages and tree, within limits of time and size.

use crate::runtime::clock::Clock;
use crate::runtime::private_file;
use crate::text::lines::one_line;
use crate::workspace::walk::{has_plain_ignore_files, project_walk};
use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::DirEntry;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of files for a tree of files with line counts. With more, the tree lists directories with file counts.
const DETAILED_FILES: usize = 300;
/// Maximum size of the tree in bytes: about 2,000 tokens, as much as one larger file.
const MAX_TREE_BYTES: usize = 8 << 10;
/// Maximum number of characters of one name.
const MAX_NAME: usize = 80;
/// Maximum number of listed languages.
const LANGUAGES: usize = 5;
/// Maximum number of entries of the root in which directories are found.
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

/// File of the project.
#[derive(Debug)]
struct Listed {
    /// Path from the root.
    path: PathBuf,
    language: Option<&'static str>,
    lines: Option<u64>,
}

/// Result of the walk.
#[derive(Debug, Default)]
struct Found {
    files: Vec<Listed>,
    /// Directories at the root.
    top: Vec<PathBuf>,
    /// Reason for an early stop.
    stopped: Option<String>,
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
    let deadline = source.elapsed().saturating_add(options.time);
    let late = || source.elapsed() > deadline;
    let mut found = walk(root, options, &late)?;
    if found.files.is_empty() && found.stopped.is_none() {
        return Ok(None);
    }
    if found.files.len() <= DETAILED_FILES {
        for file in &mut found.files {
            if !late() {
                file.lines = count_lines(&root.join(&file.path), options.max_file_size);
            }
        }
    }
    Ok(Some(render(&found)))
}

/// Lists the files in order of their paths until a limit is reached.
fn walk(root: &Path, options: &IndexOptions, late: &dyn Fn() -> bool) -> Result<Found, globset::Error> {
    let directories = names(&SKIPPED_DIRECTORIES, &options.exclude_dirs)?;
    let skipped = names(&SKIPPED_FILES, &options.exclude_patterns)?;
    let mut builder = project_walk(root);
    builder.sort_by_file_name(Ord::cmp);
    builder.filter_entry(move |entry| {
        let name = folded(entry);
        let skipped = || name.starts_with('.') || directories.is_match(&name);
        !is_directory(entry) || entry.depth() == 0 || !skipped() && has_plain_ignore_files(entry.path())
    });
    let mut found = Found::default();
    let top = |entry: &DirEntry| {
        let is_top = entry.depth() == 1 && is_directory(entry);
        is_top.then(|| relative(root, entry)).flatten()
    };
    for (count, entry) in builder.build().filter_map(Result::ok).enumerate() {
        if count > options.entries {
            found.stopped = Some(format!("{} entries", options.entries));
            break;
        }
        if late() {
            found.stopped = Some(format!("{} ms", options.time.as_millis()));
            break;
        }
        found.top.extend(top(&entry));
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && !skipped.is_match(folded(&entry)) {
            found.files.extend(listed(root, &entry, options.max_file_size));
        }
    }
    if found.stopped.is_some() {
        let entries = builder.max_depth(Some(1)).build().filter_map(Result::ok).take(MAX_TOP);
        found.top = entries.filter_map(|entry| top(&entry)).collect();
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn relative(root: &Path, entry: &DirEntry) -> Option<PathBuf> {
    entry.path().strip_prefix(root).ok().map(Path::to_owned)
}

/// Returns the name of `entry` in the lower case that [`names`] expects.
fn folded(entry: &DirEntry) -> String {
    entry.file_name().to_string_lossy().to_lowercase()
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

fn listed(root: &Path, entry: &DirEntry, max_size: u64) -> Option<Listed> {
    if entry.metadata().ok()?.len() > max_size {
        return None;
    }
    let extension = entry.path().extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    Some(Listed { path: relative(root, entry)?, language: language(extension), lines: None })
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
    let files = found.files.len();
    let mut text = format!("## Project Structure\n{files} files");
    let lines: Vec<u64> = found.files.iter().filter_map(|file| file.lines).collect();
    if !lines.is_empty() {
        let _ = write!(text, ", {} lines", lines.iter().sum::<u64>());
    }
    let languages = languages(found.files.iter());
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
    found.files.len() <= DETAILED_FILES && found.stopped.is_none()
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
    let mut counted: BTreeMap<&Path, Vec<&Listed>> = BTreeMap::new();
    counted.extend(found.top.iter().map(|top| (top.as_path(), Vec::new())));
    for file in &found.files {
        for directory in file.path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()) {
            if directory.components().count() <= depth {
                counted.entry(directory).or_default().push(file);
            }
        }
    }
    let mut text = String::new();
    for (directory, files) in counted {
        let mut parts = parts(directory);
        let name = parts.pop().unwrap_or_default();
        let _ = match (files.len(), found.stopped.is_some()) {
            (0, true) => writeln!(text, "{}{name}/ (not counted)", indent(parts.len())),
            (0, false) => Ok(()),
            (count, _) => {
                let languages = languages(files.into_iter());
                let colon = if languages.is_empty() { "" } else { ": " };
                writeln!(text, "{}{name}/ ({count} files{colon}{languages})", indent(parts.len()))
            }
        };
    }
    let at_root = found.files.iter().filter(|file| file.path.components().count() == 1);
    for file in at_root {
        let _ = writeln!(text, "{}", parts(&file.path).join("/"));
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
fn languages<'a>(files: impl Iterator<Item = &'a Listed>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for language in files.filter_map(|file| file.language) {
        *counts.entry(language).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
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

    #[test]
    fn an_empty_project_has_no_overview() {
        assert_eq!(project_index(project(&[]).path(), &options(), &Clock::new()).unwrap(), None);
    }
}
