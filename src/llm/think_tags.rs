//! Splits reasoning in tags at the start of a text from the answer, if the server did not parse it.

/// Known tags: most models, some of `Qwen`, `EXAONE`.
const TAGS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")];

/// A classified piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Reasoning.
    Thinking(String),
    /// The answer.
    Text(String),
}

/// Splits a streamed text into reasoning and answer.
#[derive(Debug, Default)]
pub struct ThinkTagSplitter {
    state: State,
    /// Text that could still be part of a tag.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    /// Within reasoning that ends with this tag.
    Thinking(&'static str),
    /// After the reasoning; line breaks here do not belong to the answer.
    After,
    Text,
}

impl ThinkTagSplitter {
    /// Adds the next piece and returns the pieces that are decided.
    pub fn push(&mut self, piece: &str) -> Vec<Piece> {
        self.held.push_str(piece);
        let mut pieces = Vec::new();
        if self.state == State::Before {
            self.detect_opening_tag();
        }
        if let State::Thinking(end) = self.state {
            let (thinking, over) = match self.held.find(end) {
                Some(at) => (at, Some(at + end.len())),
                None => (self.held.len() - partial_tag_len(&self.held, end), None),
            };
            let rest = self.held.split_off(over.unwrap_or(thinking));
            self.held.truncate(thinking);
            pieces.push(Piece::Thinking(std::mem::replace(&mut self.held, rest)));
            if over.is_some() {
                self.state = State::After;
            }
        }
        if self.state == State::After {
            self.held = self.held.trim_start().to_owned();
            if !self.held.is_empty() {
                self.state = State::Text;
            }
        }
        if self.state == State::Text {
            pieces.push(Piece::Text(std::mem::take(&mut self.held)));
        }
        pieces
    }

    /// Checks whether all following text belongs to the answer.
    pub fn is_over(&self) -> bool {
        self.state == State::Text
    }

    /// Returns the remaining text at the end of the stream.
    pub fn finish(self) -> Option<Piece> {
        match self.state {
            _ if self.held.is_empty() => None,
            State::Thinking(_) => Some(Piece::Thinking(self.held)),
            State::Before | State::After | State::Text => Some(Piece::Text(self.held)),
        }
    }

    /// Detects an opening tag at the start of the text, once enough text has arrived.
    fn detect_opening_tag(&mut self) {
        let text = self.held.trim_start();
        if let Some((begin, end)) = TAGS.iter().find(|(begin, _)| text.starts_with(begin)) {
            self.state = State::Thinking(end);
            self.held = text.split_at(begin.len()).1.to_owned();
        } else if !TAGS.iter().any(|(begin, _)| begin.starts_with(text)) {
            self.state = State::Text;
        }
    }
}

/// Returns how many bytes at the end of `text` are a prefix of `mark`, which is ASCII.
fn partial_tag_len(text: &str, mark: &str) -> usize {
    (1..mark.len())
        .rev()
        .find(|length| mark.get(..*length).is_some_and(|begun| text.ends_with(begun)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits a text that arrives in these pieces into reasoning and answer.
    fn divided<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let (mut tags, mut thinking, mut text) = (ThinkTagSplitter::default(), String::new(), String::new());
        let mut all: Vec<_> = pieces.into_iter().flat_map(|piece| tags.push(piece)).collect();
        all.extend(tags.finish());
        for piece in all {
            match piece {
                Piece::Thinking(piece) => thinking.push_str(&piece),
                Piece::Text(piece) => text.push_str(&piece),
            }
        }
        (thinking, text)
    }

    #[test]
    fn reasoning_at_the_beginning_is_told_apart_and_other_tags_are_text() {
        for (whole, thinking, text) in [
            ("<think>\nhm</think>\n\nok", "\nhm", "ok"),
            ("\n<thought>hm < 1</thought>ok</think>", "hm < 1", "ok</think>"),
            ("<think></think>ok", "", "ok"),
            ("<think>hm", "hm", ""),
            ("<thin", "", "<thin"),
            (" ok <think>x</think>", "", " ok <think>x</think>"),
            ("<tool_call>", "", "<tool_call>"),
        ] {
            assert_eq!(divided([whole]), (thinking.into(), text.into()), "{whole}");
        }
    }

    proptest! {
        #[test]
        fn the_division_does_not_depend_on_the_pieces(
            whole in "[ \n]{0,2}(<think>|<thinking>|<thi|a)?[a-zé<\n]{0,6}(</think>|</think|</)?[ \né<]{0,4}",
            cuts in prop::collection::vec(0..40_usize, 0..6),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| whole.is_char_boundary(*cut)).collect();
            cuts.extend([0, whole.len()]);
            cuts.retain(|cut| *cut <= whole.len());
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]);
            prop_assert_eq!(divided(pieces), divided([whole.as_str()]));
        }
    }
}
