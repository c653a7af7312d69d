//! Deadlines of one exchange with a model server, and the timer that applies them.

use super::HttpError;
use std::time::Duration;
use tokio::time::Instant;

/// Minimum time until a response that is not streamed starts.
pub const UNSTREAMED_START: Duration = Duration::from_mins(2);
/// Maximum time that keep-alive lines alone hold a response open; DeepSeek documents ten minutes in its queue.
pub const KEEP_ALIVE_LIMIT: Duration = Duration::from_mins(10);

/// Maximum durations of the phases of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Name lookup, TCP and TLS.
    pub connect: Duration,
    /// From sending the request to the first byte of the response body.
    pub first_byte: Duration,
    /// From one complete event of the body to the next; for a body without events, the time for all of its bytes. A
    /// keep-alive line restarts it, up to [`KEEP_ALIVE_LIMIT`] after the last event.
    pub silence: Duration,
    /// The whole exchange.
    pub whole: Duration,
}

impl Default for Deadlines {
    /// Returns ten seconds to connect, two minutes until the response starts (a local server may load the model first), two
    /// minutes between two events, twenty minutes in all.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(2),
            silence: Duration::from_mins(2),
            whole: Duration::from_mins(20),
        }
    }
}

/// How a response arrives, which determines how long it may take to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As a stream of events.
    Streamed,
    /// As one body, when it is complete.
    Whole {
        /// Whether the model thinks before it answers.
        thinks: bool,
    },
}

impl Deadlines {
    /// Returns the deadlines for a response with this `delivery`. A response that is not streamed starts when it is
    /// complete: it has at least [`UNSTREAMED_START`], and with a thinking model the whole time.
    #[must_use]
    pub fn of(self, delivery: Delivery) -> Self {
        let first_byte = match delivery {
            Delivery::Streamed => self.first_byte,
            Delivery::Whole { thinks: false } => self.first_byte.max(UNSTREAMED_START).min(self.whole),
            Delivery::Whole { thinks: true } => self.whole,
        };
        Self { first_byte, ..self }
    }
}

/// The deadline that passed; see [`Deadlines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// [`Deadlines::connect`].
    Connect,
    /// [`Deadlines::first_byte`].
    FirstByte,
    /// [`Deadlines::silence`].
    Silence,
    /// [`Deadlines::whole`].
    Whole,
}

impl std::fmt::Display for Deadline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection within",
            Self::FirstByte => "no response started within",
            Self::Silence => "the answer stopped arriving for",
            Self::Whole => "the answer was not complete within",
        })
    }
}

/// Start and deadlines of one exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangeTimer {
    pub(super) started: Instant,
    pub(super) deadlines: Deadlines,
}

impl ExchangeTimer {
    pub(super) fn until_first_byte(&self) -> (Instant, Deadline) {
        self.earlier(self.started + self.deadlines.first_byte, Deadline::FirstByte)
    }

    pub(super) fn until_silence(&self, last_event: Instant, alive: Instant) -> (Instant, Deadline) {
        let until =
            (alive + self.deadlines.silence).min(last_event + KEEP_ALIVE_LIMIT.max(self.deadlines.silence));
        self.earlier(until, Deadline::Silence)
    }

    fn earlier(&self, until: Instant, deadline: Deadline) -> (Instant, Deadline) {
        let end = self.started + self.deadlines.whole;
        if end <= until { (end, Deadline::Whole) } else { (until, deadline) }
    }

    pub(super) fn passed(&self, deadline: Deadline) -> HttpError {
        let allowed = match deadline {
            Deadline::Connect => self.deadlines.connect,
            Deadline::FirstByte => self.deadlines.first_byte,
            Deadline::Silence => self.deadlines.silence,
            Deadline::Whole => self.deadlines.whole,
        };
        HttpError::Timeout(deadline, allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_streamed_has_two_minutes_to_start_and_that_of_a_thinking_model_the_whole_time() {
        let deadlines = Deadlines { first_byte: Duration::from_secs(1), ..Deadlines::default() };
        let first_byte = |delivery| deadlines.of(delivery).first_byte;
        assert_eq!(first_byte(Delivery::Streamed), Duration::from_secs(1));
        assert_eq!(first_byte(Delivery::Whole { thinks: false }), Duration::from_mins(2));
        assert_eq!(first_byte(Delivery::Whole { thinks: true }), deadlines.whole);
    }
}
