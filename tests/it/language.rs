//! The language of closings, refusals and the human log.

use crate::support::calls::{call, results, script, write};
use crate::support::run::{Finished, Lab};
use crate::support::server::Server;
use crate::support::terminal::AtTerminal;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A model that reads, and then sums up if it is asked to.
const READS: &str =
    "turns: [{calls: [{name: read_file, arguments: {path: a.txt}}]}, {text: 'hecho: leer a.txt'}]";

/// A run that reaches its limit after a step ends with these flags.
const ONE_STEP: &[&str] = &["--max-steps", "1"];

fn spanish() -> Lab {
    Lab::with_a_txt().env("AGENT_LANGUAGE", "es")
}

/// Checks that a text has these parts, wherever its lines are broken.
fn has(text: &str, parts: &[&str]) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(words(text).contains(&words(part)), "no `{part}` in:\n{text}");
    }
}

/// What the model is told last before it closes.
fn told_at_the_end(lab: &Lab) -> String {
    let server = Server::start(READS);
    lab.run(&server, ONE_STEP).exits(2);
    let requests = server.requests();
    let messages = requests.last().unwrap().messages();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// Every key below `value`, with the keys above it.
fn keys(value: &Value, above: &str, all: &mut BTreeSet<String>) {
    if let Value::Object(object) = value {
        for (key, value) in object {
            all.insert(format!("{above}.{key}"));
            keys(value, &format!("{above}.{key}"), all);
        }
    }
}

#[test]
fn o23_the_model_is_asked_to_close_in_the_language_that_is_set() {
    has(&told_at_the_end(&Lab::with_a_txt()), &["[SYSTEM] The step limit of this run is reached"]);
    has(
        &told_at_the_end(&spanish()),
        &["[SYSTEM] Se alcanzó el límite de pasos de esta ejecución", "Responder ahora, en texto"],
    );
}

#[test]
fn o23_the_fixed_closing_is_in_the_language_that_is_set() {
    let closed = |lab: Lab| {
        let server = Server::start(READS);
        lab.config("loop: {on_limit: stop}\n").run(&server, ONE_STEP).exits(2).stdout
    };
    has(
        &closed(Lab::with_a_txt()),
        &["The run ended early (max_steps: the step limit was reached (1)) after 1 step."],
    );
    has(
        &closed(spanish()),
        &["La ejecución terminó antes de tiempo (max_steps: se alcanzó el límite de pasos (1)) tras 1 paso."],
    );
}

// Fault B29: stays; the summaries of calls, which the document has too, are English in every language.
#[test]
fn o23_the_log_is_told_in_the_language_that_is_set() {
    let told = |lab: &Lab| {
        let server = Server::start(READS);
        lab.run(&server, &["-vv"]).exits(0).stderr
    };
    has(
        &told(&spanish()),
        &[
            "sesión ",
            "agente build, modo confirm-sensitive",
            "espacio de trabajo ",
            "herramientas: ",
            "Paso 1: llamada al modelo (2 mensajes)",
            "petición enviada, intento 1",
            "El modelo respondió con 1 llamada a herramientas",
            "Herramienta read_file: a.txt",
            "El modelo respondió con texto final",
            "El agente terminó (2 pasos)",
            "Motivo: el modelo decidió que había terminado",
            "Estado: success (llm_done) | Pasos: 2 | Llamadas a herramientas: 1 | Tokens: ",
        ],
    );
    has(&told(&Lab::with_a_txt()), &["Step 1: model call (2 messages)", "Agent completed (2 steps)"]);
}

/// A run whose two calls are refused: nobody can be asked about the one, the other is of a sensitive file.
fn refused(lab: Lab) -> (Vec<String>, Finished) {
    let calls = vec![write("new.txt", "x"), call("read_file", &json!({"path": "key.pem"}))];
    let lab = lab.file("key.pem", "k").config("guardrails: {sensitive_files: ['*.pem']}\n");
    let server = Server::start(&script(&[calls]));
    let done = lab.run(&server, &[]).exits(0);
    (results(&server), done)
}

#[test]
fn o23_refusals_and_remedies_are_told_in_the_language_that_is_set() {
    let (results, done) = refused(spanish());
    has(
        &results[0],
        &["`write_file` necesita una confirmación, y esta ejecución no admite preguntas", "`--mode yolo`"],
    );
    has(&results[1], &["Archivo sensible bloqueado por una regla de protección: key.pem (patrón: *.pem)."]);
    has(
        &done.stderr,
        &["RECHAZADO", "2 acciones fueron rechazadas:", "Qué hacer: ", "--approvals pause", "--dry-run"],
    );
    let (results, done) = refused(Lab::with_a_txt());
    has(&results[0], &["needs a confirmation, and this run has no prompts"]);
    has(&done.stderr, &["REFUSED", "2 actions were refused:", "What to do: "]);
}

#[test]
fn o23_limits_of_guardrails_refuse_in_the_language_that_is_set() {
    let lab = spanish().config("guardrails: {max_files_modified: 1}\n");
    let server = Server::start(&script(&[vec![write("one.txt", "1")], vec![write("two.txt", "2")]]));
    lab.run_yolo(&server, &[]).exits(0);
    has(
        &results(&server)[1],
        &["Cambio rechazado por una regla de protección: cambiaría two.txt", "de un máximo de 1 (one.txt)"],
    );
}

#[test]
fn o23_questions_are_asked_in_the_language_that_is_set() {
    let server = Server::start(&script(&[vec![write("new.txt", "x")]]));
    let lab = spanish();
    let mut run = AtTerminal::start(&lab, &server, &[]);
    let shown = run.wait("question", |text| text.contains("Esc = detener la ejecución: "));
    has(
        &shown,
        &[
            "¿Puedo escribir new.txt",
            "Se pregunta porque los cambios de archivos requieren aprobación (modo confirm-sensitive)",
            "a permite de ahora en adelante: todas las ediciones por las que solo pregunta el modo",
            "y = sí, a = siempre",
        ],
    );
    run.types("n\n");
    run.finish().exits(0);
    has(&results(&server)[0], &["El usuario rechazó esta acción."]);
}

#[test]
fn o23_a_dry_run_is_told_in_the_language_that_is_set() {
    let server = Server::start(&script(&[vec![write("new.txt", "x")]]));
    let done = spanish().run(&server, &["--dry-run"]).exits(0);
    has(&results(&server)[0], &["[DRY-RUN] Se ejecutaría write_file: new.txt"]);
    has(&done.stderr, &["(simulación: no se hizo nada)", "## Plan de la simulación"]);
}

#[test]
fn o23_the_configuration_sets_the_language_and_the_environment_wins_over_it() {
    let ended = |lab: &Lab| {
        let server = Server::start(READS);
        lab.run(&server, &[]).exits(0).stderr
    };
    let lab = Lab::with_a_txt().config("language: es\n");
    has(&ended(&lab), &["El agente terminó"]);
    has(&ended(&lab.env("AGENT_LANGUAGE", "EN")), &["Agent completed"]);
}

#[test]
fn o23_an_unknown_language_is_an_error_that_names_it_and_those_there_are() {
    let done = Lab::with_a_txt().env("AGENT_LANGUAGE", "tlh").agent(&["run", "task"]).exits(3);
    has(&done.stderr, &["AGENT_LANGUAGE", "tlh", "en, es"]);
    let done = Lab::with_a_txt().config("language: tlh\n").agent(&["run", "task"]).exits(3);
    has(&done.stderr, &["config.yaml:1", "language", "en, es"]);
}

#[test]
fn o23_the_document_has_the_same_keys_in_every_language() {
    let of = |lab: Lab| {
        let server = Server::start(READS);
        let document = lab.run(&server, &["--max-steps", "1", "--json"]).exits(2).json();
        let mut all = BTreeSet::new();
        keys(&document, "", &mut all);
        (all, document["status"].clone(), document["stop_reason"].clone())
    };
    assert_eq!(of(Lab::with_a_txt()), of(spanish()));
}

#[test]
fn o23_a_spanish_session_goes_the_same_way_again_whatever_the_language_is_then() {
    let calls = vec![call("read_file", &json!({"path": "key.pem"}))];
    let server = Server::start(&script(&[calls]));
    let config = "loop: {on_limit: stop}\nguardrails: {sensitive_files: ['*.pem']}\n";
    let lab = spanish().file("key.pem", "k").config(config);
    lab.run(&server, ONE_STEP).exits(2);
    lab.resume(&server, &[]).exits(0);
    let lab = lab.env("AGENT_LANGUAGE", "en");
    lab.agent(&["replay"]).exits(0);
    lab.agent(&["replay", "--live-tools"]).exits(0);
}
