//! Copies bytes between a command and a host until one of them ends or neither sends anything.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// Bytes that are copied at once.
const CHUNK_BYTES: usize = 16 << 10;

/// Copies in both directions, each until its end, but no longer than `idle` without a byte.
///
/// # Errors
/// When a connection breaks or nothing was sent for `idle`.
pub async fn relay(command: &mut TcpStream, host: &mut TcpStream, idle: Duration) -> io::Result<()> {
    let last = Mutex::new(Instant::now());
    let (mut from_command, mut to_command) = command.split();
    let (mut from_host, mut to_host) = host.split();
    let both = async {
        tokio::try_join!(
            copy(&mut from_command, &mut to_host, &last),
            copy(&mut from_host, &mut to_command, &last)
        )
    };
    tokio::select! {
        done = both => done.map(drop),
        () = wait_until_idle(&last, idle) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    last: &Mutex<Instant>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(chunk.get(..read).unwrap_or_default()).await?;
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

async fn wait_until_idle(last: &Mutex<Instant>, idle: Duration) {
    loop {
        let end = *last.lock().unwrap_or_else(PoisonError::into_inner) + idle;
        if end <= Instant::now() {
            return;
        }
        sleep_until(end).await;
    }
}
