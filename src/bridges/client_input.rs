//! Standard input from a program that drives runs, and the end of its runs when it leaves.

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio_util::sync::CancellationToken;

/// Time for interrupted runs to end, after the client has left.
const END_TIME: Duration = Duration::from_millis(900);

/// Interrupts the runs and waits until they have ended, for a limited time. What does not end in time is killed with the
/// launchers of its processes; the journal has everything that was done.
pub async fn end_runs<Run: Future<Output = ()>>(
    mut running: FuturesUnordered<Run>,
    interrupt: &CancellationToken,
) {
    interrupt.cancel();
    let ends = async { while running.next().await.is_some() {} };
    let _ended = tokio::time::timeout(END_TIME, ends).await;
}

/// Standard input; cancels `ended` at its end.
pub struct Input {
    /// Standard input.
    pub stdin: Stdin,
    /// Cancelled when the client has closed it.
    pub ended: CancellationToken,
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut this.stdin).poll_read(cx, buf));
        if read.is_err() || buf.filled().len() == before {
            this.ended.cancel();
        }
        Poll::Ready(read)
    }
}
