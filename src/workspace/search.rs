//! Content search with ripgrep's libraries: parallel, bounded, sorted by path.

use crate::Workspace;
use crate::error::FileError;
use crate::path::RelPath;
use crate::walk::{MAX_ENTRIES, Walk, glob_matches};
use globset::GlobMatcher;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::{DirEntry, WalkState};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Largest file to search, in bytes. Larger files are data, and are counted in the result.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Memory limit for one line, in bytes. A file with a longer line counts as unreadable from there on.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 300;

/// Bytes of a long line shown before its match.
const LEAD_BYTES: usize = 80;

/// Bytes of the longest character in UTF-8.
const MAX_CHAR_BYTES: usize = 4;

/// Memory limit for one compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 10 * 1024 * 1024;

/// Maximum size, in bytes, of an error that quotes the pattern line by line.
const MAX_REASON_BYTES: usize = 1000;

/// Checks whether a path, from the workspace root, must not be shown.
pub type PathFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Search query.
#[derive(Clone)]
pub struct Query {
    /// Regular expression or plain text.
    pub pattern: String,
    /// Whether `pattern` is plain text.
    pub literal: bool,
    /// Whether the search is case-sensitive.
    pub case_sensitive: bool,
    /// File, or directory with everything below it.
    pub base: RelPath,
    /// Glob for the files to search.
    pub glob: Option<GlobMatcher>,
    /// Number of lines shown before and after each match.
    pub context: usize,
    /// Maximum number of matching lines to return.
    pub most: usize,
    /// Filter for files that must not be shown.
    pub hidden: PathFilter,
}

/// Line of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLine {
    /// Line number, counted from 1.
    pub number: u64,
    /// Text without line ending, truncated.
    pub text: String,
    /// Whether the line matches. Otherwise it is context.
    pub matched: bool,
}

/// Results of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// Lines by file, sorted by path.
    pub files: BTreeMap<String, Vec<ResultLine>>,
    /// Number of matching lines in `files`.
    pub hits: usize,
    /// Whether there are more matching lines.
    pub has_more: bool,
    /// Number of files skipped because they are too large.
    pub too_large: usize,
    /// Number of files skipped because they must not be shown.
    pub hidden: usize,
    /// Number of files that could not be read to the end, and directories whose ignore file is not a regular file.
    pub unreadable: usize,
    /// Number of entries left out because of ignore files or their names; everything below a directory counts as one.
    pub ignored: usize,
    /// Whether the search ended early: too many entries, or it was stopped.
    pub is_incomplete: bool,
}

/// Reasons why a search could not start.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pattern is not a regular expression.
    #[error("Invalid regex pattern: {0}. To search for plain text use grep.")]
    Pattern(String),
    /// The location to search cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Workspace {
    /// Searches, blocking until it is done or `stop` is set. Call it on a thread of its own.
    ///
    /// # Errors
    /// Fails if the pattern is invalid or the location is missing, outside the workspace or unreadable.
    pub fn search(&self, query: &Query, stop: &AtomicBool) -> Result<SearchResults, SearchError> {
        let matcher = query.matcher()?;
        let walk = self.walk(&query.base, query.glob.as_ref())?;
        let job = Job {
            workspace: self,
            query,
            walk: &walk,
            stop,
            visited: AtomicUsize::new(0),
            results: Mutex::new(SearchResults::default()),
        };
        walk.builder.build_parallel().run(|| {
            let (mut searcher, matcher, job) = (searcher(query.context), matcher.clone(), &job);
            Box::new(move |entry| {
                if let Ok(entry) = entry {
                    return job.visit(&entry, &mut searcher, &matcher);
                }
                job.note(|results| results.unreadable += 1);
                WalkState::Continue
            })
        });
        let mut results = job.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.is_incomplete |= stop.load(Ordering::Relaxed);
        results.unreadable += walk.skipped();
        results.ignored = walk.ignored();
        results.trim(query.most);
        Ok(results)
    }
}

/// Searches one open file, called `name` in the results. Does not stop at binary data.
///
/// # Errors
/// Fails if the pattern is invalid.
pub fn search_one(
    file: &File,
    name: &str,
    query: &Query,
    stop: &AtomicBool,
) -> Result<SearchResults, SearchError> {
    let matcher = query.matcher()?;
    let mut searcher = searcher(query.context);
    searcher.set_binary_detection(BinaryDetection::none());
    let mut lines = Lines::new(&matcher, query.most, stop);
    let mut results = SearchResults::default();
    if searcher.search_file(&matcher, file, &mut lines).is_err() {
        results.unreadable += 1;
    }
    if lines.hits > 0 {
        results.hits = lines.hits;
        results.files.insert(name.to_owned(), lines.found);
    }
    results.trim(query.most);
    Ok(results)
}

impl Query {
    fn matcher(&self) -> Result<RegexMatcher, SearchError> {
        RegexMatcherBuilder::new()
            .case_insensitive(!self.case_sensitive)
            .fixed_strings(self.literal)
            .size_limit(MAX_PATTERN_BYTES)
            .line_terminator(Some(b'\n'))
            .build(&self.pattern)
            .map_err(|error| SearchError::Pattern(reason(&error.to_string())))
    }
}

/// Returns the error in a pattern, with the pattern if that is short enough.
fn reason(error: &str) -> String {
    if error.len() <= MAX_REASON_BYTES { error } else { error.lines().last().unwrap_or_default() }.to_owned()
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MAX_LINE_BYTES))
        .build()
}

impl SearchResults {
    /// Drops the last lines by path until at most `most` match.
    fn trim(&mut self, most: usize) {
        while self.hits > most {
            let Some(mut last) = self.files.last_entry() else { break };
            let lines = last.get_mut();
            while self.hits > most {
                match lines.pop() {
                    Some(line) => self.hits -= usize::from(line.matched),
                    None => break,
                }
            }
            if !lines.iter().any(|line| line.matched) {
                last.remove();
            }
            self.has_more = true;
        }
    }
}

/// One search, shared by its threads.
struct Job<'a> {
    workspace: &'a Workspace,
    query: &'a Query,
    walk: &'a Walk,
    stop: &'a AtomicBool,
    visited: AtomicUsize,
    results: Mutex<SearchResults>,
}

impl Job<'_> {
    fn visit(&self, entry: &DirEntry, searcher: &mut Searcher, matcher: &RegexMatcher) -> WalkState {
        if self.stop.load(Ordering::Relaxed) {
            return WalkState::Quit;
        }
        if self.visited.fetch_add(1, Ordering::Relaxed) >= MAX_ENTRIES {
            self.note(|results| results.is_incomplete = true);
            return WalkState::Quit;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return WalkState::Continue;
        }
        let Some(path) = self.walk.path_of(entry) else {
            // A name that is not UTF-8 cannot be sent to the model.
            self.note(|results| results.unreadable += 1);
            return WalkState::Continue;
        };
        if self.query.glob.as_ref().is_some_and(|glob| !glob_matches(glob, &self.query.base, &path)) {
            return WalkState::Continue;
        }
        if (self.query.hidden)(path.as_str()) {
            self.note(|results| results.hidden += 1);
        } else if !self.is_beyond(&path) {
            self.search_file(&path, searcher, matcher);
        }
        WalkState::Continue
    }

    /// Checks whether enough lines were found in files that come before `path`.
    fn is_beyond(&self, path: &RelPath) -> bool {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.hits > self.query.most
            && results.files.last_key_value().is_some_and(|(last, _)| path.as_str() > last.as_str())
    }

    fn search_file(&self, path: &RelPath, searcher: &mut Searcher, matcher: &RegexMatcher) {
        let opened = match self.workspace.open_file(path) {
            Ok(opened) => opened,
            Err(FileError::ProtectedFile(_)) => return self.note(|results| results.hidden += 1),
            Err(_) => return self.note(|results| results.unreadable += 1),
        };
        // A base that is a link has another name than the files below it.
        if opened.path != *path && (self.query.hidden)(opened.path.as_str()) {
            return self.note(|results| results.hidden += 1);
        }
        if opened.size > MAX_FILE_BYTES {
            return self.note(|results| results.too_large += 1);
        }
        let mut lines = Lines::new(matcher, self.query.most, self.stop);
        let searched = searcher.search_file(matcher, &opened.file, &mut lines);
        if searched.is_err() {
            self.note(|results| results.unreadable += 1);
        }
        if lines.hits > 0 && !lines.binary {
            self.add_lines(path, lines);
        }
    }

    /// Adds a file's lines and drops files whose paths come after enough others.
    fn add_lines(&self, path: &RelPath, lines: Lines<'_>) {
        self.note(|results| {
            results.hits += lines.hits;
            results.files.insert(path.as_str().to_owned(), lines.found);
            while let Some(last) = results.files.last_entry() {
                let in_last = last.get().iter().filter(|line| line.matched).count();
                // One more than requested is retained to detect that there are more.
                if results.hits - in_last <= self.query.most {
                    break;
                }
                results.hits -= in_last;
                last.remove();
            }
        });
    }

    fn note(&self, change: impl FnOnce(&mut SearchResults)) {
        change(&mut self.results.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Collects the lines of one file.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    found: Vec<ResultLine>,
    hits: usize,
    most: usize,
    binary: bool,
    stop: &'a AtomicBool,
}

impl<'a> Lines<'a> {
    fn new(matcher: &'a RegexMatcher, most: usize, stop: &'a AtomicBool) -> Self {
        Self { matcher, found: Vec::new(), hits: 0, most, binary: false, stop }
    }

    fn push(&mut self, number: Option<u64>, bytes: &[u8], matched: bool) {
        let hit = if matched { self.matcher.find(bytes).ok().flatten() } else { None };
        let text = shown(bytes, hit.map_or(0, |hit| hit.start()));
        self.found.push(ResultLine { number: number.unwrap_or(0), text, matched });
    }
}

/// Returns a line without its ending. Of a long line only the part around byte `at`.
fn shown(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE_CHARS * MAX_CHAR_BYTES {
        let whole = String::from_utf8_lossy(line);
        if whole.chars().count() <= MAX_LINE_CHARS {
            return whole.into_owned();
        }
    }
    let start = if at < MAX_LINE_CHARS / 2 { 0 } else { at - LEAD_BYTES };
    let rest = line.get(start..).unwrap_or_default();
    // The text must not start in the middle of a character.
    let rest = rest.get(rest.iter().take_while(|byte| **byte & 0xC0 == 0x80).count()..).unwrap_or_default();
    let window = rest.get(..MAX_LINE_CHARS * MAX_CHAR_BYTES).unwrap_or(rest);
    let text: String = String::from_utf8_lossy(window).chars().take(MAX_LINE_CHARS).collect();
    let before = if start > 0 { "[... line cut ...] " } else { "" };
    let after = if text.len() < rest.len() { " [... line cut ...]" } else { "" };
    format!("{before}{text}{after}")
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.push(found.line_number(), found.bytes(), true);
        self.hits += 1;
        Ok(self.hits <= self.most && !self.stop.load(Ordering::Relaxed))
    }

    fn context(&mut self, _searcher: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if *line.kind() != SinkContextKind::Other {
            self.push(line.line_number(), line.bytes(), false);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_line_is_shown_around_its_hit() {
        let line = format!("{}needle{}\r\n", "é".repeat(5000), "x".repeat(5000));
        let text = shown(line.as_bytes(), 10_000);
        assert!(text.starts_with("[... line cut ...] é") && text.ends_with("x [... line cut ...]"), "{text}");
        assert!(text.contains("éneedlex"), "{text}");
        assert_eq!(shown(b"short\r\n", 3), "short");
        assert_eq!(shown(&[b'y'; 400], 0), format!("{} [... line cut ...]", "y".repeat(300)));
    }

    proptest! {
        #[test]
        fn a_hit_of_a_line_of_any_length_is_shown(before in "[aé]{0,900}", after in "[bü]{0,900}") {
            let text = shown(format!("{before}HIT{after}\n").as_bytes(), before.len());
            prop_assert!(text.contains("HIT"));
            prop_assert!(text.chars().count() <= MAX_LINE_CHARS + 40);
        }
    }
}
