//! The workspace by its names: the one in the journal, that of the copy in which calls are done again, and its own.

/// The names of the workspace.
#[derive(Debug)]
pub struct WorkspacePaths {
    /// In the journal.
    pub recorded: String,
    /// Of the copy.
    pub copy: String,
    /// Of the workspace itself.
    pub present: String,
}

impl WorkspacePaths {
    /// The arguments of a call, a JSON text, with the name of the copy in place of the recorded one.
    pub fn to_copy(&self, arguments: &str) -> String {
        renamed(arguments, &in_json(&self.recorded), &in_json(&self.copy))
    }

    /// What a call answers, with the recorded name in place of the others.
    pub fn to_recorded(&self, text: &str) -> String {
        renamed(&renamed(text, &self.copy, &self.recorded), &self.present, &self.recorded)
    }
}

/// `path` as it stands inside a JSON string.
fn in_json(path: &str) -> String {
    let text = serde_json::Value::from(path).to_string();
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inside.unwrap_or(path).to_owned()
}

/// `text` with `to` wherever the directory `from` is named, and not a part of another name. A root is in every name.
fn renamed(text: &str, from: &str, to: &str) -> String {
    if from.len() < 2 || from == to {
        return text.to_owned();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(from) {
        out.push_str(before);
        let is_whole = !out.ends_with(is_of_name) && !goes_on(after);
        out.push_str(if is_whole { to } else { from });
        rest = after;
    }
    out + rest
}

/// Whether a name goes on with `rest`; a dot at its end is that of a sentence.
fn goes_on(rest: &str) -> bool {
    rest.trim_start_matches('.').starts_with(|c| is_of_name(c) && c != '.')
}

fn is_of_name(c: char) -> bool {
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
    fn every_name_becomes_the_recorded_one() {
        let told = "file:///copy/ws/a, /now/ws: /then/ws.\n";
        assert_eq!(places().to_recorded(told), "file:///then/ws/a, /then/ws: /then/ws.\n");
    }

    #[test]
    fn a_name_that_is_no_directory_of_its_own_stays() {
        let root = WorkspacePaths { recorded: "/".into(), ..places() };
        assert_eq!(root.to_copy("ls / /a"), "ls / /a");
        let quoted = WorkspacePaths { recorded: "/a \"b\"".into(), ..places() };
        assert_eq!(quoted.to_copy(r#"{"path":"/a \"b\"/c"}"#), r#"{"path":"/copy/ws/c"}"#);
    }
}
