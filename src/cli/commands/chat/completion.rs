//! Completion at the prompt of `agent chat`: slash commands with their values, and paths after `@` and `/image`.

use super::{rewind, slash_commands};
use crate::commands::endpoint_models;
use crate::commands::first_model::providers_with_keys;
use agent_config::settings::Settings;
use agent_core::language::Language;
use agent_engine::policy::Mode;
use agent_journal::session_store::SessionStore;
use agent_llm::effort::Effort;
use agent_llm::model_table::{Model, built_in_models, matches_filter};
use agent_llm::provider_table::{self, Provider};
use agent_messages as messages;
use agent_redactor::Redactor;
use agent_run::app::App;
use agent_run::session::session_store;
use agent_run::session_list::ListedSession;
use agent_run::user_commands::UserCommands;
use agent_runtime::clock::Clock;
use agent_terminal::line_editor::{Candidate, Completion};
use agent_terminal::{first_line, needs_escape};
use agent_text::file_url;
use agent_workspace::Workspace;
use agent_workspace::walk::{EntryKind, FindQuery};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use strum::VariantArray as _;

/// Maximum number of candidates offered.
const MAX_CANDIDATES: usize = 100;

/// Maximum number of sessions offered, and characters of their titles.
const MAX_SESSIONS: usize = 50;
const TITLE_CHARS: usize = 60;

/// Maximum number of files that are searched for a name.
const MAX_FILES: usize = 20_000;

/// Endings of the names of images.
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The completion of commands, values and paths in a conversation.
pub struct ChatCompletion {
    commands: Vec<Candidate>,
    agents: Vec<Candidate>,
    models: Models,
    in_force: Rc<RefCell<InForce>>,
    root: PathBuf,
    /// The directory of the files after `/image`.
    directory: PathBuf,
    sessions: Sessions,
    /// The files of the workspace, read at most once for each `@`.
    files: RefCell<Option<Vec<String>>>,
}

/// What is in force for the next message.
#[derive(Debug, Default)]
pub struct InForce {
    /// The session of the conversation.
    pub session: Option<String>,
    /// The model.
    pub model: String,
    /// The agent.
    pub agent: String,
    /// The mode.
    pub mode: String,
    /// The reasoning effort; empty for that of the model.
    pub effort: String,
}

/// The models that can be chosen.
struct Models {
    /// The model with which the conversation began.
    first: Option<String>,
    /// The models of the server, as last listed by `agent models --endpoint`.
    stored: Vec<String>,
    /// The providers, in the order of the table, and whether each can be used: its key is set, or it needs none.
    providers: Vec<(String, bool)>,
}

impl Models {
    fn new(app: &App, settings: &Settings) -> Self {
        // A table that cannot be read is reported by the first message.
        let table = provider_table::load(&settings.llm.providers).unwrap_or_default();
        let with_keys = providers_with_keys(app, &table);
        let can_be_used = |provider: &Provider| {
            provider.keys.is_empty() || with_keys.iter().any(|(name, _)| *name == provider.name)
        };
        let providers = table.iter().map(|provider| (provider.name.clone(), can_be_used(provider)));
        Self {
            first: settings.llm.model.clone(),
            stored: endpoint_models::stored(settings),
            providers: providers.collect(),
        }
    }

    /// Returns the models whose names contain `typed`: first `current`, then those that can be used.
    fn matching(&self, typed: &str, current: &str) -> Vec<Candidate> {
        let built_in = built_in_models(typed).into_iter().filter(|(name, _)| name.contains('/'));
        let mut known: BTreeMap<String, Option<Model>> =
            built_in.map(|(name, model)| (name.to_owned(), Some(model))).collect();
        for name in self.stored.iter().filter(|name| matches_filter(name, typed) && is_plain(name)) {
            known.entry(name.clone()).or_default();
        }
        let used = self.first.as_deref().into_iter().chain((!current.is_empty()).then_some(current));
        for name in used.filter(|name| matches_filter(name, typed) && is_plain(name)) {
            known.entry(name.to_owned()).or_default();
        }
        let typed = typed.to_lowercase();
        let rank = |name: &str| {
            let (provider, model) = name.split_once('/').unwrap_or(("", name));
            let at = self.providers.iter().position(|(known, _)| known == provider);
            let is_usable = name == current
                || self.is_listed(name)
                || at.is_some_and(|at| self.providers.get(at).is_some_and(|one| one.1));
            (name != current, !is_usable, !model.starts_with(&typed), at.unwrap_or(usize::MAX))
        };
        let mut ranked: Vec<_> = known.into_iter().map(|(name, model)| (rank(&name), name, model)).collect();
        ranked.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        ranked
            .into_iter()
            .take(MAX_CANDIDATES)
            .map(|((is_other, is_unusable, ..), name, model)| {
                let about =
                    messages::model_choice(model.map(|model| (model.input, model.output)), is_unusable);
                Candidate { about, is_in_force: !is_other, ..name.into() }
            })
            .collect()
    }

    fn is_listed(&self, name: &str) -> bool {
        self.stored.iter().chain(&self.first).any(|known| known == name)
    }
}

/// The sessions of the workspace. They are read when the menu opens, and filtered while the user types.
pub struct Sessions {
    store: SessionStore,
    redactor: Arc<Redactor>,
    clock: Rc<Clock>,
    listed: RefCell<Vec<Candidate>>,
    /// The prompts of the session of the conversation.
    prompts: RefCell<Vec<Candidate>>,
}

impl Sessions {
    /// Finds the sessions of a workspace.
    fn new(app: &App, settings: &Settings) -> Self {
        let (store, redactor) = (session_store(settings), app.redactor(settings));
        Self {
            store,
            redactor,
            clock: Rc::clone(&app.source),
            listed: RefCell::default(),
            prompts: RefCell::default(),
        }
    }

    /// Returns the prompts of `session` whose numbers begin with `typed`, the last one first.
    fn prompts(&self, typed: &str, session: Option<&str>) -> Vec<Candidate> {
        if typed.is_empty() {
            let prompts = session.and_then(|id| self.store.prompts(id).ok()).unwrap_or_default();
            let candidates = prompts.iter().enumerate().rev();
            *self.prompts.borrow_mut() = candidates
                .map(|(at, prompt)| {
                    rewind::candidate(at, prompt, |text| self.redactor.text(text).into_owned())
                })
                .collect();
        }
        beginning_with(self.prompts.borrow().iter().cloned(), typed)
    }

    /// Returns the sessions with each word of `typed`, without `current`.
    fn matching(&self, typed: &str, current: Option<&str>) -> Vec<Candidate> {
        if typed.is_empty() {
            let ids = self.store.list().into_iter().flatten().filter(|id| Some(id.as_str()) != current);
            let ids = ids.take(MAX_SESSIONS);
            let read = |id: String| ListedSession::read(&self.store, &self.redactor, id).ok();
            *self.listed.borrow_mut() =
                ids.filter_map(read).map(|session| self.candidate(&session)).collect();
        }
        let listed = self.listed.borrow();
        let fits = |one: &&Candidate| {
            // Without the age, in which each word of a time occurs.
            let about = one.about.split_once(" · ").map_or("", |(_, about)| about);
            let text = format!("{} {about}", one.shown());
            typed.split_whitespace().all(|word| matches_filter(&text, word))
        };
        listed.iter().filter(fits).cloned().collect()
    }

    fn candidate(&self, session: &ListedSession) -> Candidate {
        let age = self.clock.unix_time().saturating_sub(Duration::from_millis(session.last_ms));
        let cost = session.cost_usd.map(|cost| cost.to_string());
        let title = first_line(session.title(), TITLE_CHARS);
        let branch = session.branch.as_deref().map(|branch| first_line(branch, TITLE_CHARS));
        let about = [Some(messages::ago(age)), branch, cost, Some(session.id.clone())];
        let about = about.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        Candidate { label: Some(title), about, ..session.id.clone().into() }
    }
}

impl ChatCompletion {
    /// Creates the completion for a conversation.
    pub fn new(
        app: &App,
        settings: &Settings,
        user_commands: &UserCommands,
        in_force: Rc<RefCell<InForce>>,
    ) -> Self {
        let agents = settings
            .agents
            .iter()
            .map(|agent| Candidate { about: agent.description.clone(), ..agent.name.clone().into() });
        Self {
            commands: slash_commands::candidates(user_commands),
            agents: agents.collect(),
            models: Models::new(app, settings),
            in_force,
            root: settings.workspace.clone(),
            directory: app.environment.current_dir().to_owned(),
            sessions: Sessions::new(app, settings),
            files: RefCell::default(),
        }
    }
}

impl ChatCompletion {
    /// Returns the files of the workspace whose paths contain the letters of `typed` in this order, the best first.
    fn similar_files(&self, typed: &str) -> Vec<String> {
        let mut known = self.files.borrow_mut();
        let files = known.get_or_insert_with(|| files(&self.root));
        let pattern = Pattern::parse(typed, CaseMatching::Smart, Normalization::Smart);
        let matches = pattern.match_list(files.iter(), &mut Matcher::new(Config::DEFAULT.match_paths()));
        matches.into_iter().take(MAX_CANDIDATES).map(|(path, _)| path.clone()).collect()
    }
}

impl Completion for ChatCompletion {
    fn commands(&self, typed: &str) -> Vec<Candidate> {
        beginning_with(self.commands.iter().cloned(), typed)
    }

    fn paths(&self, typed: &str) -> Vec<Candidate> {
        if typed.is_empty() {
            *self.files.borrow_mut() = None;
        }
        let below = paths(&self.root, typed);
        let is_name = !typed.is_empty() && !typed.ends_with('/');
        let similar = if is_name && below.is_empty() { self.similar_files(typed) } else { Vec::new() };
        below.into_iter().chain(similar).map(Candidate::from).collect()
    }

    fn values(&self, line: &str) -> Vec<Candidate> {
        let Some((command, arguments)) = line.split_once(char::is_whitespace) else { return Vec::new() };
        let typed = arguments.rsplit(char::is_whitespace).next().unwrap_or_default();
        let in_force = self.in_force.borrow();
        match command {
            "/mode" => beginning_with(Mode::ALL.into_iter().map(mode).map(marked(&in_force.mode)), typed),
            "/agent" => beginning_with(self.agents.iter().cloned().map(marked(&in_force.agent)), typed),
            "/effort" => {
                let efforts = Effort::VARIANTS.iter().map(|effort| Candidate::from(effort.name().to_owned()));
                beginning_with(efforts.map(marked(&in_force.effort)), typed)
            }
            "/model" => self.models.matching(arguments, &in_force.model),
            "/rewind" if arguments.contains(' ') => {
                let parts = ["files", "conversation"].map(|part| Candidate::from(part.to_owned()));
                beginning_with(parts.into_iter(), typed)
            }
            "/rewind" => self.sessions.prompts(arguments, in_force.session.as_deref()),
            "/resume" => self.sessions.matching(arguments, in_force.session.as_deref()),
            "/image" => {
                let quoted = |path: &String| shlex::try_quote(path).map(Cow::into_owned).ok();
                paths(&self.directory, typed).iter().filter_map(quoted).map(Candidate::from).collect()
            }
            _ => Vec::new(),
        }
    }

    fn takes_arguments(&self, command: &str) -> bool {
        slash_commands::takes_arguments(command.trim_start_matches('/'))
    }

    fn is_choice(&self, command: &str) -> bool {
        ["/model", "/agent", "/mode", "/effort", "/resume"].contains(&command)
    }

    fn is_complete(&self, line: &str) -> bool {
        // Other files may follow, and what of it goes back.
        !line.starts_with("/image ") && !line.starts_with("/rewind ")
    }

    fn image(&self, pasted: &str) -> Option<PathBuf> {
        let pasted = pasted.trim();
        let is_image = |path: &PathBuf| {
            let kind = path.extension().and_then(|kind| kind.to_str()).map(str::to_ascii_lowercase);
            kind.is_some_and(|kind| IMAGES.contains(&kind.as_str())) && path.is_file()
        };
        if let Some(path) = file_url::path(pasted).map(PathBuf::from).filter(is_image) {
            return Some(path);
        }
        let words = shlex::split(pasted)?;
        let [path] = words.as_slice() else { return None };
        Some(self.directory.join(path.strip_prefix("file://").unwrap_or(path))).filter(is_image)
    }
}

fn mode(mode: Mode) -> Candidate {
    let about = messages::mode_meaning(mode.name(), Language::En).to_owned();
    Candidate { about, ..mode.name().to_owned().into() }
}

/// Marks the candidate that is in force.
fn marked(current: &str) -> impl Fn(Candidate) -> Candidate {
    move |candidate| Candidate { is_in_force: candidate.text == current, ..candidate }
}

/// Returns the candidates that begin with what was typed, without those that the terminal must not show.
fn beginning_with(all: impl Iterator<Item = Candidate>, typed: &str) -> Vec<Candidate> {
    all.filter(|candidate| candidate.text.starts_with(typed) && is_plain(&candidate.text)).collect()
}

/// Returns the files below `root`, without ignored ones and those that the terminal must not show.
fn files(root: &Path) -> Vec<String> {
    let found = || {
        let workspace = Workspace::open(root).ok()?;
        let base = workspace.path(".").ok()?;
        let wanted = FindQuery { base: &base, glob: None, directories: false, most: MAX_FILES };
        workspace.find(&wanted, &AtomicBool::new(false)).ok()
    };
    let entries = found().map(|listing| listing.entries).unwrap_or_default();
    entries.iter().map(|entry| entry.path.as_str().to_owned()).filter(|path| is_plain(path)).collect()
}

/// Checks that `name` has no control or invisible characters, because the editor writes it to the terminal.
fn is_plain(name: &str) -> bool {
    !name.chars().any(needs_escape)
}

/// Returns the files and directories below `root` that begin with the path that was typed; none for an unreadable
/// directory, and without those that the terminal must not show.
fn paths(root: &Path, typed: &str) -> Vec<String> {
    let (directory, name) = typed.rsplit_once('/').map_or(("", typed), |(directory, name)| (directory, name));
    let found = || {
        let workspace = Workspace::open(root).ok()?;
        let path = workspace.path(if directory.is_empty() { "." } else { directory }).ok()?;
        workspace.list(&path, None, usize::MAX).ok()
    };
    let entries = found().map(|listing| listing.entries).unwrap_or_default();
    let candidates = entries.iter().filter_map(|entry| {
        let path = entry.path.as_str();
        let file = path.rsplit('/').next().unwrap_or(path);
        let is_hidden = file.starts_with('.') && !name.starts_with('.');
        let end = if entry.kind == EntryKind::Directory { "/" } else { "" };
        (file.starts_with(name) && !is_hidden && is_plain(path)).then(|| format!("{path}{end}"))
    });
    candidates.take(MAX_CANDIDATES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u17_paths_are_completed_below_the_workspace_and_dropped_images_are_found() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        for file in ["src/main.rs", "src/model.rs", "readme.md", "two words.gif", ".hidden"] {
            std::fs::File::create(dir.path().join(file)).unwrap();
        }
        assert_eq!(paths(dir.path(), ""), ["readme.md", "src/", "two words.gif"]);
        assert_eq!(paths(dir.path(), "src/m"), ["src/main.rs", "src/model.rs"]);
        assert_eq!(paths(dir.path(), ".h"), [".hidden"]);
        assert!(paths(dir.path(), "../").is_empty());
        assert!(paths(dir.path(), "/etc/").is_empty());
        let completion = ChatCompletion {
            commands: Vec::new(),
            agents: Vec::new(),
            models: Models {
                first: None,
                stored: vec!["local/qwen3:8b".to_owned()],
                providers: vec![("openai".to_owned(), false), ("groq".to_owned(), true)],
            },
            in_force: Rc::new(RefCell::new(InForce {
                model: "openai/gpt-4.1".to_owned(),
                mode: "auto".to_owned(),
                ..InForce::default()
            })),
            root: dir.path().to_owned(),
            directory: dir.path().to_owned(),
            sessions: Sessions {
                store: SessionStore::new(dir.path().join("sessions")),
                redactor: Arc::default(),
                clock: Rc::new(Clock::manual()),
                listed: RefCell::default(),
                prompts: RefCell::default(),
            },
            files: RefCell::default(),
        };
        let texts = |found: Vec<Candidate>| found.into_iter().map(|one| one.text).collect::<Vec<_>>();
        assert_eq!(texts(completion.values("/image a.png src/ma")), ["src/main.rs"]);
        assert_eq!(texts(completion.values("/image two")), ["'two words.gif'"]);
        assert!(completion.values("/plan src/ma").is_empty());
        assert_eq!(texts(completion.values("/mode con")), ["confirm-all", "confirm-sensitive"]);
        let models = completion.values("/model ");
        assert_eq!((models[0].text.as_str(), models[0].is_in_force), ("openai/gpt-4.1", true));
        assert!(models[1].text.starts_with("groq/") || models[1].text.starts_with("local/"), "{models:?}");
        let mini = &completion.values("/model gpt-4.1-mi")[0];
        assert_eq!((mini.text.as_str(), mini.about.ends_with(" · no key")), ("openai/gpt-4.1-mini", true));
        let modes = completion.values("/mode ");
        assert_eq!(modes.iter().position(|mode| mode.is_in_force), Some(2));
        assert!(texts(completion.values("/model gpt-4.1-mi")).contains(&"openai/gpt-4.1-mini".to_owned()));
        assert_eq!(texts(completion.values("/model qwen3:8")), ["local/qwen3:8b"]);
        assert_eq!(texts(completion.paths("mdl")), ["src/model.rs"], "letters in this order");
        assert!(completion.paths("../").is_empty());
        let image = dir.path().join("two words.gif");
        for pasted in [r"two\ words.gif ", "'two words.gif'", &format!("'file://{}'", image.display())] {
            assert_eq!(completion.image(pasted).as_ref(), Some(&image), "{pasted}");
        }
        let url = format!("file://{}", image.display().to_string().replace(' ', "%20"));
        assert_eq!(completion.image(&url).as_ref(), Some(&image), "{url}");
        for pasted in ["gone.gif", "src/main.rs", "see 'two words.gif'", "src", "'"] {
            assert_eq!(completion.image(pasted), None, "{pasted}");
        }
    }
}
