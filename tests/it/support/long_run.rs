//! A run of forty steps of which every effect can be counted, and what must have become of it wherever it was cut off.

use super::calls::call;
use super::run::Lab;
use super::tree::tree;
use agent_workspace::replace::TEMPORARY_PREFIX;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Steps that call tools; after them the model says that it is done.
pub const STEPS: usize = 40;

/// What the model reads of a call of which nobody knows what became.
const UNKNOWN: &str = "interrupted; outcome unknown";

/// Lines of a file, so that one of which only some were written shows.
const LINES: usize = 100;

/// The names of files after whose edits a hook runs.
const HOOKED: [&str; 3] = ["*edit", "*made", "deep"];

/// What the model has read, by the ids of its calls.
pub type Told = BTreeMap<String, String>;

/// A call, and what it does when it runs once.
struct Planned {
    id: String,
    call: Value,
    /// Files and what they hold before and after it; nothing where there is none.
    files: Vec<(String, [Option<String>; 2])>,
    /// Lines that it adds: to which file, and which.
    adds: Vec<(&'static str, String)>,
}

/// The run.
pub struct LongRun {
    steps: Vec<Vec<Planned>>,
}

/// What a file holds that call `id` finds or makes: `word` tells which.
fn text(id: &str, word: &str) -> String {
    format!("{}{word} {id}\n", format!("line of {id}\n").repeat(LINES))
}

impl Planned {
    fn new(id: &str, name: &str, arguments: &Value) -> Self {
        let mut call = call(name, arguments);
        call["id"] = id.into();
        Self { id: id.to_owned(), call, files: Vec::new(), adds: Vec::new() }
    }

    fn changes(mut self, path: &str, before: Option<String>, after: Option<String>) -> Self {
        self.files.push((path.to_owned(), [before, after]));
        self
    }

    fn adds(mut self, log: &'static str, line: &str) -> Self {
        self.adds.push((log, line.to_owned()));
        self
    }

    /// An edit of `path`, which the hook tells once.
    fn edits(self, path: &str, before: Option<String>, after: Option<String>) -> Self {
        self.changes(path, before, after).adds("hooks.log", path)
    }

    fn read(id: &str) -> Self {
        let path = format!("texts/{id}");
        let old = Some(text(id, "old"));
        Self::new(id, "read_file", &json!({"path": path, "start_line": LINES})).changes(
            &path,
            old.clone(),
            old,
        )
    }

    fn write(id: &str) -> Self {
        let (path, new) = (format!("made/{id}/deep"), text(id, "new"));
        Self::new(id, "write_file", &json!({"path": path, "content": new})).edits(&path, None, Some(new))
    }

    fn append(id: &str) -> Self {
        let line = format!("{id}\n");
        Self::new(id, "write_file", &json!({"path": "notes.log", "content": line, "mode": "append"}))
            .adds("notes.log", id)
    }

    fn edit(id: &str) -> Self {
        let path = format!("texts/{id}");
        let change = json!({"path": path, "old_str": format!("old {id}"), "new_str": format!("new {id}")});
        Self::new(id, "edit_file", &change).edits(&path, Some(text(id, "old")), Some(text(id, "new")))
    }

    fn patch(id: &str) -> Self {
        let [a, b, gone, made] = ["a", "b", "gone", "made"].map(|word| format!("texts/{id}-{word}"));
        let hunk = format!("@@\n-old {id}\n+new {id}\n");
        let patch = format!(
            "*** Begin Patch\n*** Update File: {a}\n{hunk}*** Delete File: {gone}\n*** Add File: {made}\n+new\n\
             *** Update File: {b}\n{hunk}*** End Patch\n"
        );
        let (old, new) = (|| Some(text(id, "old")), || Some(text(id, "new")));
        Self::new(id, "apply_patch", &json!({ "patch": patch }))
            .changes(&a, old(), new())
            .changes(&gone, old(), None)
            .edits(&made, None, Some("new\n".to_owned()))
            .changes(&b, old(), new())
    }

    fn delete(id: &str) -> Self {
        let path = format!("texts/{id}");
        Self::new(id, "delete_file", &json!({"path": path})).changes(&path, Some(text(id, "old")), None)
    }

    fn command(id: &str, words: &str) -> Self {
        Self::new(id, "run_command", &json!({"command": format!("echo {id} >>ran.log; {words}")}))
            .adds("ran.log", id)
    }

    fn moves(id: &str) -> Self {
        let (from, to, old) = (format!("texts/{id}"), format!("texts/{id}-moved"), Some(text(id, "old")));
        let mut moves = Self::command(id, &format!("mv {from} {to}"));
        moves.files = vec![(from, [old.clone(), None]), (to, [None, old])];
        moves
    }

    fn stays(id: &str, seconds: &str) -> Self {
        Self::new(id, "run_command", &json!({"command": format!("sleep {seconds}"), "background": true}))
    }

    /// Whether its files are all as before it, or all as after it.
    fn is_one_of(&self, found: &BTreeMap<String, Vec<u8>>) -> [bool; 2] {
        [0, 1].map(|state| self.files.iter().all(|file| holds(found, file, state)))
    }
}

fn holds(
    found: &BTreeMap<String, Vec<u8>>,
    (path, states): &(String, [Option<String>; 2]),
    state: usize,
) -> bool {
    found.get(path).map(Vec::as_slice) == states[state].as_ref().map(String::as_bytes)
}

/// The calls of step `number`; some leave a process that sleeps for `seconds`.
fn step(number: usize, seconds: &str) -> Vec<Planned> {
    let id = |word: &str| format!("{number:02}{word}");
    match number % 8 {
        0 => vec![Planned::read(&id("read"))],
        1 if number == 1 => vec![Planned::write(&id("write")), Planned::stays(&id("stays"), seconds)],
        1 => vec![Planned::write(&id("write"))],
        2 => vec![Planned::edit(&id("edit"))],
        3 => vec![Planned::patch(&id("patch"))],
        4 => vec![Planned::delete(&id("delete"))],
        5 => vec![Planned::moves(&id("moves"))],
        6 => vec![
            Planned::read(&id("first")),
            Planned::append(&id("append")),
            Planned::edit(&id("edit")),
            Planned::append(&id("again")),
            Planned::read(&id("last")),
        ],
        _ => vec![
            Planned::command(&id("lasts"), &format!("(setsid sleep {seconds} &); sleep 0.05")),
            Planned::command(&id("fails"), "exit 3"),
        ],
    }
}

impl LongRun {
    /// A run whose commands leave processes that sleep for `seconds`.
    pub fn new(seconds: &str) -> Self {
        Self { steps: (1..=STEPS).map(|number| step(number, seconds)).collect() }
    }

    /// The turns of the model. It does not repeat a call of which it is told that its outcome is unknown.
    pub fn script(&self) -> String {
        let calls = |step: &Vec<Planned>| step.iter().map(|planned| planned.call.clone()).collect::<Vec<_>>();
        let mut turns: Vec<Value> =
            self.steps.iter().map(|step| json!({"text": "next", "calls": calls(step)})).collect();
        turns.push(json!({"text": "done", "repeat": 3}));
        json!({ "turns": turns }).to_string()
    }

    /// The workspace that it begins with, in which commands have run: how they are confined is known.
    pub fn project(&self) -> Lab {
        let config = json!({
            "workspace": {"allow_delete": true},
            "tools": {"parallel": "all"},
            "hooks": {"post_edit": [{"command": "echo {file} >>hooks.log", "file_patterns": HOOKED}]},
        });
        let mut lab = Lab::new().started().config(&config.to_string());
        for (path, [before, _]) in self.planned().flat_map(|planned| &planned.files) {
            if let Some(before) = before {
                lab = lab.file(path, before);
            }
        }
        let lab = lab.unprivileged();
        lab.agent(&["tools", "call", "run_command", r#"{"command":"true"}"#, "--mode", "yolo"]).exits(0);
        lab
    }

    fn planned(&self) -> impl Iterator<Item = &Planned> {
        self.steps.iter().flatten()
    }

    /// Every file is old or new, nothing has run twice, and nothing else is there but what may be written just now; the ids of
    /// the calls that have begun to do something.
    #[track_caller]
    pub fn is_old_or_new(&self, lab: &Lab, what: &str) -> BTreeSet<String> {
        let found = files(lab);
        for file in self.planned().flat_map(|planned| &planned.files) {
            let is_whole = holds(&found, file, 0) || holds(&found, file, 1);
            assert!(is_whole, "{what}: {} is {:?}", file.0, found.get(&file.0).map(Vec::len));
        }
        for path in found.keys().filter(|path| !path.contains(TEMPORARY_PREFIX)) {
            let mut all = self.planned().flat_map(|planned| &planned.files);
            assert!(is_log(path) || all.any(|(known, _)| known == path), "{what}: {path} is there");
        }
        let logs = Logs::of(&found);
        let begun = self.planned().filter(|planned| {
            let times = planned.adds.iter().map(|line| logs.times(line)).max().unwrap_or(0);
            assert!(times < 2, "{what}: {} ran {times} times", planned.id);
            times > 0 || !planned.is_one_of(&found)[0]
        });
        begun.map(|planned| planned.id.clone()).collect()
    }

    /// Each call whose answer was `told` as in a run that nothing disturbed has done all of its work, once; each of which it was
    /// told that its outcome is unknown, or that it failed, all or nothing, at most once. How many of these there are.
    #[track_caller]
    pub fn is_done(&self, lab: &Lab, told: &Told, undisturbed: &Told, what: &str) -> usize {
        let begun = self.is_old_or_new(lab, what);
        let found = files(lab);
        assert!(found.keys().all(|path| !path.contains(TEMPORARY_PREFIX)), "{what}: {:?}", found.keys());
        let logs = Logs::of(&found);
        for planned in self.planned() {
            let id = &planned.id;
            let [old, new] = planned.is_one_of(&found);
            let text = told.get(id).unwrap_or_else(|| panic!("{what}: {id} has no result"));
            if Some(text) == undisturbed.get(id) {
                let once = planned.adds.iter().all(|line| logs.times(line) == 1);
                assert!(new && once, "{what}: {id} was done and is not: {begun:?}");
            } else {
                assert!(old || new, "{what}: {id} is half done: {text}");
            }
        }
        self.planned().filter(|planned| told[&planned.id] != undisturbed[&planned.id]).count()
    }
}

/// Whether `text` says that nobody knows what became of the call.
pub fn is_unknown(text: &str) -> bool {
    text.contains(UNKNOWN)
}

/// What the model is told in the request with this body.
pub fn told(body: &Value) -> Told {
    let messages = body["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    results.map(|result| (text(&result["tool_call_id"]), text(&result["content"]))).collect()
}

/// The results that a stream tells, the last line of which may be torn.
pub fn reported(stream: &str) -> Told {
    let records = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ends = records.filter(|record| record["type"] == "tool_call_end");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ends.map(|end| (text(&end["result"]["call_id"]), text(&end["result"]["text"]))).collect()
}

/// The files of the workspace.
fn files(lab: &Lab) -> BTreeMap<String, Vec<u8>> {
    let is_file = |mode: u32| mode & libc::S_IFMT == libc::S_IFREG;
    let all = tree(&lab.ws()).into_iter().filter(|(_, (_, mode))| is_file(*mode));
    all.map(|(path, (content, _))| (path, content)).collect()
}

fn is_log(path: &str) -> bool {
    ["notes.log", "hooks.log", "ran.log"].contains(&path)
}

/// How often each line stands in each log.
struct Logs(BTreeMap<(String, String), usize>);

impl Logs {
    fn of(found: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut lines = BTreeMap::new();
        for (path, content) in found.iter().filter(|(path, _)| is_log(path)) {
            for line in String::from_utf8_lossy(content).lines() {
                *lines.entry((path.clone(), line.to_owned())).or_default() += 1;
            }
        }
        Self(lines)
    }

    fn times(&self, (log, line): &(&'static str, String)) -> usize {
        self.0.get(&((*log).to_owned(), line.clone())).copied().unwrap_or(0)
    }
}
