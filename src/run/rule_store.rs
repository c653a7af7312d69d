//! Writes rules that the user approves at a question into the user's configuration file.

use crate::app::App;
use crate::config_file::ConfigFile;
use crate::error::{AppError, AppResult};
use agent_config::environment::Directories;
use agent_config::load::USER_FILE;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_config::yaml_edit;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_engine::approver::Question;
use agent_engine::policy::{Policy, PolicyOptions};
use agent_engine::rules::{Action, PolicyRule};
use agent_messages as messages;
use agent_redactor::Redactor;
use agent_terminal::{Style, one_line};
use agent_tools::Plan;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// The key of the rules.
const RULES: &str = "policy.rules";
/// Maximum characters of a line about a rule.
const LINE_CHARS: usize = 600;

/// The rules of the policy in the user's configuration file.
pub struct RuleStore {
    app: App,
    redactor: Arc<Redactor>,
    workspace: PathBuf,
    agent: String,
    language: Language,
}

impl RuleStore {
    /// Returns the store of a run. The file is read when a rule is saved.
    pub fn new(app: &App, settings: &Settings) -> Self {
        Self {
            app: app.for_worker(),
            redactor: app.redactor(settings),
            workspace: settings.workspace.clone(),
            agent: settings.policy.agent.clone(),
            language: settings.language,
        }
    }

    /// Returns what [`save`](Self::save) would write where; `None` if there is nothing or no place to write, or if it would contain a secret.
    pub fn offer(&self, question: &Question) -> Option<String> {
        let rule = shown(question.rule_for_good.as_ref()?)?;
        let offer = messages::saved_rule(&self.file()?, &rule, self.language);
        (self.redactor.text(&offer) == offer).then_some(offer)
    }

    /// Adds the rule of `question` to the user's file. Returns the line about it for the user, which is a warning unless the rule now allows the call.
    pub fn save(&self, question: &Question) -> (Style, String) {
        let (style, line) = match question.rule_for_good.as_ref().map(|rule| self.write(question, rule)) {
            Some(Ok(line)) => line,
            Some(Err(error)) => {
                (Style::Warning, messages::rule_not_saved(&format!("{:#}", error.cause), self.language))
            }
            None => return (Style::Warning, String::new()),
        };
        (style, one_line(&self.redactor.text(&line), LINE_CHARS))
    }

    fn write(&self, question: &Question, rule: &PolicyRule) -> AppResult<(Style, String)> {
        let mut value = serde_json::to_value(rule).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, field| !field.is_null());
        }
        let file = ConfigFile::read(&self.app, self.flags(), false)?;
        let edit = yaml_edit::append(&file.text, RULES, &value).map_err(|error| file.refused(error))?;
        file.replace(&edit.text, &[RULES])?;
        let place = format!("{}:{}", self.file().unwrap_or_else(|| file.shown.clone()), edit.line);
        let rule_text = shown(rule).unwrap_or_default();
        let problem = match self.other_decision(question, rule) {
            Ok(None) => return Ok((Style::Dim, messages::rule_saved(&place, &rule_text, self.language))),
            Ok(Some(other)) => messages::other_decides(&other, self.language),
            Err(error) => format!("{:#}", error.cause),
        };
        let line = messages::rule_saved_without_effect(&place, &rule_text, &problem, self.language);
        Ok((Style::Warning, line))
    }

    /// Returns what decides on the call of `question` other than a rule that allows it, by the files as they are now.
    fn other_decision(&self, question: &Question, rule: &PolicyRule) -> AppResult<Option<String>> {
        let settings = self.app.load(&self.flags())?.settings;
        let options = PolicyOptions { agent: self.agent.clone(), ..settings.policy };
        let policy = Policy::new(options)
            .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
        let command = question.arguments.get("command").and_then(Value::as_str);
        let command = rule.command.as_deref().map(|prefix| command.unwrap_or(prefix).to_owned());
        let plan = Plan { command, host: rule.host.clone(), ..Plan::default() };
        Ok(match policy.ruling(&question.tool, &plan) {
            Some(ruling) if ruling.action == Action::Allow => None,
            Some(ruling) => Some(ruling.rule),
            None => Some(format!("mode {}", policy.mode().name())),
        })
    }

    fn flags(&self) -> Overrides {
        Overrides { workspace: Some(self.workspace.clone()), ..Overrides::default() }
    }

    /// Returns the user's file for the user; `None` without a home directory.
    fn file(&self) -> Option<String> {
        let directory = Directories::from_environment(&self.app.environment).ok()?.config;
        Some(self.app.environment.shown_path(&directory.join(USER_FILE)).display().to_string())
    }
}

/// Returns a rule as the user reads it; `None` for one without a condition besides the tool.
fn shown(rule: &PolicyRule) -> Option<String> {
    let command = rule.command.as_ref().map(|prefix| format!("{prefix} …"));
    let condition = command.or_else(|| rule.host.clone())?;
    Some(messages::allow_rule(rule.tool.as_deref()?, &condition, rule.confined == Some(true)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;
    use agent_config::environment::Environment;
    use agent_core::message::CallKey;
    use std::fs;
    use std::path::Path;

    /// Asks about `command`, whose first words would become a rule.
    fn question(command: &str, prefix: &str) -> Question {
        let rule = PolicyRule {
            command: Some(prefix.to_owned()),
            confined: Some(true),
            ..PolicyRule::allow("run_command")
        };
        Question {
            call: CallKey::new(None, "c"),
            tool: "run_command".to_owned(),
            arguments: serde_json::json!({ "command": command }),
            summary: String::new(),
            reason: String::new(),
            rule: String::new(),
            notes: Vec::new(),
            preview: None,
            always_scope: String::new(),
            rule_for_good: Some(rule),
        }
    }

    fn store(home: &Path) -> RuleStore {
        let variables = [("AGENT_HOME", home.join(".agent")), ("HOME", home.to_owned())];
        let variables = variables.map(|(name, path)| (name.to_owned(), path.display().to_string()));
        let app = App::new(Environment::from_variables(variables.into(), home));
        let flags = Overrides { workspace: Some(home.to_owned()), ..Overrides::default() };
        let settings = app.load(&flags).unwrap().settings;
        RuleStore::new(&app, &settings)
    }

    #[test]
    fn u09_a_rule_is_written_into_the_users_file_with_its_place_and_how_to_take_it_back() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".agent/config.yaml");
        let store = store(home.path());
        let asked = question("npm test -q", "npm test");
        let offer = "~/.agent/config.yaml, for every project and mode: allow run_command \"npm test …\" if it can be undone and stays in the workspace";
        assert_eq!(store.offer(&asked).unwrap(), offer);
        let (style, line) = store.save(&asked);
        let written = "Written to ~/.agent/config.yaml:3: allow run_command \"npm test …\" if it can be undone and stays in the workspace. To take it back, delete the rule there; this conversation allows it until it ends.";
        assert_eq!((style, line.as_str()), (Style::Dim, written));
        let first = "policy:\n  rules:\n    - {action: allow, tool: run_command, command: \"npm test\", confined: true}\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), first);
        let (_, line) = store.save(&question("make", "make"));
        assert!(line.contains("config.yaml:4: allow run_command \"make …\""), "{line}");
        let both =
            format!("{first}    - {{action: allow, tool: run_command, command: make, confined: true}}\n");
        assert_eq!(fs::read_to_string(&file).unwrap(), both);
        let host = PolicyRule { host: Some("example.org".to_owned()), ..PolicyRule::allow("web_fetch") };
        let asked = question("", "");
        let asked = Question { tool: "web_fetch".to_owned(), rule_for_good: Some(host), ..asked };
        let (style, line) = store.save(&asked);
        assert!(style == Style::Dim && line.contains(":5: allow web_fetch \"example.org\""), "{line}");
    }

    #[test]
    fn u09_a_rule_that_another_one_precedes_or_that_cannot_be_written_is_not_claimed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".agent/config.yaml");
        fs::create_dir(home.path().join(".agent")).unwrap();
        fs::write(&file, "# mine\npolicy:\n  rules:\n    - {action: ask, command: npm}  # all\n").unwrap();
        let store = store(home.path());
        let (style, line) = store.save(&question("npm test", "npm test"));
        assert_eq!(style, Style::Warning);
        assert!(line.contains("no effect on this call: policy.rules[0] decides on it"), "{line}");
        fs::write(&file, "policy: [\n").unwrap();
        let (style, line) = store.save(&question("npm test", "npm test"));
        assert_eq!(style, Style::Warning);
        assert!(line.starts_with("Nothing was written: ") && line.contains("config.yaml"), "{line}");
        assert!(line.ends_with("Allowed in this conversation only."), "{line}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "policy: [\n");
        // What no rule can say is not offered.
        assert_eq!(store.offer(&Question { rule_for_good: None, ..question("a", "a") }), None);
    }
}
