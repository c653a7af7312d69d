//! The keyboard: the modes of the terminal in which it delivers each key, and the keys.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::collections::VecDeque;
use std::io::{self, PipeReader, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use terminput::{Event, KeyCode, KeyEvent, KeyModifiers};

/// Bytes read at once.
const READ_BYTES: usize = 4096;
/// Time in which the rest of a key's escape sequence arrives after its first byte; the key Escape sends that byte alone.
const REST_OF_SEQUENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 25_000_000 };
const ESCAPE: u8 = 0x1b;
/// Disables the special meaning of a key (`_POSIX_VDISABLE` of Linux).
const DISABLED: u8 = 0;
/// Begins and ends bracketed paste (xterm control sequences, DECSET 2004): pasted text arrives as one event.
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";
/// Also shows the cursor (DECSET 25).
const CURSOR_AND_PASTE_ON: &[u8] = b"\x1b[?25;2004h";

/// The keys that were read.
#[derive(Default)]
pub(super) struct Keys {
    ready: VecDeque<Event>,
    /// Bytes of a key that has not arrived whole.
    partial: Vec<u8>,
}

impl Keys {
    /// Waits for the next key or pasted text; `None` at the end of the input. A wait that is abandoned loses nothing.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let (gone, _held) = io::pipe()?;
            let ready = tokio::task::spawn_blocking(move || wait_readable(io::stdin(), &gone));
            if !ready.await.map_err(io::Error::other)?? || !self.read(io::stdin())? {
                return Ok(None);
            }
        }
    }

    /// Returns the text that `bytes` type or paste; keys without a letter have none, and Backspace removes one.
    pub fn text(bytes: &[u8]) -> String {
        let mut keys = Self::default();
        keys.push(bytes);
        let mut text = String::new();
        for event in keys.ready {
            match event {
                Event::Paste(pasted) => text.extend(pasted.chars().filter(|c| *c == '\n' || !c.is_control())),
                Event::Key(key) => match key.code {
                    KeyCode::Enter => text.push('\n'),
                    // Ctrl+J, the end of a line that a program types.
                    KeyCode::Char('j') if key.modifiers == KeyModifiers::CTRL => text.push('\n'),
                    KeyCode::Char(char) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => {
                        text.push(char);
                    }
                    KeyCode::Backspace => drop(text.pop()),
                    _ => {}
                },
                _ => {}
            }
        }
        text
    }

    /// Reads what has arrived; returns false at the end of the input.
    fn read(&mut self, input: impl AsFd) -> io::Result<bool> {
        let mut bytes = [0_u8; READ_BYTES];
        let length = rustix::io::read(&input, &mut bytes)?;
        let bytes = bytes.get(..length).unwrap_or_default();
        self.push(bytes);
        if self.partial == [ESCAPE] && is_readable(&input, &REST_OF_SEQUENCE)? {
            return self.read(input);
        }
        if self.partial == [ESCAPE] {
            self.partial.clear();
            self.ready.push_back(Event::Key(KeyEvent::new(KeyCode::Esc)));
        }
        Ok(length > 0)
    }

    /// Adds the keys that `bytes` complete.
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.partial.push(*byte);
            if self.partial == [ESCAPE] {
                continue;
            }
            match Event::parse_from(&self.partial) {
                Ok(None) => {}
                Ok(Some(event)) => {
                    self.partial.clear();
                    self.ready.push_back(event);
                }
                // Not a key: bytes that are no text are shown as such.
                Err(_) => {
                    let is_text = self.partial.first().is_some_and(|first| *first >= 0x80);
                    self.partial.clear();
                    if is_text {
                        self.ready
                            .push_back(Event::Key(KeyEvent::new(KeyCode::Char(char::REPLACEMENT_CHARACTER))));
                    }
                }
            }
        }
    }
}

/// Waits until input can be read; returns false when the write end of `gone` is dropped first.
pub(super) fn wait_readable(input: impl AsFd, gone: &PipeReader) -> io::Result<bool> {
    loop {
        let mut fds = [PollFd::new(&input, PollFlags::IN), PollFd::new(gone, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [typed, dropped] = fds.map(|fd| !fd.revents().is_empty());
        if dropped || typed {
            return Ok(!dropped);
        }
    }
}

/// Checks whether input can be read within `time`.
pub(super) fn is_readable(input: impl AsFd, time: &Timespec) -> io::Result<bool> {
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    Ok(poll(&mut fds, Some(time))? > 0)
}

/// Which keys send signals, in place of being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalKeys {
    /// None.
    None,
    /// Ctrl+C and Ctrl+\.
    Interrupt,
    /// Also Ctrl+Z.
    All,
}

/// The modes of the terminal of standard input before the conversation.
pub struct SavedModes {
    before: Option<Termios>,
    /// Whether pasted text is marked as such.
    marks_paste: AtomicBool,
}

impl SavedModes {
    /// Saves the present modes.
    pub fn save() -> Self {
        Self { before: tcgetattr(io::stdin()).ok(), marks_paste: AtomicBool::new(false) }
    }

    /// Delivers each key at once and unseen from now on, unless it sends a signal, and marks pasted text.
    pub(super) fn deliver_keys(&self, signals: SignalKeys) {
        if self.before.is_none() {
            return;
        }
        self.set_raw(signals);
        let marked = self.marks_paste.swap(true, Ordering::Relaxed);
        if signals == SignalKeys::None {
            drop(io::stderr().write_all(PASTE_ON));
        } else if !marked {
            drop(io::stderr().write_all(CURSOR_AND_PASTE_ON));
        }
    }

    /// Forgets that pasted text is marked, because another program has used the terminal.
    pub(super) fn forget(&self) {
        self.marks_paste.store(false, Ordering::Relaxed);
    }

    fn set_raw(&self, signals: SignalKeys) {
        let Some(before) = &self.before else { return };
        let mut modes = before.clone();
        modes.make_raw();
        // The program ends its lines as before.
        modes.output_modes = before.output_modes;
        modes.local_modes.set(LocalModes::ISIG, signals != SignalKeys::None);
        if signals == SignalKeys::Interrupt {
            modes.special_codes[SpecialCodeIndex::VSUSP] = DISABLED;
        }
        for (code, value) in [(SpecialCodeIndex::VMIN, 1), (SpecialCodeIndex::VTIME, 0)] {
            modes.special_codes[code] = value;
        }
        // A terminal that is gone is noticed by the next read.
        let _set = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }

    fn set_back(&self) {
        if let Some(modes) = &self.before {
            // A terminal that is gone needs no modes.
            let _restored = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }

    /// Restores the modes and ends bracketed paste.
    pub fn restore(&self) {
        if self.before.is_some() {
            self.set_back();
            self.forget();
            drop(io::stderr().write_all(PASTE_OFF));
        }
    }
}

/// Delivers each key of an answer at once and unseen, with signals, until the wait for the answer ends or is abandoned.
pub(super) struct KeysOfAnswer(SavedModes);

impl KeysOfAnswer {
    pub fn begin() -> Self {
        let modes = SavedModes::save();
        modes.set_raw(SignalKeys::All);
        Self(modes)
    }
}

impl Drop for KeysOfAnswer {
    fn drop(&mut self) {
        self.0.set_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Event> {
        let mut keys = Keys::default();
        keys.push(bytes);
        keys.ready.into()
    }

    fn key(code: KeyCode) -> Event {
        Event::Key(KeyEvent::new(code))
    }

    #[test]
    fn u17_keys_arrive_in_any_pieces() {
        let typed = "é\x1b[A\x1b[13;2u\x1b[200~a\rb\x1b[201~\x1bb\r".as_bytes();
        let alt_b = Event::Key(KeyEvent::new(KeyCode::Char('b')).modifiers(KeyModifiers::ALT));
        let shift_enter = Event::Key(KeyEvent::new(KeyCode::Enter).modifiers(KeyModifiers::SHIFT));
        let expected = [
            key(KeyCode::Char('é')),
            key(KeyCode::Up),
            shift_enter,
            Event::Paste("a\rb".to_owned()),
            alt_b,
            key(KeyCode::Enter),
        ];
        assert_eq!(keys(typed), expected);
        let mut in_pieces = Keys::default();
        for byte in typed {
            in_pieces.push(&[*byte]);
        }
        assert_eq!(Vec::from(in_pieces.ready), expected);
    }

    #[test]
    fn u09_only_letters_are_text() {
        for (typed, text) in [
            ("\u{1b}[Ay\u{f}N\u{1b}[5~é\r", "yNé\n"),
            ("y\u{7f}", ""),
            ("y\u{1b}", "y"),
            ("\u{1b}[200~a\u{7}b\u{1b}[201~c", "abc"),
        ] {
            assert_eq!(Keys::text(typed.as_bytes()), text, "{typed:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_and_escape_is_a_key() {
        let unknown = key(KeyCode::Char(char::REPLACEMENT_CHARACTER));
        assert_eq!(
            keys(b"a\xff\xfeb"),
            [key(KeyCode::Char('a')), unknown.clone(), unknown, key(KeyCode::Char('b'))]
        );
        let (input, mut keyboard) = io::pipe().unwrap();
        keyboard.write_all(&[ESCAPE]).unwrap();
        let mut keys = Keys::default();
        assert!(keys.read(&input).unwrap());
        assert_eq!(Vec::from(keys.ready), [key(KeyCode::Esc)]);
    }
}
