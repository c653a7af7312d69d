//! Standard input of the server, which tells when the client has left.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio_util::sync::CancellationToken;

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
