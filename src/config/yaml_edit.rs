//! Changes one key in the text of a YAML file and keeps everything else: comments, order and quotes.
//!
//! The text is changed at the place of the key and parsed again. A change is refused unless the only difference between the two documents is this key.

use super::error::ConfigError;
use super::yaml::{self, Content, Entry, Node};
use agent_messages as messages;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::ops::Range;

/// A changed text.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The new text.
    pub text: String,
    /// Line of the key, from 1; of a removed key, its line before.
    pub line: u64,
    /// The value before.
    pub old: Option<Value>,
}

/// Spaces before the keys of a new group, more than before its name.
const INDENT: usize = 2;

/// Sets the dotted `key` to `value`, a scalar or a list. Groups that are missing are added.
///
/// # Errors
/// Fails for a text that is not valid YAML, and where the key cannot be placed without touching other lines.
pub fn set(text: &str, key: &str, value: &Value) -> Result<Edit, ConfigError> {
    let document = Document { text, root: yaml::parse(text)? };
    let names: Vec<&str> = key.split('.').collect();
    let found = document.entries(&names);
    let (present, missing) = names.split_at(found.len());
    let entry = found.last().copied();
    let splice = match (entry, missing) {
        (Some(entry), []) => document.replacement(entry, document.is_in_flow(present), value),
        _ => document.insertion(entry, document.is_in_flow(&names), missing, value),
    };
    let refused = || {
        let line = entry.map_or(document.root.line, |entry| entry.line);
        ConfigError::new(messages::CONFIG_PLACE_REFUSED).key(key).line(line)
    };
    let text = document.applied(&splice.ok_or_else(refused)?);
    let mut expected = document.root.to_json();
    insert(&mut expected, &names, value.clone());
    let root = yaml::parse(&text).ok().filter(|root| root.to_json() == expected).ok_or_else(refused)?;
    let line = entries_of(&root, &names).last().map_or(0, |entry| entry.line);
    let old = missing.is_empty().then(|| entry.map(|entry| entry.node.to_json())).flatten();
    Ok(Edit { text, line, old })
}

/// Adds `item` at the end of the list of the dotted `key`, which begins with it where there is none.
///
/// # Errors
/// Fails for a text that is not valid YAML, and where the item cannot be placed without touching other lines.
pub fn append(text: &str, key: &str, item: &Value) -> Result<Edit, ConfigError> {
    let document = Document { text, root: yaml::parse(text)? };
    let names: Vec<&str> = key.split('.').collect();
    let entries = document.entries(&names);
    let list = entries.last().filter(|_| entries.len() == names.len()).map(|entry| &entry.node);
    let Some(Node { content: Content::List(items), line, .. }) = list else {
        let edit = set(text, key, &Value::Array(vec![item.clone()]))?;
        return Ok(Edit { line: item_line(&yaml::parse(&edit.text)?, &names), ..edit });
    };
    let refused = || ConfigError::new(messages::CONFIG_PLACE_REFUSED).key(key).line(*line);
    let splice = list.and_then(|list| document.item_after(list, item));
    let text = document.applied(splice.as_ref().ok_or_else(refused)?);
    let old: Vec<Value> = items.iter().map(Node::to_json).collect();
    let mut expected = document.root.to_json();
    insert(&mut expected, &names, old.iter().chain([item]).cloned().collect());
    let root = yaml::parse(&text).ok().filter(|root| root.to_json() == expected).ok_or_else(refused)?;
    Ok(Edit { line: item_line(&root, &names), text, old: Some(Value::Array(old)) })
}

/// Returns the line of the last item in the list of the key `names`.
fn item_line(root: &Node, names: &[&str]) -> u64 {
    entries_of(root, names).last().and_then(|entry| entry.node.last_item()).unwrap_or_default()
}

/// Removes the dotted `key`, and the groups that would then be empty; `None` if the key is not there.
///
/// # Errors
/// Fails for a text that is not valid YAML, and where the key cannot be removed without touching other lines.
pub fn unset(text: &str, key: &str) -> Result<Option<Edit>, ConfigError> {
    let document = Document { text, root: yaml::parse(text)? };
    let names: Vec<&str> = key.split('.').collect();
    let found = document.entries(&names);
    let (Some(entry), true) = (found.last(), found.len() == names.len()) else { return Ok(None) };
    let is_alone = |group: &&Entry| matches!(&group.node.content, Content::Map(keys) if keys.len() == 1);
    let groups = found.iter().rev().skip(1).copied().take_while(is_alone).count();
    // The highest group that would be empty, else one below it.
    let removed = (names.len() - 1 - groups..names.len()).find_map(|depth| {
        let text = document.without(&found, depth)?;
        let mut expected = document.root.to_json();
        remove(&mut expected, names.get(..=depth)?);
        let root = yaml::parse(&text).ok()?;
        (without_empty(root.to_json()) == without_empty(expected)).then_some(text)
    });
    let refused = || ConfigError::new(messages::CONFIG_PLACE_REFUSED).key(key).line(entry.line);
    let text = removed.ok_or_else(refused)?;
    Ok(Some(Edit { text, line: entry.line, old: Some(entry.node.to_json()) }))
}

/// A part of the text, and what stands there afterwards.
struct Splice {
    range: Range<usize>,
    with: String,
}

/// A parsed text.
struct Document<'a> {
    text: &'a str,
    root: Node,
}

impl Document<'_> {
    fn entries(&self, names: &[&str]) -> Vec<&Entry> {
        entries_of(&self.root, names)
    }

    fn applied(&self, splice: &Splice) -> String {
        let mut text = self.text.to_owned();
        text.replace_range(splice.range.clone(), &splice.with);
        text
    }

    /// Returns the byte at a line and a column in characters, both from 1.
    fn offset(&self, line: u64, column: u64) -> Option<usize> {
        let start = self.line_start(line)?;
        let column = usize::try_from(column).ok()?.checked_sub(1)?;
        let rest = self.text.get(start..)?;
        let within = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column)?;
        Some(start + within)
    }

    fn line_start(&self, line: u64) -> Option<usize> {
        let line = usize::try_from(line).ok()?.checked_sub(1)?;
        let starts = self.text.match_indices('\n').map(|(at, _)| at + 1);
        std::iter::once(0).chain(starts).nth(line)
    }

    /// Returns the end of the line that contains the byte `at`, without its line break.
    fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let length = rest.find('\n').unwrap_or(rest.len());
        at + rest.get(..length).unwrap_or_default().trim_end_matches('\r').len()
    }

    fn line_break(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Checks whether one of the maps in which the last of `names` stands is written in braces.
    fn is_in_flow(&self, names: &[&str]) -> bool {
        let groups = self.entries(names.split_last().map_or(names, |(_, groups)| groups));
        std::iter::once(&self.root).chain(groups.iter().map(|entry| &entry.node)).any(|map| self.is_flow(map))
    }

    fn is_flow(&self, map: &Node) -> bool {
        let start = self.offset(map.line, map.column).and_then(|at| self.text.get(at..));
        matches!(map.content, Content::Map(_)) && start.is_some_and(|text| text.starts_with('{'))
    }

    /// Returns the byte after the colon of a key.
    fn after_colon(&self, entry: &Entry) -> Option<usize> {
        let start = self.offset(entry.line, entry.column)?;
        let rest = self.text.get(start..)?;
        let name = if rest.starts_with(['"', '\'']) { quoted_end(rest)? } else { entry.name.len() };
        let between = rest.get(name..)?;
        let colon = between.strip_prefix([' ', '\t']).map_or(between, str::trim_start).strip_prefix(':')?;
        Some(start + rest.len() - colon.len())
    }

    /// Returns the bytes of a value that stands in the line of its key; an empty range if there is none.
    fn value_range(&self, entry: &Entry, in_flow: bool) -> Option<Range<usize>> {
        let colon = self.after_colon(entry)?;
        let rest = self.text.get(colon..self.line_end(colon))?;
        let value = rest.trim_start();
        if value.is_empty() || value.starts_with('#') {
            return (entry.node.content == Content::Scalar(Value::Null)).then_some(colon..colon);
        }
        let start = colon + rest.len() - value.len();
        Some(start..start + value_length(value, in_flow)?)
    }

    fn replacement(&self, entry: &Entry, in_flow: bool, value: &Value) -> Option<Splice> {
        let range = self.value_range(entry, in_flow)?;
        let old = self.text.get(range.clone())?;
        let new = match (value, old.chars().next()) {
            // The quotes of the file are kept.
            (Value::String(text), Some('\'')) if !text.chars().any(char::is_control) => {
                format!("'{}'", text.replace('\'', "''"))
            }
            (Value::String(text), Some('"')) => Value::from(text.as_str()).to_string(),
            (value, Some(_)) => flow(value),
            (value, None) => format!(" {}", flow(value)),
        };
        Some(Splice { range, with: new })
    }

    /// Returns the change that adds the keys `missing` to the map of `parent`, or to the document.
    fn insertion(
        &self,
        parent: Option<&Entry>,
        in_flow: bool,
        missing: &[&str],
        value: &Value,
    ) -> Option<Splice> {
        let map = parent.map_or(&self.root, |parent| &parent.node);
        match &map.content {
            Content::Map(keys) if in_flow => self.flow_insertion(map, keys.is_empty(), missing, value),
            Content::Map(keys) => {
                let first = keys.first()?;
                let indent = usize::try_from(first.column).ok()?.checked_sub(1)?;
                self.lines_after(self.last_line(first.line, indent), indent, missing, value)
            }
            Content::Scalar(Value::Null) if !in_flow => match parent {
                Some(parent) if self.value_range(parent, false)?.is_empty() => {
                    let indent = usize::try_from(parent.column).ok()? - 1 + INDENT;
                    self.lines_after(parent.line, indent, missing, value)
                }
                Some(_) => None,
                None => {
                    let lines = self.text.lines().count();
                    self.lines_after(u64::try_from(lines).ok()?, 0, missing, value)
                }
            },
            _ => None,
        }
    }

    /// Adds keys before the closing brace of a map.
    fn flow_insertion(&self, map: &Node, is_empty: bool, missing: &[&str], value: &Value) -> Option<Splice> {
        let start = self.offset(map.line, map.column)?;
        let text = self.text.get(start..)?;
        let inner = text.get(..value_length(text, true)?)?.strip_suffix('}')?.trim_end();
        let separator = match inner.chars().last()? {
            _ if is_empty => "",
            ',' => " ",
            _ => ", ",
        };
        let (last, groups) = missing.split_last()?;
        let entry = format!("{}: {}", name(last), flow(value));
        let entry = groups.iter().rev().fold(entry, |inner, group| format!("{}: {{{inner}}}", name(group)));
        let at = start + inner.len();
        Some(Splice { range: at..at, with: format!("{separator}{entry}") })
    }

    /// Adds an item to a list: before its closing bracket, or in a line of its own.
    fn item_after(&self, list: &Node, item: &Value) -> Option<Splice> {
        let Content::List(items) = &list.content else { return None };
        let start = self.offset(list.line, list.column)?;
        let text = self.text.get(start..)?;
        if text.starts_with('[') {
            let inner = text.get(..bracket_end(text)?)?.strip_suffix(']')?.trim_end();
            let separator = match inner.chars().last()? {
                '[' if items.is_empty() => "",
                ',' => " ",
                _ => ", ",
            };
            let at = start + inner.len();
            return Some(Splice { range: at..at, with: format!("{separator}{}", flow(item)) });
        }
        let first = items.first()?.line;
        let line = self.text.get(self.line_start(first)?..)?;
        let indent = line.len() - line.trim_start_matches(' ').len();
        if !line.trim_start().starts_with("- ") {
            return None;
        }
        let mut last = first;
        for (number, line) in (1..).zip(self.text.lines()).filter(|(number, _)| *number > first) {
            let content = line.trim_start();
            let is_item = line.len() - content.len() == indent && content.starts_with('-');
            match content {
                "" => {}
                comment if comment.starts_with('#') => {}
                _ if is_item || line.len() - content.len() > indent => last = number,
                _ => break,
            }
        }
        Some(self.line_after(last, &format!("{:indent$}- {}", "", flow(item))))
    }

    /// Adds keys in lines of their own after `line`; after line 0, at the start.
    fn lines_after(&self, line: u64, indent: usize, missing: &[&str], value: &Value) -> Option<Splice> {
        let line_break = self.line_break();
        let (last, groups) = missing.split_last()?;
        let mut with = String::new();
        for (depth, group) in groups.iter().enumerate() {
            let spaces = indent + depth * INDENT;
            let _infallible = write!(with, "{:spaces$}{}:{line_break}", "", name(group));
        }
        let spaces = indent + groups.len() * INDENT;
        let _infallible = match value {
            // Maps are read and removed by their lines.
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let item =
                    |item| format!("{line_break}{:items$}- {}", "", flow(item), items = spaces + INDENT);
                write!(with, "{:spaces$}{}:{}", "", name(last), items.iter().map(item).collect::<String>())
            }
            value => write!(with, "{:spaces$}{}: {}", "", name(last), flow(value)),
        };
        Some(self.line_after(line, &with))
    }

    /// Adds a line, or several without the end of the last, after `line`; after line 0, at the start.
    fn line_after(&self, line: u64, new: &str) -> Splice {
        let line_break = self.line_break();
        let at = self.line_start(line + 1).unwrap_or(self.text.len());
        let is_inside = self.text.get(..at).is_some_and(|text| !text.is_empty() && !text.ends_with('\n'));
        let before = if is_inside { line_break } else { "" };
        Splice { range: at..at, with: format!("{before}{new}{line_break}") }
    }

    /// Returns the last line of a block that begins at `first`: the lines after it that are indented by at least `indent` spaces, without comments at the end.
    fn last_line(&self, first: u64, indent: usize) -> u64 {
        let mut last = first;
        for (number, line) in (1..).zip(self.text.lines()).filter(|(number, _)| *number > first) {
            let content = line.trim_start();
            let is_end = line.len() - content.len() < indent || matches!(line, "---" | "...");
            match content {
                "" => {}
                comment if comment.starts_with('#') => {}
                _ if is_end => break,
                _ => last = number,
            }
        }
        last
    }

    /// Returns the text without the entry at `depth`; `None` if it cannot be removed alone.
    fn without(&self, entries: &[&Entry], depth: usize) -> Option<String> {
        let entry = entries.get(depth)?;
        let map = match depth.checked_sub(1) {
            Some(above) => &entries.get(above)?.node,
            None => &self.root,
        };
        let range = if self.is_flow(map) { self.flow_range(map, entry)? } else { self.block_range(entry)? };
        let is_comment = |line: &str| line.trim_start().starts_with('#');
        let is_group = depth + 1 < entries.len();
        let has_comment = self.text.get(range.clone())?.lines().any(is_comment);
        (!(is_group && has_comment)).then(|| self.applied(&Splice { range, with: String::new() }))
    }

    /// Returns the lines of an entry.
    fn block_range(&self, entry: &Entry) -> Option<Range<usize>> {
        let (start, key) = (self.line_start(entry.line)?, self.offset(entry.line, entry.column)?);
        let before = self.text.get(start..key)?;
        let indent = before.len();
        let mut last = self.last_line(entry.line, indent + 1);
        if matches!(entry.node.content, Content::List(_)) {
            // The items of a list may stand below the first letter of its key.
            let items = |line: &&str| line.get(indent..).is_some_and(|rest| rest.starts_with("- "));
            let next = usize::try_from(last).ok()?;
            if self.text.lines().nth(next).as_ref().is_some_and(items) {
                let count = self.text.lines().skip(next).take_while(items).count();
                last += u64::try_from(count).ok()?;
            }
        }
        before.trim().is_empty().then(|| start..self.line_start(last + 1).unwrap_or(self.text.len()))
    }

    /// Returns the bytes of an entry of a map in braces, with one comma.
    fn flow_range(&self, map: &Node, entry: &Entry) -> Option<Range<usize>> {
        let Content::Map(keys) = &map.content else { return None };
        let index = keys.iter().position(|key| key.name == entry.name)?;
        let start = self.offset(entry.line, entry.column)?;
        if let Some(next) = keys.get(index + 1) {
            return Some(start..self.offset(next.line, next.column)?);
        }
        let end = self.value_range(entry, true)?.end;
        match index.checked_sub(1).and_then(|before| keys.get(before)) {
            Some(before) => Some(self.value_range(before, true)?.end..end),
            None => Some(start..end),
        }
    }
}

/// Returns the entries on the way to `names`, as far as they exist.
fn entries_of<'a>(root: &'a Node, names: &[&str]) -> Vec<&'a Entry> {
    let (mut node, mut found) = (root, Vec::new());
    for name in names {
        let Content::Map(keys) = &node.content else { break };
        let Some(entry) = keys.iter().find(|entry| entry.name == *name) else { break };
        found.push(entry);
        node = &entry.node;
    }
    found
}

/// Returns the length in bytes of the value at the start of `text`, if it ends in the same line.
fn value_length(text: &str, in_flow: bool) -> Option<usize> {
    let line = text.lines().next().unwrap_or_default();
    match line.chars().next()? {
        '"' | '\'' => quoted_end(line),
        '[' | '{' => bracket_end(line),
        '|' | '>' | '&' | '*' | '!' => None,
        _ => {
            let comment = [" #", "\t#"].iter().filter_map(|begin| line.find(begin)).min();
            let end = comment.unwrap_or(line.len());
            let end = if in_flow { line.find([',', ']', '}']).map_or(end, |at| at.min(end)) } else { end };
            Some(line.get(..end)?.trim_end().len())
        }
    }
}

/// Returns the end of the quoted text at the start of `line`.
fn quoted_end(line: &str) -> Option<usize> {
    let quote = line.chars().next()?;
    let mut characters = line.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if quote == '"' => {
                characters.next();
            }
            '\'' if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == quote) => {
                characters.next();
            }
            end if end == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns the end of the list or map in brackets at the start of `line`.
fn bracket_end(line: &str) -> Option<usize> {
    let (mut depth, mut at, mut before) = (0_usize, 0, ' ');
    while let Some(character) = line.get(at..)?.chars().next() {
        let begins_value = matches!(before, '[' | '{' | ',' | ':');
        match character {
            '"' | '\'' if begins_value => at += quoted_end(line.get(at..)?)?,
            _ => at += character.len_utf8(),
        }
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = if character.is_whitespace() { before } else { character };
    }
    None
}

/// Returns a value in one line; text is quoted only where it needs quotes.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(keys) => {
            let entry = |(key, value): (&String, &Value)| format!("{}: {}", name(key), flow(value));
            format!("{{{}}}", keys.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => plain(text).unwrap_or_else(|| value.to_string()),
        scalar => scalar.to_string(),
    }
}

/// Returns a text without quotes if it is the same text then.
fn plain(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+".contains(c);
    let may_be = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '/');
    let parsed = (may_be && text.chars().all(is_plain)).then(|| yaml::parse(text).ok()).flatten()?;
    (parsed.content == Content::Scalar(text.into())).then(|| text.to_owned())
}

fn name(text: &str) -> String {
    flow(&Value::from(text))
}

fn insert(value: &mut Value, names: &[&str], new: Value) {
    let Some((first, rest)) = names.split_first() else {
        *value = new;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Value::Object(keys) = value {
        insert(keys.entry(*first).or_insert(Value::Null), rest, new);
    }
}

fn remove(value: &mut Value, names: &[&str]) {
    match (value, names) {
        (Value::Object(keys), [last]) => drop(keys.shift_remove(*last)),
        (Value::Object(keys), [first, rest @ ..]) => {
            if let Some(inner) = keys.get_mut(*first) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

/// Returns a value in which each map without keys is null: a group without keys is written in both ways.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(keys) if keys.is_empty() => Value::Null,
        Value::Object(keys) => {
            Value::Object(keys.into_iter().map(|(name, value)| (name, without_empty(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
#[path = "yaml_edit_tests.rs"]
mod tests;
