//! What is said about structured answers: to the model, and to the person whose standard output stays empty.

use crate::core::language::Language;

/// How the message begins that tells the model the schema.
const SCHEMA_MESSAGE_PREFIX: &str =
    "[SYSTEM] Your final answer, the one after which you call no more tools, is read by a program";

/// Tells the model the schema of its final answer.
pub fn schema_message(schema: &str) -> String {
    format!(
        "{SCHEMA_MESSAGE_PREFIX}. Until then work as usual. The final answer must be one JSON value that fits this JSON Schema, and \
         nothing else: no words before or after it, no code fence.\n\n{schema}"
    )
}

/// Whether a message tells a schema.
pub fn contains_schema(message: &str) -> bool {
    message.contains(SCHEMA_MESSAGE_PREFIX)
}

/// Tells the model what is wrong with its answer.
pub fn schema_repair(problems: &[String], more: bool) -> String {
    let list = problems.join("\n- ");
    let rest = if more { "\n- and more" } else { "" };
    format!(
        "[SYSTEM] Your answer does not fit the JSON Schema it was asked for:\n- {list}{rest}\nAnswer with the whole corrected \
         JSON value and nothing else. No tools can be called."
    )
}

/// Tells people that an answer is repaired; `asked` is what the model was told.
pub fn schema_repair_notice(asked: &str, language: Language) -> String {
    let problem = asked.lines().find_map(|line| line.strip_prefix("- ")).unwrap_or_default();
    let again = language.pick(
        "the answer does not fit its schema and is asked for again",
        "la respuesta no se ajusta a su esquema y se pide otra vez",
    );
    format!("{again}: {problem}")
}

/// Why the run failed although the model answered.
pub fn answer_schema_mismatch(problems: &[String]) -> String {
    let first = problems.first().map_or("", String::as_str);
    let rest = match problems.len() {
        0 | 1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    format!("the answer does not fit the schema of --output-schema, repairs included: {first}{rest}")
}

/// Said before an answer that is kept from standard output.
pub const ANSWER_NOT_STRUCTURED: &str =
    "standard output stays empty: the answer was not checked against the schema, or does not fit it. It was:";
