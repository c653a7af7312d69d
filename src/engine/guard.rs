//! What guardrails look at when a call is decided on and when it has run: what it makes of files, and how much that is.

use crate::change::{Change, FileState};
use crate::decision::Refusal;
use crate::emit::EmitError;
use crate::engine::Engine;
use crate::engine::command_class::classify;
use crate::engine::guardrails::edit::{self, Edit};
use crate::engine::links;
use crate::event::Event;
use crate::guardrail::{Counted, Reaction, Side};
use crate::messages;
use crate::text::diff;
use crate::tools::rewrite::Rewrite;
use crate::tools::{Access, Plan, Ran, Tool, ToolOutput};
use crate::workspace::Workspace;
use serde_json::Value;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// Bytes of changed files whose lines are counted after one command; the rest is not counted.
const MAX_COUNTED_BYTES: usize = 64 << 20;

/// What guardrails say about a call that they let run.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// What the model is told besides the result.
    pub(super) remarks: Vec<String>,
    /// How many lines it adds and removes.
    lines: u64,
}

impl Engine {
    /// Looks at a call before anything happens. Without arguments only its plan is looked at.
    pub(super) fn guard(
        &self,
        tool: &dyn Tool,
        args: Option<&Value>,
        plan: &Plan,
    ) -> Result<Passed, Refusal> {
        match (tool.access(), args, &plan.command) {
            (Access::Execute, _, Some(command)) if self.guardrails.count() => {
                let class = classify(command, &self.commands).class;
                self.guardrails
                    .check_command(command, &class, &self.written(plan))
                    .map(|()| Passed::default())
            }
            (Access::Write, Some(args), _) if self.guardrails.look_at_edits() => {
                let cx = self.context("", &CancellationToken::new());
                // A call that can only fail changes nothing, and says why itself.
                let rewrites = tool.rewrites(args, &cx).unwrap_or_default();
                let edits: Vec<Edit> = rewrites.into_iter().map(|rewrite| self.edit(rewrite)).collect();
                let remarks = self.guardrails.check_edits(&edits)?;
                Ok(Passed { remarks, lines: edits.iter().map(Edit::lines).sum() })
            }
            _ => Ok(Passed::default()),
        }
    }

    /// The files of the workspace that a call names and writes, each by the name that all its names lead to.
    fn written(&self, plan: &Plan) -> BTreeSet<String> {
        let written = links::touched(plan).into_iter().filter(|touch| touch.write);
        let path = |raw: &str| {
            let path = self.workspace.path(raw).ok()?;
            Some(self.workspace.resolve(&path).unwrap_or(path).as_str().to_owned())
        };
        written.filter_map(|touch| path(&touch.path)).collect()
    }

    fn edit(&self, rewrite: Rewrite) -> Edit {
        let path = match rewrite.new {
            Some(_) => self.workspace.resolve(&rewrite.path),
            None => self.workspace.resolve_directory(&rewrite.path),
        };
        let path = path.map_or_else(|_| rewrite.path.as_str().to_owned(), |path| path.as_str().to_owned());
        Edit::new(path, rewrite)
    }

    /// What a call that ran counts.
    pub(super) async fn counted(&self, plan: &Plan, output: &ToolOutput, passed: &Passed) -> Counted {
        let command = plan.command.as_deref().filter(|_| output.ran.is_some());
        let lines = match command {
            Some(_) if self.guardrails.count_lines() => self.lines_of(output.changed.clone()).await,
            None if !output.changed.is_empty() => passed.lines,
            _ => 0,
        };
        let tests_passed = match output.ran {
            Some(Ran::Well) => Some(true),
            Some(Ran::Badly) => Some(false),
            Some(Ran::On) | None => None,
        };
        let is_test = command.is_some_and(|command| self.guardrails.is_test(command));
        Counted { lines, command: command.is_some(), tests_passed: tests_passed.filter(|_| is_test) }
    }

    /// How many lines changes added and removed, as far as what was and what is there is kept.
    async fn lines_of(&self, changes: Vec<Change>) -> u64 {
        let workspace = Workspace::clone(&self.workspace);
        let count = move || {
            let mut bytes = 0_usize;
            let texts = changes.iter().filter_map(|change| {
                Some((kept(&workspace, &change.was())?, kept(&workspace, &change.became())?))
            });
            let counted = texts.map_while(|(old, new)| {
                bytes = bytes.saturating_add(old.len()).saturating_add(new.len());
                (bytes <= MAX_COUNTED_BYTES).then(|| edit::lines(&diff::replaced(&old, &new)))
            });
            counted.sum()
        };
        tokio::task::spawn_blocking(count).await.unwrap_or_default()
    }

    /// What the model reads in place of a text that a guardrail keeps from it.
    pub(super) fn withheld(&self, text: &str) -> Result<Option<String>, EmitError> {
        let found = self.guardrails.texts.find(Side::Input, text);
        let Some(triggered) = found.filter(|found| found.action == Reaction::Block) else { return Ok(None) };
        self.emitter.emit(Event::Guardrail { triggered: triggered.clone() })?;
        Ok(Some(messages::withheld(&triggered.name, &triggered.message)))
    }
}

/// The text of a file in this state, where it is kept and is one.
fn kept(workspace: &Workspace, state: &FileState) -> Option<String> {
    match state {
        FileState::Absent => Some(String::new()),
        FileState::Content { hash, .. } => String::from_utf8(workspace.displaced()?.get(hash)?).ok(),
        FileState::Unknown => None,
    }
}
