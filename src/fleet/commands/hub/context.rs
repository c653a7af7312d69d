//! The Hub of a worker: its client, its settings, and the definitions of its agents.

use crate::hub::client::HubClient;
use agent_config::agent_definition::AgentDefinition;
use agent_config::grants::{GrantPolicy, Grants};
use agent_config::hub::HubSettings;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest time for which a definition is kept, in seconds: a day.
const MAX_CACHE_SECONDS: u64 = 24 * 60 * 60;

/// A definition, and until when it is kept.
type Kept = (Instant, Rc<AgentDefinition>);

/// The Hub.
pub struct HubContext {
    /// The client.
    pub client: HubClient,
    /// The section `hub` of the configuration.
    pub settings: HubSettings,
    policies: BTreeMap<String, GrantPolicy>,
    definitions: RefCell<BTreeMap<String, Kept>>,
}

impl HubContext {
    /// Creates the client of the configured Hub, which connects with the first request.
    ///
    /// # Errors
    /// Fails for an address to which no key may be sent, and without the key.
    pub fn new(app: &App, settings: &Settings) -> AppResult<Self> {
        let hub = settings.hub.clone();
        let key = app.environment.get(&hub.key_env);
        let missing = || format!("the environment variable {} (hub.key_env) is not set", hub.key_env);
        let key = key.ok_or_else(|| AppError::new(FailureKind::Config, missing()))?;
        let client = HubClient::new(&hub.url, Some(key))?;
        let policies = settings.fleet.grants.clone();
        Ok(Self { client, settings: hub, policies, definitions: RefCell::default() })
    }

    /// Returns the definition of an agent; `warn` gets the keys of its file without effect.
    ///
    /// # Errors
    /// Fails without one, and for one that is not valid.
    pub fn definition(&self, id: &str, warn: impl Fn(&str)) -> AppResult<Rc<AgentDefinition>> {
        let Some(directory) = &self.settings.agents else {
            return Ok(Rc::new(AgentDefinition::of_worker()));
        };
        let kept = self.definitions.borrow().get(id).cloned();
        if let Some((until, definition)) = kept
            && Instant::now() < until
        {
            return Ok(definition);
        }
        let wrong = |error| AppError { kind: FailureKind::Config, cause: error };
        let read = AgentDefinition::read(Path::new(directory), id).map_err(|error| wrong(error.into()))?;
        let missing = || format!("there is no {directory}/{id}/config.yaml for this agent");
        let definition = Rc::new(read.ok_or_else(|| AppError::new(FailureKind::Config, missing()))?);
        definition.warnings.iter().for_each(|key| warn(&format!("{directory}/{id}/config.yaml: {key}")));
        let until = Instant::now() + Duration::from_secs(definition.cache_seconds.min(MAX_CACHE_SECONDS));
        self.definitions.borrow_mut().insert(id.to_owned(), (until, Rc::clone(&definition)));
        Ok(definition)
    }

    /// Returns the grants of an agent with this definition.
    pub fn grants(&self, id: &str, definition: &AgentDefinition) -> Grants {
        Grants::of(id, &definition.grants, &self.policies)
    }

    /// Forgets the definition of an agent, or those of all, so that they are read again.
    pub fn forget_definitions(&self, id: Option<&str>) {
        self.definitions.borrow_mut().retain(|known, _| id.is_some_and(|id| known != id));
    }
}
