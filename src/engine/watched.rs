//! Programs are watched: what they change is listed, and kept before they run.

use crate::emit::EmitError;
use crate::engine::Engine;
use crate::engine::call::Ready;
use crate::event::{Event, Level};
use crate::messages;
use crate::process::barrier::{Barrier, Lift};
use crate::process::launch::Launcher;
use crate::tools::{Announce, ToolContext, ToolOutput};
use crate::workspace::baseline::Baseline;
use crate::workspace::contents::MAX_FILE_BYTES;
use std::sync::{Arc, PoisonError};

impl Engine {
    /// Runs a program, which begins when the journal is durable and the files are known, and lists those that changed
    /// meanwhile, or says that they cannot be listed, of all that follow once.
    pub(super) async fn watched(
        &self,
        program: &Ready<'_>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, EmitError> {
        let (lift, barrier) = Barrier::new();
        let launcher = Launcher::clone(&self.launcher).waiting_for(barrier).into();
        let own = ToolContext { launcher, ..self.context(&cx.call_id, &cx.cancel) };
        let (compared, mut output) =
            tokio::join!(self.settle_before(lift, &cx.announce), self.in_time(program, &own));
        let compared = compared?;
        let changes = if compared { self.look(Baseline::changes).await.flatten() } else { None };
        let Some(changes) = changes else {
            self.tell_unwatched().await?;
            return Ok(output);
        };
        output.changed.extend(changes.listed);
        if changes.left_out > 0 {
            self.warn(messages::changes_left_out(changes.left_out))?;
        }
        if !changes.unkept.is_empty() {
            let paths: Vec<&str> = changes.unkept.iter().map(String::as_str).collect();
            self.warn(messages::commands_not_undone(&paths, MAX_FILE_BYTES >> 20))?;
        }
        Ok(output)
    }

    /// Does what must be done before a program begins. Whether the files are known.
    async fn settle_before(&self, lift: Lift, announce: &Announce) -> Result<bool, EmitError> {
        let unsynced = self.emitter.unsynced()?;
        let work = move |baseline: &mut Baseline| {
            let synced = unsynced.map_or(Ok(()), |file| file.sync_data());
            (synced, baseline.prepare())
        };
        let compared = match self.look(work).await {
            Some((synced, compared)) => synced.map(|()| compared)?,
            None => self.emitter.sync().map(|()| false)?,
        };
        if compared {
            announce(Vec::new())?;
        }
        lift.lift();
        Ok(compared)
    }

    async fn tell_unwatched(&self) -> Result<(), EmitError> {
        if self.look(|baseline| baseline.has_given_up()).await != Some(true) {
            self.warn(messages::CHANGES_NOT_LISTED.to_owned())
        } else if !self.unwatched_told.replace(true) {
            self.warn(messages::CHANGES_NEVER_LISTED.to_owned())
        } else {
            Ok(())
        }
    }

    /// A look at the files, which takes a while; nothing when it broke.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Baseline) -> T + Send + 'static,
    ) -> Option<T> {
        let baseline = Arc::clone(&self.baseline);
        let work = move || look(&mut baseline.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(work).await.ok()
    }

    pub(super) fn warn(&self, text: String) -> Result<(), EmitError> {
        self.emitter.emit(Event::Notice { level: Level::Warn, text }).map(drop)
    }
}
