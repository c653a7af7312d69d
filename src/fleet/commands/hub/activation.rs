//! One activation of an agent of a Hub: reads what it is about, runs the agent, posts the answer, and tells the Hub.

use crate::commands::claim::{AttemptRun, Claim, ending_of, ending_of_run};
use crate::commands::context::{WorkerContext, is_worker_fault, key_refused};
use crate::commands::hub::context::HubContext;
use crate::commands::hub::outbox::{NotPosted, Outbox};
use crate::commands::hub::prompt::{
    exploration_prompt, is_no_answer, notification_prompt, posts_text, thread_text,
};
use crate::hub::agent_state::{AgentState, PostRefusal};
use crate::hub::api::{BudgetHealth, Notification, Post};
use crate::hub::client::HubError;
use crate::hub::feed::{feed, start, state_key};
use agent_config::agent_definition::AgentDefinition;
use agent_config::grants::Grants;
use agent_core::failure::FailureKind;
use agent_core::fleet::{TaskRecord, check_id};
use agent_core::hub::{Activation, ActivationKind, PostState, PostTarget, Subject};
use agent_core::task_transitions::Ending;
use agent_messages as messages;
use agent_run::error::{AppError, AppResult};
use agent_terminal::Style;
use agent_text::delimiter::Delimiter;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Longest wait for the limit between two posts of an agent, in seconds; a longer one ends the activation.
const MAX_INTERVAL_WAIT: u64 = 120;

/// An activation.
pub(super) struct ActivationRun<'a> {
    pub(super) claim: Claim<'a>,
    pub(super) hub: &'a HubContext,
    pub(super) activation: &'a Activation,
    pub(super) definition: Rc<AgentDefinition>,
    pub(super) grants: Grants,
    pub(super) outbox: Outbox<'a>,
}

/// How an activation ended.
struct Ended {
    ending: Ending,
    /// Whether the agent has more unread notifications.
    has_more: bool,
}

impl Ended {
    fn done(has_more: bool) -> Self {
        Self { ending: Ending::Done(None), has_more }
    }

    fn not_done(why: impl Into<String>) -> Self {
        Self { ending: Ending::NotDone(why.into()), has_more: false }
    }
}

/// Performs the newest attempt of an activation, and records how that ended. The claim is renewed all the time.
///
/// # Errors
/// Fails when the queue cannot be used.
pub async fn perform(
    worker: &WorkerContext<'_>,
    hub: &HubContext,
    task: &TaskRecord,
    activation: &Activation,
    run: &AttemptRun,
) -> AppResult<()> {
    let (claim, interrupt) = (Claim { worker, task, run }, worker.stop.child_token());
    // Its id is the name of a directory, and whoever may write to the queue has chosen it.
    if let Err(why) = check_id(&activation.agent) {
        return claim.finish(Ending::Failed(format!("the agent: {why}")), None).await.map(drop);
    }
    let warn = |text: &str| worker.log(Style::Warning, text);
    let (definition, unusable) = match hub.definition(&activation.agent, warn) {
        Ok(definition) => (definition, None),
        // Without grants it posts nothing, no report either.
        Err(error) => (Rc::default(), Some(error)),
    };
    let outbox = Outbox::new(claim, &hub.client, &activation.agent, definition.limits);
    let grants = hub.grants(&activation.agent, &definition);
    for grant in &grants.refused {
        warn(&messages::grant_refused(&activation.agent, grant, worker.language));
    }
    let run = ActivationRun { claim, hub, activation, definition, grants, outbox };
    tokio::select! {
        ended = Box::pin(run.perform(unusable, &interrupt)) => ended,
        never = claim.renew(&interrupt) => match never {},
    }
}

/// Reports to the Hub that the agent of an activation was active; returns whether that succeeded, or the Hub does not know the agent.
pub async fn report_activated(
    worker: &WorkerContext<'_>,
    hub: &HubContext,
    task: &TaskRecord,
    activation: &Activation,
) -> bool {
    match hub.client.activated(&activation.agent, &activated_key(task)).await {
        Err(error) if !error.is_not_found() => {
            worker.log(
                Style::Warning,
                &messages::hub_not_told("activated", &error.to_string(), worker.language),
            );
            false
        }
        _ => true,
    }
}

fn activated_key(task: &TaskRecord) -> String {
    format!("{}:activated-{}", task.id, task.attempt)
}

impl ActivationRun<'_> {
    /// Performs the activation, unless the definition of its agent is `unusable`.
    async fn perform(&self, unusable: Option<AppError>, interrupt: &CancellationToken) -> AppResult<()> {
        let (worker, task) = (self.claim.worker, self.claim.task);
        let ended = match unusable {
            Some(error) => Err(error),
            None => Box::pin(self.activate(interrupt)).await,
        };
        if let Some(result) = self.claim.run.get() {
            self.report_consumption(result).await;
        }
        let is_done = ended.as_ref().is_ok_and(|ended| matches!(ended.ending, Ending::Done(_)));
        if worker.stop.is_cancelled() && !is_done {
            return self.claim.give_back().await;
        }
        let ended = match ended {
            Err(error) => {
                let has_own_model =
                    self.definition.model.is_none() || worker.request.overrides.model.is_some();
                Err(worker.attribute(error, has_own_model && self.definition.executor.is_none()).await)
            }
            ended => ended,
        };
        let Ended { ending, has_more } = match ended {
            Err(error) if is_worker_fault(&error) => {
                self.claim.give_back().await?;
                return Err(error);
            }
            Ok(ended) => ended,
            Err(error) if error.kind == FailureKind::Quota => return self.claim.give_back().await,
            Err(error) => Ended { ending: ending_of(error.kind, error.to_string()), has_more: false },
        };
        match &ending {
            Ending::Failed(why) => self.report_failure(why).await,
            Ending::Retry(why) if task.has_last_attempt() => self.report_failure(why).await,
            _ => {}
        }
        let is_told = report_activated(worker, self.hub, task, self.activation).await;
        if !self.claim.finish(ending, self.claim.run.get()).await? {
            return Ok(());
        }
        if !is_told {
            worker.until_answered(async || worker.queue.set_unreported(task).await).await?;
        }
        if !has_more {
            return Ok(());
        }
        let next = Activation { kind: ActivationKind::Notification, ..self.activation.clone() };
        // Otherwise the process that looks at the Hub submits it.
        if let Err(error) = feed(&worker.queue, next, None, 0, worker.now()).await {
            worker.log(Style::Warning, &error.to_string());
        }
        Ok(())
    }

    async fn activate(&self, interrupt: &CancellationToken) -> AppResult<Ended> {
        let (agent, worker) = (&self.activation.agent, self.claim.worker);
        let started = async || start(&worker.queue, agent, &self.claim.task.id).await;
        if !worker.until_answered(started).await? {
            return Ok(Ended::not_done("a later activation of the agent has begun"));
        }
        let budget = match self.hub.client.budget(agent).await {
            Err(HubError::Refused(401, why)) => {
                return Err(key_refused(&format!("the Hub refuses the key: {why}")));
            }
            Err(error) => return Ok(Ended::not_done(format!("the budget cannot be asked for: {error}"))),
            Ok(budget) => budget,
        };
        self.note_budget(&budget);
        if let Some(why) = budget.refusal() {
            return Ok(Ended::not_done(format!("the budget of the agent: {why}")));
        }
        match self.activation.kind {
            ActivationKind::Notification => self.answer(&budget, interrupt).await,
            ActivationKind::Exploration => self.explore(&budget, interrupt).await,
        }
    }

    /// Answers one notification.
    async fn answer(&self, budget: &BudgetHealth, interrupt: &CancellationToken) -> AppResult<Ended> {
        if !self.may_post() {
            return Ok(Ended::not_done(messages::missing_grant("hub:write")));
        }
        let client = &self.hub.client;
        let unread = client.notifications(&self.activation.agent).await?;
        let chosen = match &self.claim.task.subject {
            Some(subject) => unread.iter().find(|one| one.id == subject.notification),
            None => match self.choose(&unread).await? {
                Ok(chosen) => chosen,
                Err(why) => return Ok(Ended::not_done(why)),
            },
        };
        let Some(notification) = chosen else { return Ok(Ended::done(false)) };
        let has_more = unread.len() > 1;
        if self.was_answered(&notification.post_id) {
            self.mark_read(&[notification]).await?;
            return Ok(Ended::done(has_more));
        }
        let thread = match client.thread(&notification.post_id).await {
            // Its post was removed.
            Err(error) if error.is_not_found() => {
                self.mark_read(&[notification]).await?;
                return Ok(Ended::done(has_more));
            }
            thread => thread?,
        };
        if self.is_thread_full(&notification.post_id, &thread).await? {
            self.mark_read(&[notification]).await?;
            return Ok(Ended::done(has_more));
        }
        let prompt = notification_prompt(&self.marks(), budget, &thread, notification);
        let text = format!("{}\n{}", thread_text(&thread), notification.content);
        let (result, has_answer) = Box::pin(self.run(prompt, &text, &thread.community, interrupt)).await?;
        if !has_answer {
            return Ok(Ended { ending: ending_of_run(result), has_more });
        }
        let answer = result.output.text();
        let ending = match self.post_answer(&notification.post_id, &answer, interrupt).await? {
            None => {
                self.mark_read(&[notification]).await?;
                Ending::Done(None)
            }
            Some(ending) => ending,
        };
        Ok(Ended { ending, has_more })
    }

    /// Chooses the oldest notification that the agent may answer, and records it; those that need no answer are marked as read, and those whose
    /// activations failed again and again are passed over. The error is why none may be answered now.
    async fn choose<'n>(
        &self,
        unread: &'n [Notification],
    ) -> AppResult<Result<Option<&'n Notification>, String>> {
        let worker = self.claim.worker;
        let key = state_key(&self.activation.agent);
        let read = async || worker.queue.change_value(&key, |state: &mut AgentState| state.clone()).await;
        let state = worker.until_answered(read).await?;
        let mut unanswered = Vec::new();
        let (mut chosen, mut passed_over) = (None, 0);
        for notification in unread {
            let target = PostTarget::Comment { post: notification.post_id.clone() };
            let allowed = state.check_post(&target, &self.definition.limits, worker.now());
            match allowed {
                _ if !self.answers(notification) || state.has_answered(&notification.id) => {
                    unanswered.push(notification);
                }
                _ if state.passes_over(&notification.id) => passed_over += 1,
                Err(PostRefusal::Thread(_)) => unanswered.push(notification),
                Err(PostRefusal::Until(until, why)) if until > worker.now() + MAX_INTERVAL_WAIT => {
                    self.wait_until(until).await?;
                    return Ok(Err(why));
                }
                Ok(()) | Err(PostRefusal::Until(..)) => {
                    chosen = Some(notification);
                    break;
                }
            }
        }
        self.mark_read(&unanswered).await?;
        if chosen.is_none() {
            let set = |state: &mut AgentState| state.passed_over = passed_over;
            worker.until_answered(async || worker.queue.change_value(&key, set).await).await?;
        }
        if chosen.is_none() && passed_over > 0 {
            worker.log(Style::Warning, &messages::hub_passed_over(passed_over));
        }
        if let Some(Notification { id, post_id, .. }) = chosen {
            let subject = Subject { notification: id.clone(), post: post_id.clone() };
            let record = |task: &mut TaskRecord| task.subject = Some(subject.clone());
            let set = async || worker.queue.update(self.claim.task, record).await;
            if !worker.until_answered(set).await? {
                return Ok(Ok(None));
            }
        }
        Ok(Ok(chosen))
    }

    /// Checks whether the agent answers such notifications.
    fn answers(&self, notification: &Notification) -> bool {
        let (mentions, replies) = self.definition.answers;
        let is_answered = match notification.kind.as_str() {
            "mention" => mentions,
            "reply" => replies,
            _ => false,
        };
        is_answered && !notification.post_id.is_empty()
    }

    /// Checks whether the comments of the agent in a thread, those of the Hub among them, reach its limit.
    async fn is_thread_full(&self, id: &str, thread: &Post) -> AppResult<bool> {
        let (worker, agent) = (self.claim.worker, &self.activation.agent);
        let target = PostTarget::Comment { post: id.to_owned() };
        let check = |state: &mut AgentState| {
            state.count_on_hub(id, thread.comments_of(agent));
            state.check_post(&target, &self.definition.limits, worker.now())
        };
        let key = state_key(agent);
        let checked = worker.until_answered(async || worker.queue.change_value(&key, check).await).await?;
        Ok(matches!(checked, Err(PostRefusal::Thread(_))))
    }

    /// Lets the agent wait until a time, in seconds since the Unix epoch.
    async fn wait_until(&self, until: u64) -> AppResult<()> {
        let (worker, key) = (self.claim.worker, state_key(&self.activation.agent));
        let wait = |state: &mut AgentState| state.wait_until = state.wait_until.max(until);
        worker.until_answered(async || worker.queue.change_value(&key, wait).await).await
    }

    /// Checks whether an earlier attempt has answered in this thread.
    fn was_answered(&self, thread: &str) -> bool {
        self.claim.task.posts.iter().any(|post| post.is_settled() && post.is_comment_on(thread))
    }

    /// Posts the answer of the model, unless there is none, or the model has answered in the thread itself; returns how the attempt ends if
    /// the notification was not handled.
    async fn post_answer(
        &self,
        thread: &str,
        answer: &str,
        interrupt: &CancellationToken,
    ) -> AppResult<Option<Ending>> {
        let (worker, task) = (self.claim.worker, self.claim.task);
        let record = worker.until_answered(async || worker.queue.record(&task.id).await).await?;
        if !record.belongs_to(task) {
            return Ok(Some(Ending::Retry(NotPosted::NotOwn.why().to_owned())));
        }
        let has_answered = record.posts.iter().any(|post| post.is_settled() && post.is_comment_on(thread));
        if has_answered || is_no_answer(answer) {
            return Ok(None);
        }
        // One of the model's own posts may be the answer.
        if self.outbox.has_posts() && record.posts.iter().any(|post| post.state == PostState::Intended) {
            return Ok(Some(Ending::Retry("the outcome of a post is not known yet".to_owned())));
        }
        loop {
            let target = PostTarget::Comment { post: thread.to_owned() };
            return Ok(match self.outbox.post(target, answer).await {
                Ok(_) | Err(NotPosted::Unknown(_) | NotPosted::Limit(PostRefusal::Thread(_))) => None,
                Err(NotPosted::Limit(PostRefusal::Until(until, _)))
                    if until <= worker.now() + MAX_INTERVAL_WAIT =>
                {
                    let wait = Duration::from_secs(until.saturating_sub(worker.now()).max(1));
                    tokio::select! {
                        () = sleep(wait) => continue,
                        () = interrupt.cancelled() => Some(Ending::Retry("interrupted".to_owned())),
                    }
                }
                Err(NotPosted::Limit(PostRefusal::Until(until, why))) => {
                    self.wait_until(until).await?;
                    Some(Ending::NotDone(why))
                }
                Err(NotPosted::Refused(why)) => Some(Ending::Failed(why)),
                Err(NotPosted::Later(why)) => Some(Ending::Retry(why)),
                Err(NotPosted::NotOwn) => Some(Ending::Retry(NotPosted::NotOwn.why().to_owned())),
            });
        }
    }

    /// Lets the agent look for posts to answer.
    async fn explore(&self, budget: &BudgetHealth, interrupt: &CancellationToken) -> AppResult<Ended> {
        if !self.definition.explores {
            return Ok(Ended::not_done("its definition does not enable behavior.discovery"));
        }
        let (communities, keywords) = &self.definition.interests;
        let limit = self.hub.settings.discover_limit.into();
        let found = self.hub.client.discover(&self.activation.agent, limit, communities, keywords).await?;
        if found.is_empty() {
            return Ok(Ended::done(false));
        }
        let text = posts_text(&found);
        let prompt = exploration_prompt(&self.marks(), budget, &found);
        let (result, has_answer) = Box::pin(self.run(prompt, &text, "", interrupt)).await?;
        let ending = if has_answer { Ending::Done(None) } else { ending_of_run(result) };
        Ok(Ended { ending, has_more: false })
    }

    pub(super) fn may_post(&self) -> bool {
        self.grants.has("hub:write")
    }

    fn marks(&self) -> Delimiter {
        Delimiter::for_session(&self.claim.task.id)
    }

    async fn mark_read(&self, notifications: &[&Notification]) -> AppResult<()> {
        if notifications.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = notifications.iter().map(|one| one.id.as_str()).collect();
        // The ids are those of the Hub, which a header may not be able to hold.
        let key = format!("{}:read-{}", self.claim.task.id, blake3::hash(ids.join("\n").as_bytes()).to_hex());
        Ok(self.hub.client.mark_read(&ids, &key).await?)
    }
}
