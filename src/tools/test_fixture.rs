//! Test fixture: a workspace in a temporary directory with the file tools.

use crate::outputs::Outputs;
use crate::toolbox::{ToolOptions, Toolbox};
use crate::{ToolContext, ToolOutput};
use agent_process::launch::Launcher;
use agent_workspace::Workspace;
use serde_json::Value;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// A temporary workspace with every file tool.
pub struct Fixture {
    _dir: tempfile::TempDir,
    pub root: PathBuf,
    pub cx: ToolContext,
    pub toolbox: Toolbox,
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        let cx = ToolContext {
            workspace: Rc::new(Workspace::open(&root).unwrap()),
            launcher: Rc::new(Launcher::new(std::collections::BTreeMap::new(), Vec::new())),
            observed_files: Rc::default(),
            background: Rc::default(),
            foreground: crate::foreground::ForegroundCommands::default(),
            outputs: Rc::new(Outputs {
                dir: dir.path().join("outputs"),
                parent: None,
                kept: None,
                redactor: Arc::default(),
            }),
            images: None,
            hidden: Arc::new(|path| path == ".env"),
            cancel: tokio_util::sync::CancellationToken::new(),
            call_id: "call_1".to_owned(),
            announce: Box::new(|_| Ok(())),
        };
        let options = ToolOptions { allow_delete: true, ..ToolOptions::default() };
        Self { _dir: dir, root, cx, toolbox: Toolbox::standard(options, Vec::new()) }
    }

    #[expect(clippy::disallowed_methods, reason = "tests arrange files")]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "tests look at files")]
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.root.join(path)).unwrap()
    }

    pub fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).unwrap()
    }

    /// Calls a tool as the engine does.
    pub fn call(&self, tool: &str, args: &Value) -> ToolOutput {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(self.toolbox.get(tool).unwrap().call(args, &self.cx))
    }

    /// Calls a tool that must succeed.
    pub fn ok(&self, tool: &str, args: &Value) -> String {
        let output = self.call(tool, args);
        assert!(!output.is_error, "{tool}: {}", output.text);
        output.text
    }

    /// Calls a tool that must fail.
    pub fn fails(&self, tool: &str, args: &Value) -> String {
        let output = self.call(tool, args);
        assert!(output.is_error, "{tool}: {}", output.text);
        assert!(output.changed.is_empty());
        output.text
    }
}
