//! Messages about structured answers, for the model and for users.

use agent_core::language::Language;

/// Prefix of the message with the schema.
const SCHEMA_MESSAGE_PREFIX: &str =
    "[SYSTEM] Your final answer, the one after which you call no more tools, is read by a program";

/// Message to the model with the schema of its final answer.
pub fn schema_message(schema: &str) -> String {
    format!(
        "{SCHEMA_MESSAGE_PREFIX}. Until then work as usual. The final answer must be one JSON value that fits this JSON Schema, and \
         nothing else: no words before or after it, no code fence.\n\n{schema}"
    )
}

/// Checks whether a message contains a schema.
pub fn contains_schema(message: &str) -> bool {
    message.contains(SCHEMA_MESSAGE_PREFIX)
}

/// Message to the model with the schema errors of its answer.
pub fn schema_repair(problems: &[String], more: bool) -> String {
    let list = problems.join("\n- ");
    let rest = if more { "\n- and more" } else { "" };
    format!(
        "[SYSTEM] Your answer does not match the requested JSON Schema:\n- {list}{rest}\nAnswer with the whole corrected \
         JSON value and nothing else. No tools can be called."
    )
}

/// Notice of a repair request; `asked` is the message to the model.
pub fn schema_repair_notice(asked: &str, language: Language) -> String {
    let problem = asked.lines().find_map(|line| line.strip_prefix("- ")).unwrap_or_default();
    let again = language.pick(
        "the answer does not match its schema and is requested again",
        "la respuesta no se ajusta a su esquema y se pide otra vez",
    );
    format!("{again}: {problem}")
}

/// Error for a final answer that does not match the schema.
pub fn answer_schema_mismatch(problems: &[String]) -> String {
    let first = problems.first().map_or("", String::as_str);
    let rest = match problems.len() {
        0 | 1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    format!("the answer does not match the schema of --output-schema, even after repairs: {first}{rest}")
}

/// Line before an answer that is withheld from standard output.
pub const ANSWER_NOT_STRUCTURED: &str = "standard output stays empty: the answer was not checked against the schema, or does not match it. The answer:";
