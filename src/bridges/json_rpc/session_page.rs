//! Lists of sessions in pages.

use super::message::{failed, invalid_params};
use agent_client_protocol_schema::v1::Error;
use agent_journal::session_store::SessionStore;

/// Sessions of one page.
const PAGE: usize = 50;

/// Returns a page of the sessions, newest first, as `read` shows them, and the cursor of the next page. `cursor` is that of the
/// page before. A session that another process removes meanwhile, which `read` does not find, is not listed.
///
/// # Errors
/// When the sessions cannot be listed or the cursor is not one.
pub fn session_page<T>(
    store: &SessionStore,
    cursor: Option<&str>,
    read: impl FnMut(String) -> Option<T>,
) -> Result<(Vec<T>, Option<String>), Error> {
    let start = cursor.map_or(Ok(0), str::parse::<usize>).map_err(|_| invalid_params("unknown cursor"))?;
    let mut ids = store.list().map_err(|error| failed(&error))?.skip(start);
    let page = ids.by_ref().take(PAGE).filter_map(read).collect();
    let next = ids.next().map(|_| start.saturating_add(PAGE).to_string());
    Ok((page, next))
}
