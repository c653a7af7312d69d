//! Translates paths of the workspace between the journal, the copy for a replay, and the present workspace.

/// Root paths of the workspace.
#[derive(Debug)]
pub struct WorkspacePaths {
    /// The path in the journal.
    pub recorded: String,
    /// The path of the copy.
    pub copy: String,
    /// The path of the present workspace.
    pub present: String,
}

impl WorkspacePaths {
    /// Replaces the recorded path in the arguments of a call, a JSON text, with the path of the copy.
    pub fn to_copy(&self, arguments: &str) -> String {
        replace_path(arguments, &in_json(&self.recorded), &in_json(&self.copy))
    }

    /// Replaces the other paths in a result with the recorded one.
    pub fn to_recorded(&self, text: &str) -> String {
        replace_path(&replace_path(text, &self.copy, &self.recorded), &self.present, &self.recorded)
    }
}

/// Returns `path` as it is written in a JSON string.
fn in_json(path: &str) -> String {
    let text = serde_json::Value::from(path).to_string();
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inside.unwrap_or(path).to_owned()
}

/// Replaces the directory `from` in `text` with `to`, unless it is part of a longer name. A root directory is not replaced.
fn replace_path(text: &str, from: &str, to: &str) -> String {
    if from.len() < 2 || from == to {
        return text.to_owned();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(from) {
        out.push_str(before);
        let is_whole = !out.ends_with(is_name_char) && !continues_name(after);
        out.push_str(if is_whole { to } else { from });
        rest = after;
    }
    out + rest
}

/// Whether a name continues with `rest`; a dot at its end belongs to the sentence.
fn continues_name(rest: &str) -> bool {
    rest.trim_start_matches('.').starts_with(|c| is_name_char(c) && c != '.')
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> WorkspacePaths {
        WorkspacePaths { recorded: "/then/ws".into(), copy: "/copy/ws".into(), present: "/now/ws".into() }
    }

    #[test]
    fn the_directory_and_what_is_below_it_is_renamed_and_other_names_are_not() {
        let there = places().to_copy(
            r#"{"command":"cd /then/ws && ls /then/ws/a '/then/ws.' /then/ws2 /then/ws.bak /x/then/ws"}"#,
        );
        assert_eq!(
            there,
            r#"{"command":"cd /copy/ws && ls /copy/ws/a '/copy/ws.' /then/ws2 /then/ws.bak /x/then/ws"}"#
        );
    }

    #[test]
    fn every_path_becomes_the_recorded_one() {
        let told = "file:///copy/ws/a, /now/ws: /then/ws.\n";
        assert_eq!(places().to_recorded(told), "file:///then/ws/a, /then/ws: /then/ws.\n");
    }

    #[test]
    fn a_part_of_a_longer_name_is_not_replaced() {
        let root = WorkspacePaths { recorded: "/".into(), ..places() };
        assert_eq!(root.to_copy("ls / /a"), "ls / /a");
        let quoted = WorkspacePaths { recorded: "/a \"b\"".into(), ..places() };
        assert_eq!(quoted.to_copy(r#"{"path":"/a \"b\"/c"}"#), r#"{"path":"/copy/ws/c"}"#);
    }
}
