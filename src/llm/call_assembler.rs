//! Assembles tool calls from their deltas and tolerates irregular indexes, ids and names.

use crate::LlmError;
use serde_json::Value;

/// Limit on the arguments of one call, in bytes: a file written in one call fits, an endless stream does not.
pub const ARGUMENTS_CAP: usize = 1024 * 1024;
/// Limit on an id or name, in bytes; some gateways pack signatures of a few KiB into ids.
pub const NAME_CAP: usize = 64 * 1024;
/// Limit on the calls of one answer that may run; real models make up to a dozen, a looping model makes thousands. One more call
/// is stored, so that the model can be informed that it and all later calls did not run.
pub const CALLS_CAP: usize = 128;

/// A piece of a call, or a whole call.
#[derive(Debug, Default)]
pub struct CallDelta<'a> {
    /// Index of the call within the answer, where the format numbers calls.
    pub index: Option<u64>,
    /// Id of the call, often only in its first piece; empty if absent.
    pub id: &'a str,
    /// Name of the tool, in the first piece or in every piece.
    pub name: &'a str,
    /// Piece of the arguments.
    pub arguments: &'a str,
    /// Data that the server expects back unmodified, such as Gemini's thought signature; null if absent.
    pub extra: Value,
}

/// A call whose pieces have all arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssembledCall {
    /// Id as the server sent it; may be empty.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as the model wrote them.
    pub arguments: String,
    /// Data that the server expects back unmodified; null if absent.
    pub extra: Value,
    index: Option<u64>,
    scanner: JsonScanner,
}

/// The calls of one answer received so far.
#[derive(Debug, Default)]
pub struct CallAssembler {
    joined: Vec<AssembledCall>,
    /// Whether there were more calls than are stored.
    has_excess_calls: bool,
    bytes: usize,
}

impl CallAssembler {
    /// Adds one piece to its call and returns the call's position in order of first appearance, or `None` for a call beyond
    /// the [`CALLS_CAP`] + 1 that are stored.
    ///
    /// # Errors
    /// When there are more than [`ARGUMENTS_CAP`] bytes of arguments, or an id or name is too long.
    pub fn add(&mut self, delta: CallDelta<'_>) -> Result<Option<usize>, LlmError> {
        let CallDelta { index, id, name, arguments, extra } = delta;
        if id.len() > NAME_CAP || name.len() > NAME_CAP {
            return Err(LlmError::too_large(format!(
                "the id or name of a tool call is longer than {} KiB",
                NAME_CAP / 1024
            )));
        }
        let known = self.find(index, id);
        if let Some((at, call)) = known
            && call.is_repeated(index, id, name, arguments)
        {
            return Ok(Some(at));
        }
        let known = known.filter(|(_, call)| !call.starts_other_call(id, name, arguments));
        let at = known.map_or(self.joined.len(), |(at, _)| at);
        self.has_excess_calls |= at > CALLS_CAP;
        if self.has_excess_calls && at >= CALLS_CAP {
            return Ok(None);
        }
        if at == self.joined.len() {
            self.joined.push(AssembledCall { index, ..AssembledCall::default() });
        }
        let Some(call) = self.joined.get_mut(at) else { return Ok(None) };
        if call.arguments.len() + arguments.len() > ARGUMENTS_CAP {
            let cap = ARGUMENTS_CAP / 1024 / 1024;
            return Err(LlmError::too_large(format!(
                "the arguments of a tool call are longer than {cap} MiB"
            )));
        }
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
            self.bytes += id.len();
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
            self.bytes += name.len();
        }
        if !extra.is_null() {
            call.extra = extra;
        }
        if call.has_empty_arguments() && !arguments.trim().is_empty() {
            self.bytes -= call.arguments.len();
            call.arguments.clear();
            call.scanner = JsonScanner::default();
        }
        call.scanner.read(arguments);
        call.arguments.push_str(arguments);
        self.bytes += arguments.len();
        Ok(Some(at))
    }

    /// Returns the number of bytes of all ids, names and arguments.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the calls in order of first appearance.
    pub fn into_calls(self) -> Vec<AssembledCall> {
        self.joined
    }

    /// Returns the latest call with the index; without an index, the call with the id; without either, the latest call.
    fn find(&self, index: Option<u64>, id: &str) -> Option<(usize, &AssembledCall)> {
        self.joined.iter().enumerate().rev().find(|(_, call)| match index {
            Some(_) => call.index == index,
            None => id.is_empty() || call.id == id,
        })
    }
}

impl AssembledCall {
    /// Creates a call that arrived in one piece and without an id.
    pub fn whole(name: String, arguments: String) -> Self {
        Self { name, arguments, ..Self::default() }
    }

    /// Checks whether a piece repeats this whole call. Some gateways end a call by sending all of it again; it must not run twice.
    /// Without an id, the index identifies the call.
    fn is_repeated(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> bool {
        let same_id = if id.is_empty() { index.is_some() } else { id == self.id };
        same_id && name == self.name && arguments == self.arguments && self.scanner.is_complete()
    }

    /// Checks whether the arguments are present but empty: some gateways start a call that way and then send the real arguments.
    fn has_empty_arguments(&self) -> bool {
        self.arguments.trim() == "{}"
    }

    /// Checks whether a piece that names this call's index starts another call all the same.
    ///
    /// Some servers (Ollama) send whole calls which all have index 0; some gateways change the id or repeat the name
    /// from piece to piece. A piece starts another call if it has a name and this call is already whole, or if neither
    /// id nor name match. A call that is whole only because its arguments are empty so far is continued by a piece with
    /// its own id, or by arguments that are not whole by themselves.
    fn starts_other_call(&self, id: &str, name: &str, arguments: &str) -> bool {
        let other_id = !id.is_empty() && !self.id.is_empty() && id != self.id;
        let other_name = !name.is_empty() && !self.name.is_empty() && name != self.name;
        let goes_on = self.has_empty_arguments()
            && !other_id
            && !other_name
            && (!id.is_empty() && !self.id.is_empty() || !JsonScanner::of(arguments).is_complete());
        let complete = self.scanner.is_complete() && !name.is_empty() && !goes_on;
        (other_id && other_name) || (complete && (other_id || other_name || !arguments.trim().is_empty()))
    }
}

/// Incremental scanner that detects the end of a JSON object; it reads each piece once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct JsonScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl JsonScanner {
    fn of(text: &str) -> Self {
        let mut scanner = Self::default();
        scanner.read(text);
        scanner
    }

    fn read(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                }
                _ => {}
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.closed && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::failure::FailureKind;
    use serde_json::json;

    fn joined(deltas: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = CallAssembler::default();
        for delta in deltas {
            calls.add(read(delta)).unwrap();
        }
        calls.into_calls().into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn read(delta: &Value) -> CallDelta<'_> {
        let text = |pointer: &str| delta.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        CallDelta {
            index: delta["index"].as_u64(),
            id: text("/id"),
            name: text("/function/name"),
            arguments: text("/function/arguments"),
            extra: Value::Null,
        }
    }

    fn delta(index: u64, id: &str, name: &str, arguments: &str) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn o07_pieces_are_joined_by_index_even_interleaved() {
        let deltas = [
            delta(0, "a", "read", ""),
            delta(1, "b", "list", "{\"d\""),
            json!({"index": 0, "function": {"arguments": "{\"p\":"}}),
            json!({"index": 1, "function": {"arguments": ":1}"}}),
            json!({"index": 0, "function": {"arguments": "2}"}}),
        ];
        assert_eq!(joined(&deltas), [call("a", "read", "{\"p\":2}"), call("b", "list", "{\"d\":1}")]);
    }

    #[test]
    fn a_changing_id_and_a_repeated_name_stay_one_call() {
        let deltas =
            [delta(0, "a", "read", ""), delta(0, "b", "read", "{\"p\""), delta(0, "c", "read", ":{}}")];
        assert_eq!(joined(&deltas), [call("a", "read", "{\"p\":{}}")]);
    }

    #[test]
    fn whole_calls_that_all_have_index_0_stay_apart() {
        let deltas = [
            delta(0, "a", "read", "{\"p\":1}"),
            delta(0, "b", "read", "{\"p\":1}"),
            delta(0, "c", "ls", "{}"),
        ];
        let expected =
            [call("a", "read", "{\"p\":1}"), call("b", "read", "{\"p\":1}"), call("c", "ls", "{}")];
        assert_eq!(joined(&deltas), expected);
        let deltas = [delta(0, "", "read", "{\"p\":1}"), delta(0, "", "read", "{\"p\":2}")];
        assert_eq!(joined(&deltas).len(), 2);
    }

    #[test]
    fn pieces_without_an_index_follow_their_id_or_the_latest_call() {
        let deltas = [
            json!({"id": "a", "function": {"name": "read", "arguments": "{\"p\":"}}),
            json!({"function": {"arguments": "1}"}}),
            json!({"id": "b", "function": {"name": "list", "arguments": "{}"}}),
        ];
        assert_eq!(joined(&deltas), [call("a", "read", "{\"p\":1}"), call("b", "list", "{}")]);
    }

    #[test]
    fn calls_and_arguments_are_bounded() {
        let mut calls = CallAssembler::default();
        let piece = "x".repeat(ARGUMENTS_CAP / 2 + 1);
        let mut add = |index: u64, arguments: &str| calls.add(read(&delta(index, "", "read", arguments)));
        add(0, &piece).unwrap();
        assert_eq!(add(0, &piece).unwrap_err().kind, FailureKind::Malformed);
    }

    #[test]
    fn of_a_hundred_thousand_calls_the_first_and_one_more_are_kept() {
        for index in [Some(0), None] {
            let mut calls = CallAssembler::default();
            for number in 0..100_000 {
                let (id, arguments) = (format!("c{number}"), format!("{{\"n\":{number}}}"));
                let at =
                    calls.add(CallDelta { index, id: &id, name: "read", ..CallDelta::default() }).unwrap();
                assert_eq!(at, (number <= CALLS_CAP).then_some(number));
                calls.add(CallDelta { index, arguments: &arguments, ..CallDelta::default() }).unwrap();
            }
            let joined = calls.into_calls();
            assert_eq!(joined.len(), CALLS_CAP + 1);
            for (number, call) in joined.iter().enumerate() {
                assert_eq!(call.arguments, format!("{{\"n\":{number}}}"));
            }
        }
    }

    #[test]
    fn a_whole_call_that_is_sent_once_more_is_one_call() {
        let whole = delta(0, "a", "read", "{\"p\":1}");
        let pieces = [delta(0, "a", "read", "{\"p\""), json!({"index": 0, "function": {"arguments": ":1}"}})];
        assert_eq!(joined(&[whole.clone(), whole.clone()]), [call("a", "read", "{\"p\":1}")]);
        assert_eq!(joined(&[&pieces[..], &[whole]].concat()), [call("a", "read", "{\"p\":1}")]);
        let without_id = delta(0, "", "read", "{\"p\":1}");
        assert_eq!(joined(&[without_id.clone(), without_id.clone()]), [call("", "read", "{\"p\":1}")]);
        assert_eq!(joined(&[&pieces[..], &[without_id]].concat()), [call("a", "read", "{\"p\":1}")]);
        let unnumbered = json!({"function": {"name": "read", "arguments": "{}"}});
        assert_eq!(joined(&[unnumbered.clone(), unnumbered]).len(), 2, "nothing says that they are one");
    }

    #[test]
    fn empty_arguments_before_the_real_ones_stand_for_nothing() {
        let rest = [
            json!({"index": 0, "function": {"arguments": "{\"p\""}}),
            json!({"index": 0, "function": {"arguments": ":1}"}}),
        ];
        let named = [delta(0, "a", "read", "{\"p\""), delta(0, "a", "read", ":1}")];
        let whole = [delta(0, "a", "read", "{\"p\":1}")];
        for rest in [&rest[..], &named, &whole] {
            let deltas = [&[delta(0, "a", "read", "{}")], rest].concat();
            assert_eq!(joined(&deltas), [call("a", "read", "{\"p\":1}")], "{rest:?}");
        }
        let others =
            [delta(0, "", "ls", "{}"), delta(0, "", "ls", "{\"p\":1}"), delta(0, "", "read", "{\"p\"")];
        assert_eq!(joined(&others).len(), 3, "calls of their own");
    }
}
