//! Parses redirections and here-documents.

use super::reader::{PendingHeredoc, Reader};
use super::script::{Direction, Redirection, ShellParseError, SimpleCommand};

/// Redirection operators, longer ones first.
const OPERATORS: &[&str] = &["&>>", "<<<", "<<-", "&>", "<<", "<&", "<>", ">>", ">&", ">|", "<", ">"];

impl Reader<'_> {
    /// Parses a redirection of `simple`; returns whether one was next.
    pub(super) fn redirection(&mut self, simple: &mut SimpleCommand) -> Result<bool, ShellParseError> {
        let start = self.at;
        self.at += self.descriptor();
        let operator = OPERATORS.iter().find(|operator| self.is_next(operator));
        let Some(operator) = operator.filter(|_| !self.is_next("<(") && !self.is_next(">(")) else {
            self.at = start;
            return Ok(false);
        };
        self.at += operator.len();
        self.blanks();
        // Closes a descriptor; the following text is a separate word.
        if matches!(*operator, "<&" | ">&") && self.accept("-") {
            return Ok(true);
        }
        let target = self.word()?;
        match *operator {
            "<<" | "<<-" => self.level.pending_heredocs.push(PendingHeredoc {
                delimiter: target.text,
                drops_tabs: *operator == "<<-",
                expands: !target.raw.contains(['\'', '"', '\\']),
                command: self.level.commands.len(),
            }),
            "<<<" => {
                simple.document.push_str(&target.text);
                simple.document.push('\n');
            }
            // Redirections between descriptors: `2>&1`, `<&3`, `>&-`, also with a variable as the number.
            "<&" => {}
            ">&" if is_descriptor(&target.text) => {}
            _ => {
                let direction = if *operator == "<" { Direction::Read } else { Direction::Write };
                simple.redirections.push(Redirection { direction, target });
            }
        }
        Ok(true)
    }

    /// Returns the length of the descriptor before a redirection: a number, or a variable name in braces.
    fn descriptor(&self) -> usize {
        let rest = self.rest();
        let inside = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
        let length = match inside {
            Some(name) if super::words::is_name(name) => name.len() + 2,
            Some(_) => 0,
            None => rest.bytes().take_while(u8::is_ascii_digit).count(),
        };
        let is_followed = rest.get(length..).is_some_and(|rest| rest.starts_with(['<', '>']));
        if is_followed { length } else { 0 }
    }

    /// Consumes the end of a line and the here-documents that start there.
    pub(super) fn end_line(&mut self) -> Result<(), ShellParseError> {
        self.at += 1;
        for awaited in std::mem::take(&mut self.level.pending_heredocs) {
            let body = self.document_lines(&awaited)?;
            let nested =
                if awaited.expands { self.parse_nested(&body, Reader::document)?.nested } else { Vec::new() };
            let command = self.level.commands.get_mut(awaited.command).ok_or(ShellParseError::Syntax)?;
            command.document.push_str(&body);
            command.nested.extend(nested);
        }
        Ok(())
    }

    /// Reads the lines up to the delimiter, which must exist.
    fn document_lines(&mut self, awaited: &PendingHeredoc) -> Result<String, ShellParseError> {
        let mut body = String::new();
        while !self.rest().is_empty() {
            let line = self.rest().split('\n').next().unwrap_or_default();
            self.at = (self.at + line.len() + 1).min(self.text.len());
            let line = if awaited.drops_tabs { line.trim_start_matches('\t') } else { line };
            if line == awaited.delimiter {
                return Ok(body);
            }
            // A line continuation could hide the delimiter.
            if awaited.expands && line.ends_with('\\') {
                return Err(ShellParseError::Syntax);
            }
            body.push_str(line);
            body.push('\n');
        }
        Err(ShellParseError::Syntax)
    }
}

fn is_descriptor(text: &str) -> bool {
    text.strip_suffix('-').unwrap_or(text).chars().all(|char| char.is_ascii_digit())
}
