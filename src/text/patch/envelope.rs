//! Parses patches from `*** Begin Patch` to `*** End Patch`, with hunks located by lines of the file instead of line numbers.

use crate::lines::{body, quoted};
use crate::patch::error::PatchError;
use crate::patch::file_patch::{Action, FilePatch};
use crate::patch::hunk::{Hunk, Line};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Names of the command that models write around a patch.
const COMMANDS: [&str; 3] = ["", "apply_patch", "applypatch"];

/// Maximum number of wrappers removed from a patch.
const MAX_LAYERS: usize = 3;

/// Maximum number of `@@` headers of one hunk.
const MAX_SCOPE: usize = 10;

/// Removes what models write around a patch: a code fence, or `apply_patch <<'EOF'` and `EOF`.
pub fn strip_wrapping(patch: &str) -> &str {
    let mut bare = patch;
    for _ in 0..MAX_LAYERS {
        let Some(inner) = inner(bare) else { break };
        bare = inner;
    }
    bare
}

fn inner(patch: &str) -> Option<&str> {
    let (first, rest) = patch.trim_matches(['\n', '\r']).split_once('\n')?;
    let (body, last) = rest.trim_end().rsplit_once('\n')?;
    let first = first.trim();
    let closing = if first.starts_with("```") {
        "```"
    } else {
        let (_, word) = first.split_once("<<").filter(|(command, _)| COMMANDS.contains(&command.trim()))?;
        word.trim_start_matches('-').trim_matches(['\'', '"', ' '])
    };
    (!closing.is_empty() && last.trim() == closing).then_some(body)
}

/// Checks whether `patch`, after [`strip_wrapping`], is an envelope.
pub fn is_envelope(patch: &str) -> bool {
    patch.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim() == BEGIN)
}

/// Parses the sections of `patch`, which is an envelope.
///
/// # Errors
/// When a line is unexpected, a hunk changes nothing, or the last line is missing.
pub fn parse(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = Reader::default();
    let lines = patch.split_inclusive('\n').map(body).skip_while(|line| line.trim().is_empty());
    for (number, line) in (1..).zip(lines).skip(1) {
        reader.take(number, line)?;
    }
    match reader.state {
        State::Ended if reader.sections.is_empty() => Err(PatchError::Empty),
        State::Ended => Ok(reader.sections),
        _ => Err(PatchError::MissingEnd),
    }
}

#[derive(Default)]
struct Reader {
    sections: Vec<FilePatch>,
    state: State,
}

/// Parser state: what the next line may be.
#[derive(Default, PartialEq, Clone, Copy)]
enum State {
    /// Start of a section.
    #[default]
    Between,
    /// Line of a new file.
    Adding,
    /// New name of a file, or a hunk.
    Updating,
    /// Another header of a hunk, or its first line.
    Header,
    /// Line of a hunk.
    Hunk,
    /// Nothing but blank lines.
    Ended,
}

impl Reader {
    fn take(&mut self, number: usize, line: &str) -> Result<(), PatchError> {
        let stray = || PatchError::UnexpectedLine { number, line: quoted(line) };
        match self.state {
            State::Ended if line.trim().is_empty() => {}
            State::Ended => return Err(stray()),
            // Inside a hunk, an indented marker is a line of the file.
            _ if line.starts_with("*** ") => self.marker(line.trim_end()).ok_or_else(stray)??,
            State::Adding if line.starts_with('+') => {
                if let Some(FilePatch { action: Action::Add(text), .. }) = self.sections.last_mut() {
                    text.push_str(line.get(1..).unwrap_or_default());
                    text.push('\n');
                }
            }
            State::Updating | State::Header | State::Hunk => self.hunk_line(line)?,
            State::Between | State::Adding if line.trim().is_empty() => {}
            State::Between | State::Adding => return Err(stray()),
        }
        Ok(())
    }

    /// Handles a line that starts with three asterisks; `None` when it is unexpected here.
    fn marker(&mut self, line: &str) -> Option<Result<(), PatchError>> {
        if line == END_OF_FILE {
            let hunk = self.hunks()?.last_mut()?;
            hunk.at_end = true;
            return Some(Ok(()));
        }
        if let Some(to) = line.strip_prefix(MOVE) {
            let FilePatch { action: Action::Update { to: name @ None, hunks }, .. } =
                self.sections.last_mut()?
            else {
                return None;
            };
            let to = to.trim();
            if to.is_empty() || !hunks.is_empty() {
                return None;
            }
            *name = Some(to.to_owned());
            return Some(Ok(()));
        }
        let finished = self.finish_section();
        let started = [(ADD, State::Adding), (DELETE, State::Between), (UPDATE, State::Updating)]
            .into_iter()
            .find_map(|(marker, state)| Some((line.strip_prefix(marker)?.trim(), state)));
        match started {
            None if line == END => self.state = State::Ended,
            None | Some(("", _)) => return None,
            Some((path, state)) => {
                let action = match state {
                    State::Adding => Action::Add(String::new()),
                    State::Updating => Action::Update { to: None, hunks: Vec::new() },
                    _ => Action::Delete(Vec::new()),
                };
                self.sections.push(FilePatch { path: path.to_owned(), action });
                self.state = state;
            }
        }
        Some(finished)
    }

    fn hunks(&mut self) -> Option<&mut Vec<Hunk>> {
        match &mut self.sections.last_mut()?.action {
            Action::Update { hunks, .. } => Some(hunks),
            Action::Add(_) | Action::Delete(_) => None,
        }
    }

    fn hunk_line(&mut self, line: &str) -> Result<(), PatchError> {
        let state = self.state;
        let Some(hunks) = self.hunks() else { return Ok(()) };
        let number = hunks.len();
        let mut next = State::Hunk;
        match (line.strip_prefix("@@"), hunks.last_mut()) {
            (Some(scope), last) => {
                let scope = scope.trim().trim_end_matches("@@").trim();
                let mut hunk = match last {
                    Some(_) if state == State::Header => hunks.pop().unwrap_or_default(),
                    _ if is_range(scope) => Hunk::header(line, number + 1)?,
                    _ => Hunk::default(),
                };
                if hunk.scope.len() == MAX_SCOPE {
                    return Err(PatchError::BadHeader { hunk: number.max(1), line: quoted(line) });
                }
                if !scope.is_empty() && hunk.start.is_none() {
                    hunk.scope.push(scope.to_owned());
                }
                hunks.push(hunk);
                next = State::Header;
            }
            // The first hunk needs no header; blank lines before it do not belong to the file.
            (None, None) if line.is_empty() => next = state,
            (None, None) => {
                let mut hunk = Hunk::default();
                hunk.take_line(line, 1)?;
                hunks.push(hunk);
            }
            (None, Some(hunk)) => hunk.take_line(line, number)?,
        }
        self.state = next;
        Ok(())
    }

    /// Validates and completes the last section.
    fn finish_section(&mut self) -> Result<(), PatchError> {
        let Some(FilePatch { path, action: Action::Update { to, hunks } }) = self.sections.last_mut() else {
            return Ok(());
        };
        if hunks.is_empty() && to.is_none() {
            return Err(PatchError::NoHunks.in_file(path));
        }
        for (index, hunk) in hunks.iter_mut().enumerate() {
            hunk.finish(index + 1).map_err(|error| error.in_file(path))?;
            let adds_only = hunk.lines.iter().all(|line| matches!(line, Line::Added(_)));
            // Added lines without any position belong at the end of the file.
            hunk.at_end |= adds_only && hunk.start.is_none() && hunk.scope.is_empty();
        }
        Ok(())
    }
}

/// Checks whether a header contains line numbers, as in unified diffs, and not a line of the file.
fn is_range(header: &str) -> bool {
    header.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}
