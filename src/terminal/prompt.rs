//! Prompts the user at the terminal: on standard error, answered with one key; a refusal may include a reason.
//!
//! Without a user at a terminal, the prompt is refused at once.

use super::input_line::InputLine;
use super::keys::{Keys, KeysOfAnswer, is_readable, wait_readable};
use super::live::InputView;
use super::markdown::hang;
use super::preview::{Preview, Row};
use super::sanitize::{columns, sanitize, truncate_middle};
use super::streams::{Style, Terminal};
use agent_core::language::Language;
use agent_messages::{self as messages, ApprovalKeys};
use agent_text::lines::one_line;
use rustix::event::Timespec;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, tcflush, tcgetattr, tcsetattr,
};
use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;
use terminput::{Event, KeyCode, KeyModifiers};
use tokio_util::sync::CancellationToken;

/// Invalid answers before the prompt counts as refused: a terminal that sends noise must not cause an endless loop.
const MAX_TRIES: usize = 20;
/// Maximum bytes read of an answer: the longest line that a terminal delivers (termios(3)).
const ANSWER_BYTES: usize = 4096;
/// Maximum characters of the user's reason that are sent to the model.
const REASON_CHARS: usize = 1000;
/// Maximum columns of the title, of the reason and of each note.
const TITLE_COLUMNS: usize = 300;
/// Maximum number of notes shown before the user asks for the whole.
const MAX_NOTES: usize = 6;
/// Answer that shows what the prompt has omitted.
const SHOW_ALL: &str = "v";
/// Answer that refuses, and asks for the reason.
const NO_BECAUSE: &str = "w";
/// Answer that approves for good; its small letter approves until the end.
const SAVE: &str = "A";
/// What Ctrl+D sends to a terminal that does not interpret it.
const END_OF_INPUT: &str = "\u{4}";
/// The key Escape, which arrives alone; the sequences of other keys begin with it.
const ESCAPE: &str = "\u{1b}";
/// Time without a key after which a question appears.
const QUIET: Duration = Duration::from_millis(500);
/// Time without another key after which a letter is an answer although a message is being written: people pause shorter within a word.
const ALONE: Duration = Duration::from_millis(600);
/// Text before an answer to a long question.
const ANSWER_PROMPT: &str = "> ";
/// Most rows of an answer that is typed.
const ANSWER_ROWS: usize = 4;
/// Rows of the screen for everything but the preview.
const ROWS_AROUND: u16 = 10;

/// A request for approval at the prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptQuestion<'a> {
    /// Language of the prompt.
    pub language: Language,
    /// The question, in one line.
    pub title: &'a str,
    /// Why approval is needed.
    pub reason: &'a str,
    /// Further information for the decision, one note per line.
    pub notes: &'a [String],
    /// The diff or the command, complete; shown shortened, with its size. A question that omits something cannot be answered
    /// with yes until the user has had it shown whole.
    pub preview: Option<&'a str>,
    /// What [`PromptAnswer::Always`] allows from then on; `None` if that answer is not offered.
    pub lasting: Option<&'a str>,
    /// What [`PromptAnswer::Save`] writes where; `None` if that answer is not offered.
    pub saved: Option<&'a str>,
}

/// Characters shown of a choice.
const CHOICE_CHARS: usize = 500;

/// Answer of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptAnswer {
    /// Approve the call.
    Yes,
    /// Approve the call, and what [`PromptQuestion::lasting`] describes.
    Always,
    /// Approve the call, and write what [`PromptQuestion::saved`] describes.
    Save,
    /// Refuse the call, with an optional reason; both are sent to the model and the run continues.
    No(Option<String>),
    /// End the run: Esc, `s`, end of input, or Ctrl+C.
    Abort,
}

impl Terminal {
    /// Checks whether a user can see and answer a prompt.
    pub fn can_ask(&self) -> bool {
        self.stream_info().stdin && self.stream_info().stderr
    }

    /// Returns what was typed before questions and is no answer to them, without control characters.
    pub fn take_typed(&self) -> String {
        std::mem::take(&mut *self.typed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks whether `preview` is what the user has just approved, and forgets it.
    pub fn was_approved(&self, preview: &str) -> bool {
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        approved.take_if(|approved| approved.trim_end() == preview.trim_end()).is_some()
    }

    /// Takes what was typed before a question, also a line without its end, from the terminal for
    /// [`take_typed`](Self::take_typed).
    fn keep_typed(&self) -> io::Result<()> {
        let modes = tcgetattr(io::stdin())?;
        let mut at_once = modes.clone();
        at_once.local_modes.remove(LocalModes::ICANON);
        for code in [SpecialCodeIndex::VMIN, SpecialCodeIndex::VTIME] {
            at_once.special_codes[code] = 0;
        }
        tcsetattr(io::stdin(), OptionalActions::Now, &at_once)?;
        let typed = take_line(io::stdin());
        // What was typed meanwhile is discarded.
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes)?;
        let typed = typed?.unwrap_or_default();
        let typed = typed.chars().filter(|c| *c == '\n' || !c.is_control());
        self.typed.lock().unwrap_or_else(PoisonError::into_inner).extend(typed);
        Ok(())
    }

    /// Shows the prompt and waits for an answer or for `cancel`. Input typed before the prompt is no answer; [`take_typed`](Self::take_typed)
    /// returns it. Without a user, refuses at once.
    pub async fn ask(&self, question: &PromptQuestion<'_>, cancel: &CancellationToken) -> PromptAnswer {
        if !self.can_ask() {
            return PromptAnswer::No(None);
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return PromptAnswer::Abort,
            () = self.until_quiet() => {}
        }
        let status = self.hide_status();
        let _open = OpenQuestion::new(self);
        let asked = async {
            // Wait until the editor of the input has stopped reading, because it would read the answer.
            let _reading = self.reading.lock().await;
            self.ask_until_answered(question).await
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => PromptAnswer::Abort,
            answer = self.and_call(asked) => answer.unwrap_or(PromptAnswer::Abort),
        };
        if matches!(answer, PromptAnswer::Yes | PromptAnswer::Always | PromptAnswer::Save) {
            let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
            *approved = question.preview.map(str::to_owned);
            if let Some(label) = status {
                self.show_status(&label);
            }
        }
        answer
    }

    /// Asks for a line of text and waits for it or for `cancel`. `None` at the end of the input, without a user, and when
    /// cancelled.
    pub async fn ask_text(&self, prompt: &str, cancel: &CancellationToken) -> Option<String> {
        self.ask_choice(prompt, &[], cancel).await
    }

    /// Asks as [`ask_text`](Self::ask_text) does, for one of `choices` or a line of text: the arrows and Enter, or its number, choose.
    pub async fn ask_choice(
        &self,
        prompt: &str,
        choices: &[String],
        cancel: &CancellationToken,
    ) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            () = self.until_quiet() => {}
        }
        let status = self.hide_status();
        let _open = OpenQuestion::new(self);
        let asked = async {
            let _reading = self.reading.lock().await;
            self.keep_typed()?;
            self.read_answer(prompt, choices).await
        };
        let line = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            line = self.and_call(asked) => line.ok().flatten(),
        };
        if let Some(label) = status {
            self.show_status(&label);
        }
        line
    }

    /// Waits for `answer`, and calls the user who does not give it soon.
    async fn and_call<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = std::pin::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    self.forget_call();
                    return answer;
                }
                () = self.until_call() => {}
            }
        }
    }

    /// Waits until the user has not typed for a moment: what is being typed is no answer to a question that appears meanwhile.
    async fn until_quiet(&self) {
        loop {
            match self.since_last_key().and_then(|idle| QUIET.checked_sub(idle)) {
                Some(rest) if rest > Duration::ZERO => tokio::time::sleep(rest).await,
                _ => return,
            }
        }
    }

    /// Reads a line that the user edits after `prompt`; `None` at the end of the input and after Esc.
    async fn read_answer(&self, prompt: &str, choices: &[String]) -> io::Result<Option<String>> {
        if !self.has_icons() {
            for (number, choice) in (1..).zip(choices) {
                self.eprintln(Style::Bold, &messages::choice(number, &one_line(choice, CHOICE_CHARS)))?;
            }
            self.print_prompt(prompt)?;
            let line = read_line().await;
            self.end_prompt();
            return line.map(|line| line.map(|line| chosen(line, choices)));
        }
        let is_long = columns(prompt) > usize::from(self.width()) / 2;
        if is_long {
            self.eprintln(Style::Bold, prompt)?;
        }
        let prompt = if is_long { ANSWER_PROMPT } else { prompt };
        let keys = KeysOfAnswer::begin();
        let answer = self.edit_answer(prompt, choices).await;
        drop(keys);
        self.show_answer(None);
        if let Ok(Some(answer)) = &answer {
            self.eprintln(Style::Bold, &format!("{prompt}{answer}"))?;
        }
        answer
    }

    async fn edit_answer(&self, prompt: &str, choices: &[String]) -> io::Result<Option<String>> {
        let (mut line, mut keys) = (InputLine::default(), Keys::default());
        // Enter that was meant for something else answers nothing.
        let mut marked: Option<usize> = None;
        loop {
            let (rows, cursor) = line.rows(prompt, usize::from(self.width()), ANSWER_ROWS);
            let width = usize::from(self.width());
            let below = choice_rows(choices, marked.filter(|_| line.is_empty()), width);
            self.show_answer(Some(InputView { rows, cursor, below }));
            match keys.next().await? {
                Some(Event::Paste(text)) => line.paste(&text),
                Some(Event::Key(key)) => match key.code {
                    KeyCode::Up if line.is_empty() => {
                        marked = Some(marked.unwrap_or(choices.len()).saturating_sub(1));
                    }
                    KeyCode::Down if line.is_empty() => {
                        let next = marked.map_or(0, |at| at + 1);
                        marked = Some(next.min(choices.len().saturating_sub(1)));
                    }
                    KeyCode::Enter if line.is_empty() && !choices.is_empty() => {
                        if let Some(choice) = marked.and_then(|at| choices.get(at)) {
                            return Ok(Some(choice.clone()));
                        }
                    }
                    KeyCode::Enter => return Ok(Some(chosen(line.text(), choices))),
                    // Ctrl+J, the end of a line that a program types.
                    KeyCode::Char('j') if key.modifiers == KeyModifiers::CTRL => {
                        return Ok(Some(chosen(line.text(), choices)));
                    }
                    KeyCode::Esc => return Ok(None),
                    KeyCode::Char('d') if key.modifiers == KeyModifiers::CTRL && line.is_empty() => {
                        return Ok(None);
                    }
                    _ => {
                        line.press(key);
                    }
                },
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    async fn ask_until_answered(&self, question: &PromptQuestion<'_>) -> io::Result<PromptAnswer> {
        self.keep_typed()?;
        let mut is_cut = self.show_question(question)?;
        let mut tries = 0;
        while tries < MAX_TRIES {
            let choices = messages::prompt_choices(question.keys(), is_cut, question.language);
            let key = match self.read_key(choices).await? {
                Typed::Answer(key) => key,
                Typed::End => return Ok(PromptAnswer::Abort),
                Typed::Message(text) => {
                    // It stands in the input afterwards, and goes on.
                    self.has_draft.store(true, Ordering::Relaxed);
                    self.typed.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
                    continue;
                }
            };
            tries += 1;
            match key.trim().to_lowercase().as_str() {
                SHOW_ALL if is_cut => {
                    self.show_whole(question)?;
                    is_cut = false;
                    // What was typed before the end was shown is no answer to it.
                    tcflush(io::stdin(), QueueSelector::IFlush)?;
                    continue;
                }
                NO_BECAUSE => {
                    let why = self.read_answer(messages::prompt_why(question.language), &[]).await?;
                    let Some(why) = why.filter(|why| !why.contains(ESCAPE)) else { continue };
                    let why = one_line(why.trim(), REASON_CHARS);
                    return Ok(PromptAnswer::No((!why.is_empty()).then_some(why)));
                }
                _ => {}
            }
            match parse(&key) {
                Some(PromptAnswer::Always) if question.lasting.is_none() => {}
                Some(PromptAnswer::Save) if question.saved.is_none() => {
                    self.eprintln(Style::Warning, messages::prompt_no_such_key(question.language))?;
                }
                Some(PromptAnswer::Yes | PromptAnswer::Always | PromptAnswer::Save) if is_cut => {
                    self.eprintln(Style::Warning, messages::prompt_show_first(question.language))?;
                }
                Some(answer) => return Ok(answer),
                None => self.eprintln(Style::Warning, messages::prompt_no_such_key(question.language))?,
            }
        }
        self.eprintln(Style::Warning, messages::prompt_given_up(question.language))?;
        Ok(PromptAnswer::No(None))
    }

    /// Prints `choices` and reads what is typed, a key without Enter: all that arrives at once, so that pasted text is not taken for its first letter.
    /// A terminal without editing sends whole lines.
    async fn read_key(&self, choices: &str) -> io::Result<Typed> {
        if !self.has_icons() {
            self.print_prompt(choices)?;
            let line = read_line().await?;
            self.end_prompt();
            return Ok(line.map_or(Typed::End, Typed::Answer));
        }
        // Before the prompt: a key that answers it must not arrive while the terminal still collects a line.
        let keys = KeysOfAnswer::begin();
        self.print_prompt(choices)?;
        let typed = loop {
            let Some(key) = read_line().await?.filter(|key| key != END_OF_INPUT) else { break Typed::End };
            if let Some(pasted) = pasted(&key) {
                break Typed::Message(pasted);
            }
            if key == ESCAPE {
                break Typed::Answer(key);
            }
            // Arrows and other keys without a letter are no answer, and print nothing.
            let text = Keys::text(key.as_bytes());
            if text.is_empty() {
                continue;
            }
            // A sentence begins with a capital letter, and what is saved outlives the conversation.
            let may_be_message = text.starts_with(SAVE) || self.has_draft.load(Ordering::Relaxed);
            if !may_be_message || text.ends_with('\n') {
                break Typed::Answer(text);
            }
            break match typed_on().await? {
                None => Typed::End,
                Some(rest) if rest.is_empty() && text.chars().count() == 1 => Typed::Answer(text),
                Some(rest) if rest == ESCAPE => Typed::Answer(rest),
                // A letter that is removed again is no answer either.
                Some(rest) => Typed::Message(Keys::text(format!("{key}{rest}").as_bytes())),
            };
        };
        drop(keys);
        if let Typed::Answer(key) = &typed
            && key != ESCAPE
        {
            self.stream(Style::Plain, &one_line(key.trim(), REASON_CHARS))?;
        }
        self.end_line()?;
        Ok(typed)
    }

    /// Shows the question with as much of its preview as fits on the screen; returns whether something is left out.
    fn show_question(&self, question: &PromptQuestion<'_>) -> io::Result<bool> {
        // A command of one line stands in the question.
        let is_repeated =
            |text: &&str| text.trim().lines().count() == 1 && question.title.contains(text.trim());
        let preview = question.preview.filter(|text| !is_repeated(text));
        let preview = preview.map(|text| self.preview(text, ROWS_AROUND));
        self.eprintln(Style::Bold, &short(question.title))?;
        if let Some(preview) = &preview {
            self.eprint_rows(&preview.rows)?;
        }
        self.show_reasons(question, short, MAX_NOTES)?;
        Ok(question.is_head_cut() || preview.is_some_and(|preview| preview.is_cut))
    }

    /// Shows the question without omissions, and its shortened head below, next to the answer.
    fn show_whole(&self, question: &PromptQuestion<'_>) -> io::Result<()> {
        self.eprintln(Style::Bold, &complete(question.title))?;
        self.show_reasons(question, complete, usize::MAX)?;
        if let Some(text) = question.preview {
            self.eprint_rows(&Preview::whole(text).rows)?;
            self.eprintln(Style::Bold, &short(question.title))?;
            self.show_reasons(question, short, MAX_NOTES)?;
        }
        Ok(())
    }

    /// Writes why the user is asked, each text on a line in the form that `shown` gives it.
    fn show_reasons(
        &self,
        question: &PromptQuestion<'_>,
        shown: impl Fn(&str) -> String,
        max_notes: usize,
    ) -> io::Result<()> {
        let language = question.language;
        self.eprintln(Style::Dim, &messages::prompt_reason(&shown(question.reason), language))?;
        for note in question.notes.iter().take(max_notes) {
            self.eprintln(Style::Warning, &format!("   {}", shown(note)))?;
        }
        if let Some(more) = question.notes.len().checked_sub(max_notes).filter(|more| *more > 0) {
            self.eprintln(Style::Warning, &format!("   {}", messages::more_notes(more, language)))?;
        }
        let lasting = question.lasting.map(|lasting| messages::prompt_always(&shown(lasting), language));
        let saved = question.saved.map(|saved| messages::prompt_saves(&shown(saved), language));
        lasting.into_iter().chain(saved).try_for_each(|line| self.eprintln(Style::Dim, &line))
    }
}

impl PromptQuestion<'_> {
    fn keys(&self) -> ApprovalKeys {
        match (self.lasting, self.saved) {
            (None, _) => ApprovalKeys::Once,
            (Some(_), None) => ApprovalKeys::Always,
            (Some(_), Some(_)) => ApprovalKeys::ForGood,
        }
    }

    /// Checks whether the shortened question omits something besides its preview.
    fn is_head_cut(&self) -> bool {
        let notes = self.notes.iter().map(String::as_str);
        let approved = self.lasting.into_iter().chain(self.saved);
        let mut lines = [self.title, self.reason].into_iter().chain(approved).chain(notes);
        lines.any(|line| short(line) != complete(line)) || self.notes.len() > MAX_NOTES
    }
}

/// Returns a text on one bounded line.
fn short(text: &str) -> String {
    truncate_middle(&complete(text), TITLE_COLUMNS)
}

/// Returns a whole text on one line.
fn complete(text: &str) -> String {
    sanitize(&one_line(text, usize::MAX)).into_owned()
}

/// What was typed at a question.
enum Typed {
    /// An answer: a key, or a line.
    Answer(String),
    /// Text of the message that the user writes.
    Message(String),
    /// The end of the input.
    End,
}

/// Returns what is typed until there is no key for a while, with control characters; `None` at the end of the input.
async fn typed_on() -> io::Result<Option<String>> {
    let mut typed = String::new();
    loop {
        tokio::time::sleep(ALONE).await;
        if !is_readable(io::stdin(), &Timespec::default())? {
            return Ok(Some(typed));
        }
        match take_line(io::stdin())? {
            Some(more) => typed.push_str(&more),
            None => return Ok(None),
        }
    }
}

/// A question counts as open, and stands in the place of the input, until it is dropped, also when it is abandoned.
struct OpenQuestion<'a>(&'a Terminal);

impl<'a> OpenQuestion<'a> {
    fn new(terminal: &'a Terminal) -> Self {
        terminal.questions.send_modify(|open| *open = open.saturating_add(1));
        if *terminal.questions.borrow() == 1 {
            terminal.set_asking(true);
        }
        terminal.set_title(messages::TITLE_ASKS);
        terminal.call_user(messages::CALL_QUESTION);
        Self(terminal)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.questions.send_modify(|open| *open = open.saturating_sub(1));
        let is_last = *self.0.questions.borrow() == 0;
        self.0.set_asking(!is_last);
        if is_last {
            self.0.set_title(messages::TITLE_WORKS);
        }
    }
}

/// Returns the choice whose number was typed, or what was typed.
fn chosen(typed: String, choices: &[String]) -> String {
    let number = typed.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number.and_then(|at| choices.get(at)).cloned().unwrap_or(typed)
}

/// Returns the rows of choices on a screen of `width` columns, one of which Enter takes if it is marked.
fn choice_rows(choices: &[String], marked: Option<usize>, width: usize) -> Vec<Row> {
    let rows = |(at, choice): (usize, &String)| {
        let (style, mark) = if marked == Some(at) { (Style::Bold, "→") } else { (Style::Dim, " ") };
        let lead = (style.clone(), format!("{mark} {}  ", at + 1));
        hang(&vec![lead, (style, one_line(choice, CHOICE_CHARS))], width)
    };
    let hint = (!choices.is_empty()).then(|| vec![(Style::Dim, messages::CHOICE_KEYS.to_owned())]);
    choices.iter().enumerate().flat_map(rows).chain(hint).collect()
}

/// Returns the style of a line of a diff.
pub fn diff_style(line: &str) -> Style {
    match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => Style::Bold,
        [b'+', ..] => Style::Success,
        [b'-', ..] => Style::Error,
        [b'@', ..] => Style::Dim,
        _ => Style::Plain,
    }
}

/// Returns the text of a bracketed paste.
fn pasted(key: &str) -> Option<String> {
    let (_, text) = key.split_once("\u{1b}[200~")?;
    let text = text.split("\u{1b}[201~").next().unwrap_or_default();
    Some(text.replace('\r', "\n").chars().filter(|c| *c == '\n' || !c.is_control()).collect())
}

fn parse(line: &str) -> Option<PromptAnswer> {
    let (word, reason) = line.trim().split_once([' ', ',', ':']).unwrap_or((line.trim(), ""));
    let reason = one_line(reason.trim(), REASON_CHARS);
    match (word.to_lowercase().as_str(), reason.is_empty()) {
        (_, true) if word == SAVE => Some(PromptAnswer::Save),
        ("y" | "yes", true) => Some(PromptAnswer::Yes),
        ("a" | "always", true) => Some(PromptAnswer::Always),
        ("n" | "no", is_bare) => Some(PromptAnswer::No((!is_bare).then_some(reason))),
        ("s" | "stop" | ESCAPE, true) => Some(PromptAnswer::Abort),
        _ => None,
    }
}

/// Reads one line from the terminal; `None` at end of input. Dropping the future ends the wait: it drops the write end of a
/// pipe that the reading thread waits on together with the terminal.
pub(super) async fn read_line() -> io::Result<Option<String>> {
    let (gone, _held) = io::pipe()?;
    tokio::task::spawn_blocking(move || wait_for_line(io::stdin(), &gone)).await.map_err(io::Error::other)?
}

fn wait_for_line(input: impl AsFd, gone: &PipeReader) -> io::Result<Option<String>> {
    if wait_readable(&input, gone)? { take_line(&input) } else { Ok(None) }
}

fn take_line(input: impl AsFd) -> io::Result<Option<String>> {
    let mut line = [0_u8; ANSWER_BYTES];
    let length = rustix::io::read(&input, &mut line)?;
    let bytes = line.get(..length).unwrap_or_default();
    Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{StreamInfo, TerminalEnvironment};
    use std::io::Write;

    #[test]
    fn only_clear_answers_are_answers() {
        assert_eq!(parse(" Y\n"), Some(PromptAnswer::Yes));
        assert_eq!(parse("no\n"), Some(PromptAnswer::No(None)));
        assert_eq!(
            parse("N: use the library, please \n"),
            Some(PromptAnswer::No(Some("use the library, please".into())))
        );
        assert_eq!(parse("a\n"), Some(PromptAnswer::Always));
        assert_eq!(parse("Always\n"), Some(PromptAnswer::Always));
        assert_eq!(parse("A\n"), Some(PromptAnswer::Save));
        assert_eq!(parse("A: b\n"), None);
        assert_eq!(parse("yes but not now\n"), None);
        assert_eq!(parse("s no\n"), None);
        assert_eq!(parse("s\n"), Some(PromptAnswer::Abort));
        assert_eq!(parse("\n"), None);
        assert_eq!(parse("yn\n"), None);
    }

    #[test]
    fn a_line_the_end_of_input_and_a_dropped_question_end_the_wait() {
        let (gone, held) = io::pipe().unwrap();
        let (input, mut keyboard) = io::pipe().unwrap();
        keyboard.write_all(b"y\n").unwrap();
        assert_eq!(wait_for_line(&input, &gone).unwrap().as_deref(), Some("y\n"));
        drop(held);
        assert_eq!(wait_for_line(&input, &gone).unwrap(), None, "the question was dropped");
        let (gone, _held) = io::pipe().unwrap();
        drop(keyboard);
        assert_eq!(wait_for_line(&input, &gone).unwrap(), None, "end of input");
    }

    const QUESTION: PromptQuestion<'_> = PromptQuestion {
        language: Language::En,
        title: "run_command → ls",
        reason: "it runs",
        notes: &[],
        preview: None,
        lasting: None,
        saved: None,
    };

    fn terminal(info: StreamInfo) -> Terminal {
        Terminal::with_streams(
            info,
            &TerminalEnvironment::default(),
            Box::new(io::sink()),
            Box::new(io::sink()),
        )
    }

    #[tokio::test]
    async fn s03_without_a_terminal_the_answer_is_no_at_once() {
        for info in [StreamInfo::default(), StreamInfo { stderr: true, ..StreamInfo::default() }] {
            let answer = terminal(info).ask(&QUESTION, &CancellationToken::new()).await;
            assert_eq!(answer, PromptAnswer::No(None));
        }
    }

    #[tokio::test]
    async fn s04_a_cancelled_run_is_not_asked() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let info = StreamInfo { stdin: true, stderr: true, ..StreamInfo::default() };
        assert_eq!(terminal(info).ask(&QUESTION, &cancel).await, PromptAnswer::Abort);
    }
}
