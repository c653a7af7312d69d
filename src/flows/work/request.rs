//! What all commands of several runs are requested with, and how a command goes on from its record.

use crate::work::outcome::{WorkOutcome, end_command};
use crate::work::record::{RecordedWork, work_store};
use crate::work::running::{WorkTask, usage};
use agent_core::failure::FailureKind;
use agent_core::work::WorkStopReason;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::prompt::read_prompt;
use agent_run::request::RunRequest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a command of several runs is requested with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WorkRequest {
    /// The task; for `-` and without one it is read from standard input.
    pub task: Option<String>,
    /// The request of each run; its budget, tokens and time limit all runs together.
    pub run: RunRequest,
    /// Id of the record with which the command goes on.
    #[serde(skip)]
    pub record: Option<String>,
}

impl WorkRequest {
    /// Returns the task. For `-` and without a task, the task is read from standard input.
    ///
    /// # Errors
    /// Fails for a task that is missing or empty.
    pub fn read_task(&self, app: &App) -> AppResult<WorkTask> {
        Ok(match &self.record {
            Some(id) => WorkTask::Recorded(id.clone()),
            None => WorkTask::New(read_prompt(&app.terminal, self.task.clone())?.into()),
        })
    }
}

/// A command of several runs, with what it was requested with.
pub trait WorkCommand: Default + Serialize + DeserializeOwned {
    /// Its name.
    const NAME: &'static str;

    /// Returns what every command has.
    fn work(&self) -> &WorkRequest;

    /// Returns what every command has.
    fn work_mut(&mut self) -> &mut WorkRequest;

    /// Returns an option that is set and cannot change when the command goes on.
    fn fixed_option(&self) -> Option<&'static str> {
        None
    }

    /// Returns two options that are set and exclude each other: one may come from the record, the other from the command line that resumes it.
    fn conflict(&self) -> Option<[&'static str; 2]> {
        None
    }

    /// Performs the command.
    ///
    /// # Errors
    /// Fails when it cannot begin, and when its record cannot be written.
    fn perform(self, app: &App) -> AppResult<WorkOutcome>;
}

/// Performs a command, writes its result and returns the exit code.
pub fn perform<C: WorkCommand>(app: &App, command: C) -> u8 {
    let request = command.work().run.clone();
    let done = command.perform(app);
    end_command(app, C::NAME, &request, done)
}

/// Goes on with the command of the record `id` as it was requested, but for what `added` sets; writes its result and returns the exit code.
pub fn resume<C: WorkCommand>(app: &App, id: &str, added: &C) -> u8 {
    match recorded(app, id, added) {
        Ok(command) => perform(app, command),
        Err(error) => end_command(app, C::NAME, &added.work().run, Err(error)),
    }
}

/// Returns the command of the record `id`, with what `added` sets.
///
/// # Errors
/// Fails for an unknown record, one of another command or directory, one that ended with success, an option that cannot change, and
/// options that exclude each other.
fn recorded<C: WorkCommand>(app: &App, id: &str, added: &C) -> AppResult<C> {
    if let Some(option) = added.fixed_option() {
        return Err(usage(messages::fixed_option(option)));
    }
    let settings = app.load(&added.work().run.effective_overrides())?.settings;
    let (work, _) = RecordedWork::read(&work_store(&settings), id)?;
    let refuse = |why: String| AppError::new(FailureKind::Session, why);
    let unreadable = |why: &str| refuse(messages::work_unreadable(id, why));
    if work.start.command != C::NAME {
        return Err(refuse(messages::other_work(id, &work.start.command)));
    }
    if work.start.directory != app.environment.current_dir().to_string_lossy() {
        return Err(refuse(messages::other_directory(id, &work.start.directory)));
    }
    if work.start.request.is_null() {
        return Err(unreadable("its request is missing"));
    }
    if work.result.is_some_and(|result| result.stop_reason == Some(WorkStopReason::Done)) {
        return Err(refuse(messages::work_is_done(id)));
    }
    let request = to_value(added)
        .and_then(|added| Ok(overlaid(work.start.request, added, &to_value(&C::default())?)))?;
    let mut command: C = serde_json::from_value(request).map_err(|error| unreadable(&error.to_string()))?;
    let overrides = &command.work().run.overrides;
    let network =
        (overrides.allow_net && !overrides.allow_host.is_empty()).then_some(["--allow-net", "--allow-host"]);
    if let Some([one, other]) = network.or_else(|| command.conflict()) {
        return Err(usage(messages::conflicting_options(one, other)));
    }
    command.work_mut().record = Some(id.to_owned());
    Ok(command)
}

/// Returns a request as JSON, as a record keeps it.
///
/// # Errors
/// Fails for a path that is not UTF-8.
pub fn to_value<C: Serialize>(command: &C) -> AppResult<Value> {
    serde_json::to_value(command).map_err(|error| usage(error.to_string()))
}

/// Returns `recorded` with what `added` sets: a value that differs from the `default` takes the place of the recorded one, and the elements of
/// a list are added to the recorded ones.
fn overlaid(recorded: Value, added: Value, default: &Value) -> Value {
    match (recorded, added) {
        (Value::Object(mut recorded), Value::Object(added)) => {
            for (key, value) in added {
                let value = match recorded.remove(&key) {
                    Some(known) => overlaid(known, value, default.get(&key).unwrap_or(&Value::Null)),
                    None => value,
                };
                recorded.insert(key, value);
            }
            Value::Object(recorded)
        }
        (Value::Array(recorded), Value::Array(added)) => recorded.into_iter().chain(added).collect(),
        (recorded, added) => {
            if added == *default {
                recorded
            } else {
                added
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_set_takes_the_place_of_what_is_recorded_and_lists_are_added_to() {
        let default = json!({"limits": {"steps": null, "budget": null}, "checks": [], "quiet": false});
        let recorded = json!({"limits": {"steps": 3, "budget": 1.5}, "checks": ["a"], "quiet": true});
        let added = json!({"limits": {"steps": 9, "budget": null}, "checks": ["b"], "quiet": false});
        let expected = json!({"limits": {"steps": 9, "budget": 1.5}, "checks": ["a", "b"], "quiet": true});
        assert_eq!(overlaid(recorded, added, &default), expected);
    }

    #[test]
    fn what_the_record_of_an_earlier_version_does_not_have_is_as_if_it_was_not_set() {
        assert_eq!(
            overlaid(json!({}), json!({"quiet": false}), &json!({"quiet": false})),
            json!({"quiet": false})
        );
    }

    #[test]
    fn a_request_keeps_everything_but_the_key() {
        let mut work = WorkRequest { task: Some("t".to_owned()), ..WorkRequest::default() };
        work.run.overrides.api_key = Some(agent_core::secret::Secret::new("secret"));
        work.run.overrides.model = Some("p/m".to_owned());
        work.run.checks = vec!["true".to_owned()];
        let value = serde_json::to_value(&work).unwrap();
        assert!(!value.to_string().contains("secret"), "{value}");
        let read: WorkRequest = serde_json::from_value(value).unwrap();
        assert_eq!((read.task, read.run.checks), (Some("t".to_owned()), vec!["true".to_owned()]));
        assert_eq!(read.run.overrides.model.as_deref(), Some("p/m"));
    }
}
