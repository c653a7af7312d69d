//! Tests of agents, from files and from the configuration.

use super::*;

#[test]
fn the_built_in_agents_have_their_limits_and_tools() {
    let agents = Fixture::new().loaded().settings.agents;
    let facts: Vec<_> =
        agents.iter().map(|a| (a.name.as_str(), a.mode, a.max_steps, a.allowed_tools.len())).collect();
    assert_eq!(
        facts,
        [
            ("build", Mode::ConfirmSensitive, 50, 0),
            ("explore", Mode::Yolo, 15, 5),
            ("plan", Mode::Yolo, 20, 6),
            ("resume", Mode::Yolo, 15, 5),
            ("review", Mode::Yolo, 20, 5),
            ("test", Mode::Yolo, 15, 6),
        ]
    );
    for agent in agents {
        assert!(agent.prompt.len() < 3 << 10, "{}: {} bytes", agent.name, agent.prompt.len());
        assert!(agent.built_in && !agent.overridden && !agent.description.is_empty());
    }
}

#[test]
fn f05_an_override_changes_only_the_keys_it_sets() {
    let agents = Fixture::new().user("agents:\n  build:\n    max_steps: 5\n").loaded().settings.agents;
    let build = agents::select(&agents, "build").unwrap();
    assert_eq!((build.max_steps, build.mode), (5, Mode::ConfirmSensitive));
    assert!(build.prompt.contains("Analyse") && build.overridden);
    assert!(!agents::select(&agents, "plan").unwrap().overridden);
}

#[test]
fn f05_a_users_agent_has_the_form_of_the_built_in_ones() {
    let fixture = Fixture::new()
        .file(
            "home/.config/agent/agents/docs.md",
            "---\ndescription: Writes\ntools: [read_file]\nmode: yolo\nmax_steps: 3\n---\n\nWrite docs.\n",
        )
        .file("project/.agent/agents/plain.md", "Only a prompt.\n")
        .file("project/.agent/agents/notes.txt", "not an agent")
        .user("agents:\n  docs:\n    max_steps: 4\n  short:\n    system_prompt: Be short.\n");
    let agents = fixture.loaded().settings.agents;
    let docs = agents::select(&agents, "docs").unwrap();
    assert_eq!((docs.prompt.as_str(), docs.mode, docs.max_steps), ("Write docs.", Mode::Yolo, 4));
    assert_eq!(docs.allowed_tools, ["read_file"]);
    let plain = agents::select(&agents, "plain").unwrap();
    assert_eq!(
        (plain.prompt.as_str(), plain.mode, plain.max_steps),
        ("Only a prompt.", Mode::ConfirmSensitive, 20)
    );
    assert_eq!(agents::select(&agents, "short").unwrap().prompt, "Be short.");
}

// Fault A16: files of other clients have such descriptions.
#[test]
fn the_description_of_an_agent_needs_no_quotes() {
    for text in ["Use it for: docs", "[docs] writer", "@docs", "`docs` only"] {
        let file = format!("---\ndescription: {text}\n---\nYou write docs.\n");
        let agents = Fixture::new().file("home/.config/agent/agents/docs.md", &file).loaded().settings.agents;
        assert_eq!(agents::select(&agents, "docs").unwrap().description, text);
    }
}

#[test]
fn an_agents_file_that_is_wrong_names_its_line() {
    let cases = [
        (
            "---\nmode: yolo\nmaxsteps: 3\n---\nx\n",
            Some(3),
            "maxsteps: unknown key (did you mean `max_steps`?)",
        ),
        ("---\nmode: yolo\n", Some(1), "the front matter does not end within 16384 bytes"),
        ("---\nmode: [\n---\nx\n", None, "not valid YAML"),
        ("---\nmax_steps: 0\n---\nx\n", Some(2), "must be a whole number from 1 to 10000 steps"),
        ("---\nmode: yolo\n---\n\n", None, "has no instructions"),
    ];
    for (text, line, expected) in cases {
        let error = Fixture::new().file("home/.config/agent/agents/x.md", text).error();
        assert!(line.is_none() || error.line == line, "{text}: {error}");
        assert!(
            error.to_string().contains(expected) && error.to_string().contains("x.md"),
            "{text}: {error}"
        );
    }
    let error = Fixture::new().file("project/.agent/agents/a b.md", "x").error();
    assert!(error.to_string().starts_with(".agent/agents/a b.md: the name of an agent"), "{error}");
    let long =
        format!("---\ndescription: {}\n---\nx\n", "y".repeat(crate::front_matter::MAX_FRONT_MATTER_BYTES));
    assert!(
        Fixture::new().file("home/.config/agent/agents/x.md", long).error().message.contains("does not end")
    );
}

#[test]
fn an_unknown_agent_lists_all_names() {
    let flags = Overrides { agent: Some("biuld".into()), ..Overrides::default() };
    assert_eq!(
        Fixture::new().load(&flags).unwrap_err().to_string(),
        "there is no agent `biuld`; the agents are: build, explore, plan, resume, review, test (did you mean `build`?)"
    );
    let error = Fixture::new().user("agents:\n  reviw:\n    max_steps: 3\n").error();
    assert_eq!(location(&error), ("config.yaml".into(), Some(3)));
    assert!(
        error
            .to_string()
            .contains("agents.reviw: there is no agent of this name to override (did you mean `review`?)")
    );
}

#[test]
fn the_mode_of_the_higher_layer_holds_and_within_a_layer_the_agents_own() {
    let mode = |fixture: Fixture, flags: &Overrides| fixture.load(flags).unwrap().settings.agent.mode;
    let none = Overrides::default();
    assert_eq!(mode(Fixture::new().user("mode: yolo\n"), &none), Mode::Yolo);
    let both = "mode: yolo\nagents: {build: {mode: confirm-all}}\n";
    assert_eq!(mode(Fixture::new().user(both), &none), Mode::ConfirmAll);
    let flags = Overrides { mode: Some(Mode::Yolo), ..Overrides::default() };
    assert_eq!(mode(Fixture::new().user(both), &flags), Mode::Yolo);
    assert_eq!(mode(Fixture::new().user(both).project("mode: confirm-all\n"), &none), Mode::ConfirmAll);
}
