//! Reads what the user types while a run works.

use crate::app::App;
use agent_engine::message_queue::MessageQueue;
use agent_messages as messages;
use agent_terminal::Style;
use tokio_util::sync::CancellationToken;

/// Runs `run` to its end and returns its result. Meanwhile, lines that the user types are added to the queue. `queue` is absent outside of
/// a conversation. Its flag is true if the next step sends the lines; a notice then confirms each line.
pub async fn with_queue<T>(
    app: &App,
    queue: Option<(&MessageQueue, bool)>,
    run: impl Future<Output = T>,
) -> T {
    let Some((queue, is_sent)) = queue else { return run.await };
    let stop = CancellationToken::new();
    let add = |line: &str| {
        if queue.push(line) && is_sent {
            app.notify(Style::Dim, messages::CHAT_QUEUED);
        }
    };
    let run = async {
        let done = run.await;
        stop.cancel();
        done
    };
    tokio::join!(run, app.terminal.read_lines(&stop, add)).0
}
