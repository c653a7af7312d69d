//! Tests of how options resolve to a server, a model and a key.

use super::*;
use crate::endpoint_overrides::EndpointOverrides;

fn chosen(options: &ModelOptions, environment: &[(&str, &str)]) -> Result<ModelChoice, ConnectError> {
    let variable =
        |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    choose(options, &variable, &provider_table::built_in_providers().unwrap())
}

fn options(model: Option<&str>, base: Option<&str>) -> ModelOptions {
    ModelOptions {
        model: model.map(str::to_owned),
        api_base: base.map(str::to_owned),
        ..ModelOptions::default()
    }
}

fn server(model: Option<&str>, base: Option<&str>, environment: &[(&str, &str)]) -> (String, Option<String>) {
    match chosen(&options(model, base), environment).unwrap() {
        ModelChoice::Server(target) => (target.base.unwrap(), target.model),
        ModelChoice::Probe(_) => panic!("probes"),
    }
}

const HERE: &str = "http://127.0.0.1:9/v1";

#[test]
fn a_model_is_found_by_provider_by_base_or_by_the_only_key() {
    let model = |name: &str| Some(name.to_owned());
    assert_eq!(server(Some("groq/m/x"), None, &[]), ("https://api.groq.com/openai/v1".into(), model("m/x")));
    assert_eq!(server(Some("groq/m"), Some(HERE), &[]), (HERE.into(), model("m")));
    assert_eq!(server(Some("acme/m"), Some(HERE), &[]), (HERE.into(), model("acme/m")));
    assert_eq!(server(Some("local/m"), Some(HERE), &[]), (HERE.into(), model("m")));
    assert_eq!(server(None, Some(HERE), &[]), (HERE.into(), None));
    let key = [("XAI_API_KEY", "k")];
    assert_eq!(server(Some("m"), None, &key), ("https://api.x.ai/v1".into(), model("m")));
    // Both of OpenAI's formats share a key; the first row is meant unless the provider is named.
    let key = [("OPENAI_API_KEY", "k")];
    let Ok(ModelChoice::Server(target)) = chosen(&options(Some("m"), None), &key) else {
        panic!("no server")
    };
    assert_eq!(target.provider.unwrap().name, "openai");
}

// Fault C6: a model that the table lists was "not known" without its provider.
#[test]
fn a_listed_model_needs_no_provider_where_only_one_has_it() {
    let openai = ("https://api.openai.com/v1".to_owned(), Some("gpt-4.1".to_owned()));
    assert_eq!(server(Some("gpt-4.1"), None, &[]), openai);
    let keys = [("XAI_API_KEY", "k"), ("OPENAI_API_KEY", "k")];
    assert_eq!(server(Some("gpt-4.1"), None, &keys), openai);
    let error = chosen(&options(Some("glm-5.1"), None), &keys).unwrap_err().message;
    assert_eq!(error, "several providers have `glm-5.1`: --model zai/glm-5.1, --model dashscope/glm-5.1");
}

#[test]
fn u18_a_model_without_a_provider_is_that_of_the_provider_that_has_it() {
    let anthropic = ("https://api.anthropic.com/v1".to_owned(), Some("claude-sonnet-4-5".to_owned()));
    for keys in [&[][..], &[("OPENAI_API_KEY", "k")], &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]]
    {
        assert_eq!(server(Some("claude-sonnet-4-5"), None, keys), anthropic);
    }
    let message = |model: &str, keys: &[(&str, &str)]| {
        let error = chosen(&options(Some(model), None), keys).unwrap_err();
        assert_eq!(error.kind, FailureKind::Config);
        error.message
    };
    let close = message("gpt-4.1-minni", &[]);
    assert!(close.contains("did you mean openai/gpt-4.1-mini") && !close.contains("configured"), "{close}");
    let unknown = message("zzz", &[("XAI_API_KEY", "k"), ("GROQ_API_KEY", "k")]);
    assert!(unknown.contains("--model PROVIDER/zzz") && !unknown.contains("mean"), "{unknown}");
}

#[test]
fn another_name_of_a_provider_counts_where_no_address_is_given() {
    let name = |model: &str, base: Option<&str>| match chosen(&options(Some(model), base), &[]).unwrap() {
        ModelChoice::Server(target) => (target.provider.map(|provider| provider.name), target.model.unwrap()),
        ModelChoice::Probe(_) => panic!("probes"),
    };
    assert_eq!(name("google/gemma", None), (Some("gemini".into()), "gemma".into()));
    assert_eq!(name("google/gemma", Some(HERE)), (None, "google/gemma".into()));
    assert_eq!(name("gemini/gemma", Some(HERE)), (Some("gemini".into()), "gemma".into()));
}

#[test]
fn an_address_that_only_the_user_knows_comes_from_a_variable_or_is_asked_for() {
    let azure = options(Some("azure/gpt"), None);
    let base = [("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com/")];
    assert_eq!(server(Some("azure/gpt"), None, &base).0, "https://me.openai.azure.com/");
    assert_eq!(server(Some("azure/gpt"), Some(HERE), &base).0, HERE);
    let ModelChoice::Server(target) = chosen(&azure, &[]).unwrap() else { panic!("probes") };
    let error = key(&azure, &target, &|_| None).unwrap_err();
    for word in ["AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "--api-base"] {
        assert!(error.kind == FailureKind::Auth && error.message.contains(word), "{error}");
    }
}

#[test]
fn without_key_and_endpoint_the_error_lists_three_options() {
    let error = chosen(&options(None, None), &[]).unwrap_err();
    assert_eq!(error.kind, FailureKind::Auth);
    for way in ["OPENAI_API_KEY", "--model local/", "agent demo"] {
        assert!(error.message.contains(way), "{error}");
    }
    let on_terminal = ModelOptions { probe_local: true, ..ModelOptions::default() };
    assert_eq!(chosen(&on_terminal, &[]), Ok(ModelChoice::Probe(None)));
    assert_eq!(chosen(&options(Some("local/m"), None), &[]), Ok(ModelChoice::Probe(Some("m".into()))));
}

#[test]
fn an_unclear_choice_is_an_error_that_says_what_to_add() {
    let error = chosen(&options(Some("opnai/m"), None), &[]).unwrap_err();
    assert!(error.kind == FailureKind::Config && error.message.contains("did you mean `openai`"), "{error}");
    let keys = [("XAI_API_KEY", "k"), ("GROQ_API_KEY", "k")];
    assert!(chosen(&options(Some("m"), None), &keys).unwrap_err().message.contains("PROVIDER/m"));
    assert!(chosen(&options(None, None), &keys).unwrap_err().message.contains("--model groq/"));
}

#[test]
fn the_key_is_the_given_one_the_named_variable_or_the_providers() {
    let key_of = |options: &ModelOptions, environment: &[(&str, &str)]| {
        let variable = |name: &str| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let ModelChoice::Server(target) =
            choose(options, &variable, &provider_table::built_in_providers().unwrap()).unwrap()
        else {
            panic!("probes")
        };
        key(options, &target, &variable).map(|key| key.secret.map(|secret| secret.expose().to_owned()))
    };
    let environment = [("OPENAI_API_KEY", "own"), ("OTHER", "other")];
    let openai = options(Some("openai/m"), None);
    assert_eq!(key_of(&openai, &environment), Ok(Some("own".into())));
    let named = ModelOptions { api_key_env: Some("OTHER".into()), ..openai.clone() };
    assert_eq!(key_of(&named, &environment), Ok(Some("other".into())));
    let given = ModelOptions { api_key: Some(Secret::new("given")), ..named.clone() };
    assert_eq!(key_of(&given, &environment), Ok(Some("given".into())));
    assert_eq!(key_of(&openai, &[]).unwrap_err().kind, FailureKind::Auth);
    assert!(key_of(&named, &[]).unwrap_err().message.contains("OTHER"));
    // A custom server gets no provider's key unless the provider is named; it may work without a key.
    assert_eq!(key_of(&options(Some("m"), Some(HERE)), &environment), Ok(None));
    assert_eq!(key_of(&options(Some("m"), Some("https://example.org/v1")), &[]), Ok(None));
}

#[test]
fn ollama_gets_its_own_format_for_every_common_base() {
    let table = provider_table::built_in_providers().unwrap();
    let ollama = table.into_iter().find(|provider| provider.name == "ollama").unwrap();
    let found_server = discovery::LocalServer { provider: ollama, models: vec!["qwen3:8b".into()] };
    let target = choose_local(vec![found_server], Some("qwen3")).unwrap();
    let codec = target.provider.unwrap().codec();
    assert_eq!((codec.name(), target.model.as_deref()), ("ollama", Some("qwen3:8b")));
    for base in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/api/", "http://h:1/api/chat"] {
        assert_eq!(EndpointOverrides::default().api_base(base, codec.as_ref(), "qwen3:8b"), "http://h:1");
    }
}
