//! Reads what the user types while a run works.

use crate::cli::compose::app::App;
use crate::engine::message_queue::MessageQueue;
use crate::messages;
use crate::terminal::Style;

/// Waits for `run`, and adds the lines that are typed meanwhile to `queue`, if there is one.
pub async fn with_queue<T>(app: &App, queue: Option<&MessageQueue>, run: impl Future<Output = T>) -> T {
    let typed = async {
        if let Some(queue) = queue {
            app.terminal
                .read_lines(|line| {
                    if queue.push(line) {
                        app.notify(Style::Dim, messages::CHAT_QUEUED);
                    }
                })
                .await;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        done = run => done,
        done = typed => done,
    }
}
