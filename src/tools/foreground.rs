//! The commands that calls wait for, as the user of a conversation follows them: what they have printed last, and that one can be left in the background.

use agent_process::recent_output::RecentOutput;
use agent_text::lines::as_shown;
use std::cell::RefCell;
use std::rc::Rc;
use tokio::sync::Notify;

/// Bytes read of the end of an output.
const TAIL_BYTES: usize = 8 * 1024;

/// The running commands of a conversation; none are followed by default. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ForegroundCommands(Option<Rc<RefCell<Vec<Rc<ForegroundCommand>>>>>);

/// A command that a call waits for.
#[derive(Debug, Default)]
pub struct ForegroundCommand {
    pub(crate) recent: RecentOutput,
    pub(crate) leave: Notify,
}

/// The end of what a command has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTail {
    /// The last lines; of a line that is written again and again, such as a progress bar, the last state.
    pub lines: Vec<String>,
    /// Number of lines before them.
    pub before: u64,
}

impl ForegroundCommands {
    /// Returns a list whose commands are followed.
    pub fn followed() -> Self {
        Self(Some(Rc::default()))
    }

    /// Adds a command, which is removed when the returned value is dropped. Returns `None` if no user follows the commands.
    pub(crate) fn add(&self) -> Option<Followed> {
        let list = self.0.clone()?;
        let command = Rc::new(ForegroundCommand::default());
        list.borrow_mut().push(Rc::clone(&command));
        Some(Followed { list, command })
    }

    /// Returns the last `most` lines of the command that began last. `redact` removes secrets from the end of its output, which is whole lines.
    pub fn tail(&self, most: usize, redact: impl Fn(&str) -> String) -> Option<OutputTail> {
        let list = self.0.as_ref()?.borrow();
        let recent = &list.last()?.recent;
        let ends = recent.line_ends();
        let part = recent.tail_from(0, TAIL_BYTES);
        let text = String::from_utf8_lossy(&part.bytes);
        // The first line of a part can be the end of a secret.
        let from = if part.first > 0 { text.find('\n').map_or(text.len(), |end| end + 1) } else { 0 };
        let text = redact(text.get(from..).unwrap_or_default());
        let open = u64::from(!text.is_empty() && !text.ends_with('\n'));
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.iter().skip(lines.len().saturating_sub(most));
        let lines: Vec<String> = shown.map(|line| as_shown(line)).collect();
        let before = (ends + open).saturating_sub(lines.len() as u64);
        Some(OutputTail { lines, before })
    }

    /// Leaves the command that began last in the background; returns false without one.
    pub fn leave_last(&self) -> bool {
        let list = self.0.as_ref().map(|list| list.borrow());
        let last = list.as_ref().and_then(|list| list.last());
        last.map(|command| command.leave.notify_one()).is_some()
    }
}

/// A command in the list, until it is dropped.
pub(crate) struct Followed {
    list: Rc<RefCell<Vec<Rc<ForegroundCommand>>>>,
    pub(crate) command: Rc<ForegroundCommand>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.list.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.command));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u02_the_last_lines_of_the_last_command_are_seen_while_it_runs() {
        let commands = ForegroundCommands::followed();
        assert_eq!(commands.tail(2, str::to_owned), None);
        let first = commands.add().unwrap();
        let second = commands.add().unwrap();
        second.command.recent.append(b"one\ntwo\nthree\n10 %\r20 %");
        let tail = OutputTail { lines: vec!["three".to_owned(), "20 %".to_owned()], before: 2 };
        assert_eq!(commands.tail(2, str::to_owned), Some(tail));
        drop(second);
        assert_eq!(commands.tail(2, str::to_owned), Some(OutputTail { lines: Vec::new(), before: 0 }));
        drop(first);
        assert!(!commands.leave_last());
        assert!(ForegroundCommands::default().add().is_none());
    }
}
