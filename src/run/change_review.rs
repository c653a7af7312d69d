//! Review of a run's changes (`auto_review`): the diff since the run began, shown to the agent `review` in sessions of their own.

use crate::app::App;
use crate::costs::Prices;
use crate::error::{AppError, AppResult};
use crate::file_diff::file_diff;
use crate::model_chain::{ModelChain, fallback_settings};
use crate::session::session_store;
use crate::undo_store::content_store;
use agent_config::agents::REVIEWER;
use agent_config::settings::Settings;
use agent_core::change_review::ChangeReview;
use agent_core::event::Event;
use agent_core::language::Language;
use agent_core::limits::SpendingCaps;
use agent_core::stop_reason::{Status, StopReason};
use agent_engine::Engine;
use agent_engine::reviewer::{ReviewRequest, Reviewer};
use agent_journal::file_history::{FileHistory, Restoration};
use agent_journal::played_turns::PlayedTurns;
use agent_journal::read::for_each_record;
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_session::review_reply::{self, ReviewReply};
use agent_session::session::{RunEnd, subagent_id};
use agent_session::subagent::{SubagentContext, SubagentHost, SubagentModel, SubagentRequest};
use agent_text::delimiter::Delimiter;
use agent_text::{diff_parts, excerpt};
use agent_workspace::content_store::ContentStore;
use futures_util::future::LocalBoxFuture;
use std::cell::OnceCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// Characters of the diff that one reviewer is shown.
const PART_CHARS: usize = 32_000;

/// Maximum number of parts of a diff.
const MAX_PARTS: usize = 20;

/// Characters shown of each user message.
const TASK_CHARS: usize = 16_000;

/// Reviews the changes of a run, with one subagent for each part of the diff.
struct ChangeReviewer {
    host: Rc<OnceCell<SubagentHost>>,
    /// The model of the reviewer; `None` for that of the run.
    model: Option<SubagentModel>,
    /// The journals of the sessions, the oldest first.
    journals: Vec<PathBuf>,
    /// The earlier contents of changed files.
    contents: ContentStore,
    /// Language of the answer.
    language: Language,
}

/// The parts of a review that are prepared before the session is opened.
pub struct ReviewSetup {
    host: Rc<OnceCell<SubagentHost>>,
    model: Option<SubagentModel>,
}

impl ReviewSetup {
    /// Connects `auto_review.review_model`, if reviews are enabled and it is set. `host` will run the reviewers.
    ///
    /// # Errors
    /// Fails when the model does not exist, lacks its API key, or has no known price for the budget.
    pub async fn connect(
        app: &App,
        settings: &Settings,
        caps: &SpendingCaps,
        prices: &Prices,
        host: &Rc<OnceCell<SubagentHost>>,
        played: &PlayedTurns,
    ) -> AppResult<Self> {
        let review = &settings.auto_review;
        let model = match review.review_model.as_deref().filter(|_| review.enabled) {
            Some(name) => Some(connect_model(app, settings, caps, prices, name, played).await?),
            None => None,
        };
        Ok(Self { host: Rc::clone(host), model })
    }

    /// Returns what reviews the changes of session `id`, and of the `earlier` sessions in a loop, the oldest first; `None` if reviews
    /// are disabled.
    ///
    /// # Errors
    /// When an id is not valid, or an earlier session does not exist any more.
    pub fn reviewer(
        &self,
        app: &App,
        settings: &Settings,
        earlier: &[String],
        id: &str,
    ) -> AppResult<Option<Box<dyn Reviewer>>> {
        if !settings.auto_review.enabled {
            return Ok(None);
        }
        let store = session_store(settings);
        let journals = earlier
            .iter()
            .map(String::as_str)
            .chain([id])
            .map(|id| store.journal_path(id))
            .collect::<Result<_, _>>()?;
        Ok(Some(Box::new(ChangeReviewer {
            host: Rc::clone(&self.host),
            model: self.model.clone(),
            journals,
            contents: content_store(app, settings),
            language: settings.language,
        })))
    }
}

async fn connect_model(
    app: &App,
    settings: &Settings,
    caps: &SpendingCaps,
    prices: &Prices,
    name: &str,
    played: &PlayedTurns,
) -> AppResult<SubagentModel> {
    let mut own = fallback_settings(settings, name, prices)?;
    own.llm.fallback.clear();
    let connected = ModelChain::connect(app, &own, caps, prices, played).await;
    let ModelChain { clients, terms } = connected.map_err(|error| {
        AppError::new(error.kind, messages::review_model_unusable(name, &error.to_string()))
    })?;
    Ok(SubagentModel { client: clients.first, terms: terms.first })
}

impl Reviewer for ChangeReviewer {
    fn review<'a>(
        &'a self,
        request: ReviewRequest,
        cancel: &'a CancellationToken,
    ) -> LocalBoxFuture<'a, Result<Option<ChangeReview>, EmitError>> {
        Box::pin(async move {
            let engine = self.host.get().and_then(|host| Some((host, host.engine.upgrade()?)));
            let Some((host, engine)) = engine else {
                return Ok(Some(ChangeReview::failed(messages::NO_REVIEWER.to_owned())));
            };
            engine.emitter.sync()?;
            Ok(match self.parts(&engine) {
                Ok(parts) => self.review_parts(host, &request, &parts, cancel).await,
                Err(problem) => Some(ChangeReview::failed(problem)),
            })
        })
    }
}

impl ChangeReviewer {
    /// Returns the diff of the changes in parts.
    fn parts(&self, engine: &Engine) -> Result<Vec<String>, String> {
        let changed =
            self.changed_files().map_err(|error| messages::changes_unreadable(&error.to_string()))?;
        let diffs: Vec<String> = changed.iter().filter_map(|file| self.diff(engine, file)).collect();
        let parts = diff_parts::split(&diffs, PART_CHARS);
        if parts.len() > MAX_PARTS {
            return Err(messages::changes_too_long(parts.len(), MAX_PARTS, PART_CHARS));
        }
        Ok(parts)
    }

    /// Returns the files that the run may have changed, and those of earlier runs of the session that did not end with success: a run that
    /// was killed or not approved may have left changes that nothing has reviewed.
    fn changed_files(&self) -> io::Result<Vec<Restoration>> {
        let (mut history, mut since_step) = (FileHistory::default(), 0);
        for (at, journal) in self.journals.iter().enumerate() {
            let is_own = at + 1 == self.journals.len();
            for_each_record(journal, |_, record| {
                let Some(record) = record else { return true };
                history.apply(&record);
                if matches!(&record.event, Event::RunEnd { result } if is_own && result.status == Status::Success)
                {
                    since_step = history.last_step();
                }
                true
            })?;
        }
        Ok(history.undo(since_step, None))
    }

    /// Returns the diff of one file; `None` if it is as it was before.
    fn diff(&self, engine: &Engine, file: &Restoration) -> Option<String> {
        let workspace = &engine.workspace;
        let found = workspace.path(&file.path).ok().and_then(|at| Some((workspace.state_of(&at).ok()?, at)));
        let Some((now, at)) = found else { return Some(messages::no_diff(&file.path)) };
        if now.is_consistent_with(&file.wanted) {
            return None;
        }
        Some(if engine.policy.is_sensitive(&file.path) {
            messages::hidden_change(&file.path)
        } else {
            file_diff(workspace, &self.contents, file, &at, &now)
        })
    }

    /// Has each part reviewed; `None` when `cancel` ended the review.
    async fn review_parts(
        &self,
        host: &SubagentHost,
        request: &ReviewRequest,
        parts: &[String],
        cancel: &CancellationToken,
    ) -> Option<ChangeReview> {
        let mut review = ChangeReview {
            approved: !parts.is_empty(),
            skipped: parts.is_empty(),
            parts: u32::try_from(parts.len()).unwrap_or(u32::MAX),
            ..ChangeReview::default()
        };
        for (at, part) in parts.iter().enumerate() {
            let call_id = format!("{}-{}", request.call_id, at + 1);
            let task = self.task(request, &call_id, part, at + 1, parts.len());
            let reply = self.ask(host, &task, &call_id, cancel).await;
            match reply {
                _ if cancel.is_cancelled() => return None,
                Ok(ReviewReply { approved, findings }) => {
                    review.approved &= approved;
                    review.findings.extend(findings);
                }
                Err(problem) => {
                    (review.approved, review.problem) = (false, Some(problem));
                    break;
                }
            }
        }
        Some(review)
    }

    /// Returns the task of the call that reviews `part`, which is part `number` of `parts`.
    fn task(
        &self,
        request: &ReviewRequest,
        call_id: &str,
        part: &str,
        number: usize,
        parts: usize,
    ) -> String {
        let delimiter = Delimiter::for_session(&subagent_id(&request.session_id, call_id));
        let task = request.task.iter().map(|text| delimiter.wrap(&excerpt::by_chars(text, TASK_CHARS)));
        let task = task.collect::<Vec<_>>().join("\n\n");
        let diff = delimiter.wrap(part);
        messages::change_review_task(delimiter.token(), &task, &diff, number, parts, self.language)
    }

    /// Has the reviewer do a task.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    async fn ask(
        &self,
        host: &SubagentHost,
        task: &str,
        call_id: &str,
        cancel: &CancellationToken,
    ) -> Result<ReviewReply, String> {
        let ask = SubagentRequest {
            agent: REVIEWER,
            task,
            memory: SubagentContext::Clean,
            call_id,
            read_only: true,
            model: self.model.as_ref(),
            stream: true,
        };
        let outcome = Box::pin(host.ask(ask, cancel)).await.map_err(|why| messages::reviewer_ended(&why))?;
        match outcome {
            RunEnd { status: Status::Success, reason: StopReason::LlmDone, output, .. } => {
                review_reply::read(&output.text()).ok_or_else(|| messages::REVIEW_UNREADABLE.to_owned())
            }
            RunEnd { reason, error, .. } => {
                let why = error.map_or_else(|| reason.name().to_owned(), |error| error.message);
                Err(messages::reviewer_ended(&why))
            }
        }
    }
}
