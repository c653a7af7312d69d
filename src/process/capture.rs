//! Captures a child's output: start and end in memory, long output (up to a limit) in a file.

use super::recent_output::RecentOutput;
use memchr::{memchr_iter, memrchr};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Bytes stored of the start of each stream. More than the model ever receives.
pub const HEAD_BYTES: usize = 64 * 1024;

/// Bytes stored of the end of each stream.
pub const TAIL_BYTES: usize = 64 * 1024;

/// Limit, in bytes, of one command's output file, so that endless output does not fill the disk.
pub const MAX_STORED_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes per read. The capacity of a pipe on Linux is 64 KiB.
const READ_BYTES: usize = 32 * 1024;

/// Longest incomplete line, in bytes, that is buffered so that lines of the two streams do not interleave.
const MAX_PARTIAL_LINE_BYTES: usize = 8 * 1024;

/// One captured stream, bounded in memory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Captured {
    /// First bytes, at most [`HEAD_BYTES`].
    pub head: Vec<u8>,
    /// Last bytes after the head, at most [`TAIL_BYTES`].
    pub tail: VecDeque<u8>,
    /// Number of bytes that the child wrote.
    pub total: u64,
    /// Number of line ends that the child wrote.
    pub line_ends: u64,
}

impl Captured {
    /// Checks whether bytes between head and tail were dropped.
    pub fn is_truncated(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    fn append(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let line_ends = memchr_iter(b'\n', bytes).count();
        self.line_ends = self.line_ends.saturating_add(line_ends as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES.saturating_sub(self.head.len())));
        self.head.extend_from_slice(first);
        let (_, rest) = rest.split_at(rest.len().saturating_sub(TAIL_BYTES));
        let surplus = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }
}

/// Content of the output file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StoredOutput {
    /// There is no file. The heads contain all output.
    #[default]
    NoFile,
    /// The file contains all output.
    Complete,
    /// The file contains the first [`MAX_STORED_BYTES`].
    Truncated,
    /// The file could not be written. Contains the reason.
    Failed(String),
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// Captured output of one child.
pub(super) struct Capture<Open, File> {
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    /// Time of the child's last output, or of its start.
    pub(super) last_output: Instant,
    recent: Option<RecentOutput>,
    file: OutputFileWriter<Open, File>,
}

impl<Open: FnOnce() -> io::Result<File>, File: Write> Capture<Open, File> {
    /// Creates an empty capture. `open` creates the output file once the output exceeds the memory limit; without it there is
    /// no file. `recent` receives all output as it arrives.
    pub(super) fn new(open: Option<Open>, recent: Option<RecentOutput>) -> Self {
        let file = OutputFileWriter {
            open,
            file: None,
            partial: [Vec::new(), Vec::new()],
            written: 0,
            stored: StoredOutput::NoFile,
        };
        let (stdout, stderr) = (Captured::default(), Captured::default());
        Self { stdout, stderr, last_output: Instant::now(), recent, file }
    }

    /// Writes the buffered incomplete lines and returns the state of the output file.
    pub(super) fn finish(&mut self) -> StoredOutput {
        for stream in [Stream::Out, Stream::Err] {
            let rest = std::mem::take(self.file.partial(stream));
            self.file.write(&rest);
        }
        self.file.close();
        std::mem::take(&mut self.file.stored)
    }

    fn append(&mut self, stream: Stream, bytes: &[u8]) {
        self.last_output = Instant::now();
        if let Some(recent) = &self.recent {
            recent.append(bytes);
        }
        let captured = match stream {
            Stream::Out => &mut self.stdout,
            Stream::Err => &mut self.stderr,
        };
        if captured.head.len() + bytes.len() > HEAD_BYTES && self.file.open_file() {
            self.file.append(Stream::Out, &self.stdout.head);
            self.file.append(Stream::Err, &self.stderr.head);
        }
        self.file.append(stream, bytes);
        match stream {
            Stream::Out => self.stdout.append(bytes),
            Stream::Err => self.stderr.append(bytes),
        }
    }
}

/// Writes both streams to one file, in whole lines in order of arrival.
struct OutputFileWriter<Open, File> {
    open: Option<Open>,
    file: Option<File>,
    partial: [Vec<u8>; 2],
    written: u64,
    stored: StoredOutput,
}

impl<Open: FnOnce() -> io::Result<File>, File: Write> OutputFileWriter<Open, File> {
    /// Opens the file on the first call. Returns whether this call opened it.
    fn open_file(&mut self) -> bool {
        let Some(open) = self.open.take() else { return false };
        match open() {
            Ok(file) => {
                self.stored = StoredOutput::Complete;
                self.file = Some(file);
                true
            }
            Err(error) => {
                self.stored = StoredOutput::Failed(error.to_string());
                false
            }
        }
    }

    fn partial(&mut self, stream: Stream) -> &mut Vec<u8> {
        let [out, err] = &mut self.partial;
        match stream {
            Stream::Out => out,
            Stream::Err => err,
        }
    }

    fn append(&mut self, stream: Stream, bytes: &[u8]) {
        if self.file.is_none() {
            return;
        }
        let lines_end = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let (lines, rest) = bytes.split_at(lines_end);
        if !lines.is_empty() {
            let partial = std::mem::take(self.partial(stream));
            self.write(&partial);
            self.write(lines);
        }
        self.partial(stream).extend_from_slice(rest);
        if self.partial(stream).len() > MAX_PARTIAL_LINE_BYTES {
            let partial = std::mem::take(self.partial(stream));
            self.write(&partial);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let room = usize::try_from(MAX_STORED_BYTES.saturating_sub(self.written)).unwrap_or(usize::MAX);
        let (bytes, left_out) = bytes.split_at(bytes.len().min(room));
        if let Err(error) = file.write_all(bytes) {
            self.stored = StoredOutput::Failed(error.to_string());
            self.file = None;
            return;
        }
        self.written = self.written.saturating_add(bytes.len() as u64);
        if !left_out.is_empty() {
            self.stored = StoredOutput::Truncated;
            self.close();
        }
    }

    /// Flushes and closes the file.
    fn close(&mut self) {
        let Some(mut file) = self.file.take() else { return };
        if let Err(error) = file.flush() {
            self.stored = StoredOutput::Failed(error.to_string());
        }
    }
}

/// Reads both pipes concurrently until both are closed.
pub(super) async fn pump<Open: FnOnce() -> io::Result<File>, File: Write>(
    stdout: Option<impl AsyncRead + Unpin>,
    stderr: Option<impl AsyncRead + Unpin>,
    capture: &Mutex<Capture<Open, File>>,
) {
    futures_util::join!(read(stdout, Stream::Out, capture), read(stderr, Stream::Err, capture));
}

/// Waits until the child has written nothing for `idle`. Never returns without `idle`.
pub(super) async fn wait_until_idle<Open, File>(
    idle: Option<Duration>,
    capture: &Mutex<Capture<Open, File>>,
) {
    let Some(idle) = idle else { return std::future::pending().await };
    loop {
        let end = capture.lock().unwrap_or_else(PoisonError::into_inner).last_output + idle;
        if end <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(end).await;
    }
}

async fn read<Open: FnOnce() -> io::Result<File>, File: Write>(
    pipe: Option<impl AsyncRead + Unpin>,
    stream: Stream,
    capture: &Mutex<Capture<Open, File>>,
) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; READ_BYTES];
    // A read error on a pipe is handled as its end.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
        capture.append(stream, buffer.get(..count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Seek};

    fn run(chunks: &[(bool, Vec<u8>)]) -> (Captured, Captured, StoredOutput, Vec<u8>) {
        let mut file = tempfile::tempfile().unwrap();
        let copy = file.try_clone().unwrap();
        let mut capture = Capture::new(Some(|| Ok(copy)), None);
        for (error, bytes) in chunks {
            capture.append(if *error { Stream::Err } else { Stream::Out }, bytes);
        }
        let stored = capture.finish();
        let mut text = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut text).unwrap();
        (capture.stdout, capture.stderr, stored, text)
    }

    #[test]
    fn a_short_output_stays_in_memory() {
        let (stdout, stderr, stored, file) = run(&[(false, b"a\nb".to_vec()), (true, b"c\n".to_vec())]);
        assert_eq!((stdout.head.as_slice(), stdout.line_ends), (b"a\nb".as_slice(), 1));
        assert_eq!((stored, file.len(), stderr.is_truncated()), (StoredOutput::NoFile, 0, false));
    }

    #[test]
    fn a_long_output_is_in_the_file_whole_and_lines_of_the_streams_do_not_mix() {
        let big = [b"0123456789abcde\n".repeat(HEAD_BYTES / 16), b"begun ".to_vec()].concat();
        let (stdout, stderr, stored, file) = run(&[
            (true, b"early\n".to_vec()),
            (false, big.clone()),
            (true, b"late\n".to_vec()),
            (false, b"ended\n".to_vec()),
        ]);
        assert_eq!(stored, StoredOutput::Complete);
        assert!(!stdout.is_truncated());
        assert_eq!(file.len() as u64, stdout.total + stderr.total);
        assert!(file.starts_with(b"early\n0123"));
        assert!(file.ends_with(b"late\nbegun ended\n"));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_reported_and_capture_continues() {
        let mut capture = Capture::new(Some(|| Err::<io::Sink, _>(io::Error::other("disk full"))), None);
        capture.append(Stream::Out, &vec![b'x'; HEAD_BYTES + 1]);
        assert_eq!(capture.finish(), StoredOutput::Failed("disk full".to_owned()));
        assert_eq!(capture.stdout.total, HEAD_BYTES as u64 + 1);
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_what_was_written(chunks in prop::collection::vec((0_usize..90_000, any::<u8>()), 0..8)) {
            let mut captured = Captured::default();
            let mut all = Vec::new();
            for (length, byte) in chunks {
                let chunk: Vec<u8> = (0..length).map(|i| byte.wrapping_add(i.to_le_bytes()[0])).collect();
                captured.append(&chunk);
                all.extend(chunk);
            }
            prop_assert_eq!(captured.total, all.len() as u64);
            prop_assert!(all.starts_with(&captured.head));
            prop_assert!(all.ends_with(&captured.tail.iter().copied().collect::<Vec<_>>()));
            prop_assert_eq!(captured.head.len(), all.len().min(HEAD_BYTES));
            prop_assert_eq!(captured.tail.len(), all.len().saturating_sub(HEAD_BYTES).min(TAIL_BYTES));
        }
    }
}
