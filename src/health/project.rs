//! The measured files of a project, their figures, and the comparison of two states.

use super::blocks::{Block, blocks};
use super::functions::{Function, functions};
use super::language::SourceLanguage;
use agent_core::health::{CodeHealth, FilesLeftOut, HealthFigures, MeasuredFunction, RepeatedBlock};
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of functions, and of repeated blocks, that are listed.
const MAX_LISTED: usize = 50;

/// A measured file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredFile {
    /// Hash of the content.
    pub hash: String,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Its blocks of six lines.
    pub blocks: Vec<Block>,
    /// Whether its syntax has errors.
    pub has_errors: bool,
}

impl MeasuredFile {
    /// Measures a file with the content `source`; `None` if `stop` has returned true.
    pub fn new(
        language: &SourceLanguage,
        hash: String,
        source: &[u8],
        stop: impl FnMut() -> bool,
    ) -> Option<Self> {
        let parsed = functions(language, source, stop)?;
        let blocks = blocks(source);
        Some(Self { hash, functions: parsed.functions, blocks, has_errors: parsed.has_errors })
    }
}

/// The measured files of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredProject {
    /// By path from the workspace root.
    pub files: BTreeMap<String, Arc<MeasuredFile>>,
    /// Files that are only counted.
    pub other_files: u64,
    /// Files that were not measured.
    pub left_out: FilesLeftOut,
    /// Whether all files were reached.
    pub is_complete: bool,
}

/// A repeated block with the hash of its first six lines.
struct Repetition {
    hash: u64,
    block: RepeatedBlock,
}

impl MeasuredProject {
    fn functions(&self) -> impl Iterator<Item = (&str, &Function)> {
        self.files
            .iter()
            .flat_map(|(path, file)| file.functions.iter().map(|function| (path.as_str(), function)))
    }

    /// Returns the repeated blocks. Consecutive blocks that are repeated make one.
    fn repetitions(&self) -> Vec<Repetition> {
        let mut first_places: HashMap<u64, (&str, u32)> = HashMap::new();
        let mut found: Vec<Repetition> = Vec::new();
        for (path, file) in &self.files {
            let mut continues = false;
            for block in &file.blocks {
                let first = match first_places.entry(block.hash) {
                    Entry::Vacant(entry) => {
                        entry.insert((path, block.line));
                        continues = false;
                        continue;
                    }
                    Entry::Occupied(entry) => *entry.get(),
                };
                match found.last_mut() {
                    Some(last) if continues => last.block.end_line = block.end_line,
                    _ => found.push(new_repetition(path, *block, first)),
                }
                continues = true;
            }
        }
        found
    }

    fn figures(&self, repetitions: &[Repetition]) -> HealthFigures {
        let count = |condition: fn(&Function) -> bool| {
            self.functions().filter(|(_, function)| condition(function)).count() as u64
        };
        let total = self.functions().count() as u64;
        let average = |figure: fn(&Function) -> u32| {
            let sum: u64 = self.functions().map(|(_, function)| u64::from(figure(function))).sum();
            average(sum, total)
        };
        HealthFigures {
            files: self.files.len() as u64,
            other_files: self.other_files,
            files_with_errors: self.files.values().filter(|file| file.has_errors).count() as u64,
            functions: total,
            average_complexity: average(|function| function.complexity),
            max_complexity: self
                .functions()
                .map(|(_, function)| function.complexity)
                .max()
                .unwrap_or_default(),
            average_lines: average(|function| function.lines),
            long_functions: count(Function::is_long),
            complex_functions: count(Function::is_complex),
            repeated_blocks: repetitions.len() as u64,
            left_out: self.left_out,
            complete: self.is_complete,
        }
    }
}

/// Returns the figures of `after` with everything that exceeds the limits or, compared with `before`, is worse.
pub fn compare(before: Option<&MeasuredProject>, after: &MeasuredProject) -> CodeHealth {
    let earlier = before.map(|before| (before, before.repetitions(), by_name(before)));
    let (mut repetitions, now) = (after.repetitions(), by_name(after));
    let mut health = CodeHealth { after: after.figures(&repetitions), ..CodeHealth::default() };
    let exceeding = after.functions().filter(|(_, function)| function.is_long() || function.is_complex());
    let mut functions: Vec<_> = exceeding.map(|(path, function)| measured(path, function)).collect();
    if let Some((before, earlier_repetitions, then)) = earlier {
        health.before = Some(before.figures(&earlier_repetitions));
        health.new_functions = Some(added(&then, &now));
        health.removed_functions = Some(added(&now, &then));
        let known: HashSet<u64> = earlier_repetitions.iter().map(|repetition| repetition.hash).collect();
        repetitions.retain(|repetition| !known.contains(&repetition.hash));
        functions.retain(|function| {
            let same = then.get(&(function.path.as_str(), function.name.as_str()));
            same.is_none_or(|same| function.complexity > same.complexity || function.lines > same.lines)
        });
    }
    functions.sort_by_key(|function| Reverse((function.complexity, function.lines)));
    health.not_listed =
        [functions.len(), repetitions.len()].map(|all| all.saturating_sub(MAX_LISTED) as u64).iter().sum();
    functions.truncate(MAX_LISTED);
    health.functions = functions;
    health.repeated_blocks = repetitions.into_iter().take(MAX_LISTED).map(|found| found.block).collect();
    health
}

/// Number and highest figures of the functions with one name in one file.
#[derive(Debug, Default, Clone, Copy)]
struct SameName {
    count: u64,
    complexity: u32,
    lines: u32,
}

fn by_name(project: &MeasuredProject) -> HashMap<(&str, &str), SameName> {
    let mut names: HashMap<_, SameName> = HashMap::new();
    for (path, function) in project.functions() {
        let same = names.entry((path, function.name.as_str())).or_default();
        same.count += 1;
        same.complexity = same.complexity.max(function.complexity);
        same.lines = same.lines.max(function.lines);
    }
    names
}

/// Returns how many functions of `after` are not in `before`.
fn added(before: &HashMap<(&str, &str), SameName>, after: &HashMap<(&str, &str), SameName>) -> u64 {
    let earlier = |name| before.get(name).map_or(0, |same: &SameName| same.count);
    after.iter().map(|(name, same)| same.count.saturating_sub(earlier(name))).sum()
}

fn measured(path: &str, function: &Function) -> MeasuredFunction {
    let Function { name, line, lines, complexity } = function.clone();
    MeasuredFunction { path: path.to_owned(), line, name, lines, complexity }
}

fn new_repetition(path: &str, block: Block, (first_path, first_line): (&str, u32)) -> Repetition {
    let (path, first_path) = (path.to_owned(), first_path.to_owned());
    let Block { hash, line, end_line } = block;
    Repetition { hash, block: RepeatedBlock { path, line, end_line, first_path, first_line } }
}

/// Returns an average with two decimals; 0 for nothing.
#[expect(clippy::cast_precision_loss, reason = "the sums are far below 2^52")]
fn average(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { (sum as f64 / count as f64 * 100.0).round() / 100.0 }
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
