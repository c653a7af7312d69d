//! Detects an answer that ends by announcing an action, in English or Spanish, instead of taking it.
//!
//! In doubt the result is negative, because a finished answer must not be questioned.

/// Words that make a sentence conditional, negate it, or refer to somebody else.
const NOT_NOW: [&str; 28] = [
    "if", "unless", "once", "when", "whenever", "whether", "you", "your", "you'd", "you'll", "not", "never",
    "would", "could", "should", "may", "might", "later", "can", "si", "cuando", "quieres", "quiere", "usted",
    "te", "no", "avísame", "avisame",
];

/// Filler words before or within an announcement that do not express a time.
const FILLERS: [&str; 25] = [
    "ok",
    "okay",
    "great",
    "perfect",
    "good",
    "sure",
    "alright",
    "right",
    "so",
    "and",
    "then",
    "also",
    "just",
    "quickly",
    "actually",
    "well",
    "excellent",
    "understood",
    "apologies",
    "bueno",
    "vale",
    "perfecto",
    "bien",
    "también",
    "entonces",
];

/// Words that express an immediate action.
const AT_ONCE: [&str; 8] =
    ["now", "next", "first", "immediately", "ahora", "primero", "enseguida", "inmediatamente"];

/// Openings that announce an immediate action.
const DIRECT: [&[&str]; 8] = [
    &["let", "me"],
    &["let's"],
    &["let", "us"],
    &["déjame"],
    &["dejame"],
    &["procedo", "a"],
    &["i", "am", "about", "to"],
    &["i'm", "about", "to"],
];

/// Openings that announce a future action, immediate or not.
const FUTURE: [&[&str]; 6] = [
    &["i'll"],
    &["i", "will"],
    &["i", "am", "going", "to"],
    &["i'm", "going", "to"],
    &["voy", "a"],
    &["vamos", "a"],
];

/// Verbs for actions that tools perform.
const VERBS: [&str; 45] = [
    "add",
    "adjust",
    "apply",
    "build",
    "change",
    "check",
    "clean",
    "commit",
    "compile",
    "continue",
    "correct",
    "create",
    "debug",
    "delete",
    "edit",
    "examine",
    "execute",
    "fix",
    "implement",
    "inspect",
    "install",
    "investigate",
    "look",
    "make",
    "modify",
    "move",
    "open",
    "patch",
    "proceed",
    "read",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rerun",
    "rewrite",
    "run",
    "search",
    "set",
    "start",
    "test",
    "try",
    "update",
    "verify",
    "write",
];

/// Number of announcements above which an answer counts as a plan.
const MAX_IN_AN_ANSWER: usize = 2;

/// Whether the last sentence of `text` announces an action.
pub fn announces(text: &str) -> bool {
    let text = text.replace('’', "'").to_lowercase();
    let Some(line) = text.lines().map(str::trim_end).rfind(|line| !line.is_empty()) else { return false };
    let is_of_a_list =
        line.starts_with(|c: char| !c.is_alphabetic() && !matches!(c, '*' | '¡')) || line.starts_with("* ");
    let is_in_code = text.matches("```").count() % 2 == 1;
    if is_of_a_list || is_in_code || line.contains('?') {
        return false;
    }
    let futures = text.lines().flat_map(sentences).filter(|sentence| is_future(sentence)).count();
    let is_open = line.ends_with([':', '…']) || line.ends_with("...");
    futures <= MAX_IN_AN_ANSWER
        && sentences(line).last().is_some_and(|sentence| is_announcement(sentence, is_open))
}

/// Splits a line into sentences of words. A dot within a word, as in a file name, does not end a sentence.
fn sentences(line: &str) -> Vec<Vec<&str>> {
    let mut sentences = vec![Vec::new()];
    for written in line.split_whitespace() {
        let word = written.trim_matches(|c: char| !c.is_alphanumeric());
        if let Some(sentence) = sentences.last_mut().filter(|_| !word.is_empty()) {
            sentence.push(word);
        }
        if written.ends_with(['.', '!', ';']) {
            sentences.push(Vec::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn is_future(words: &[&str]) -> bool {
    FUTURE.iter().chain(&DIRECT).any(|form| words.windows(form.len()).any(|part| part == *form))
}

fn is_announcement(words: &[&str], is_open: bool) -> bool {
    if words.iter().any(|word| NOT_NOW.contains(word)) {
        return false;
    }
    let (mut rest, before) = without_fillers(words);
    let forms =
        |forms: &[&'static [&str]]| forms.iter().find(|form| rest.starts_with(form)).map(|form| form.len());
    let direct = forms(&DIRECT);
    let Some(length) = direct.or_else(|| forms(&FUTURE)) else { return false };
    rest = rest.get(length..).unwrap_or_default();
    let (rest, within) = without_fillers(rest);
    let is_now = direct.is_some()
        || before
        || within
        || is_open
        || rest.last().is_some_and(|last| AT_ONCE.contains(last));
    let is_action = rest.first().is_some_and(|verb| VERBS.contains(verb) || is_infinitive(verb));
    is_now && is_action
}

/// Returns the words after the leading fillers, and whether one of the fillers expressed an immediate action.
fn without_fillers<'a, 'b>(words: &'a [&'b str]) -> (&'a [&'b str], bool) {
    let is_filler = |word: &&&str| FILLERS.contains(*word) || AT_ONCE.contains(*word);
    let count = words.iter().take_while(is_filler).count();
    let (fillers, rest) = words.split_at(count);
    (rest, fillers.iter().any(|word| AT_ONCE.contains(word)))
}

/// Whether `verb` is a Spanish infinitive for an action that tools perform, as it follows `voy a`.
fn is_infinitive(verb: &str) -> bool {
    const SPANISH: [&str; 20] = [
        "abrir",
        "actualizar",
        "añadir",
        "aplicar",
        "arreglar",
        "borrar",
        "buscar",
        "cambiar",
        "comprobar",
        "corregir",
        "crear",
        "editar",
        "ejecutar",
        "escribir",
        "implementar",
        "leer",
        "modificar",
        "probar",
        "revisar",
        "verificar",
    ];
    SPANISH.contains(&verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_at_the_end_is_detected() {
        for text in [
            "Now let me create the main server structure:",
            "Let me check the tests.",
            "I see the problem. I will now update the function in a.py.",
            "OK, I'll now run the tests.",
            "Great! Next, I'll fix `parse`:",
            "I’m going to edit the file now.",
            "I'll update the tests...",
            "Done with the model.\n\nI will create the view:",
            "Ya veo el problema. Ahora voy a corregir la función en a.py:",
        ] {
            assert!(announces(text), "{text}");
        }
    }

    #[test]
    fn a_finished_answer_is_no_announcement() {
        for text in [
            "",
            "Done.",
            "All tests pass. Let me know if anything else is needed.",
            "If you agree, I will now update the others.",
            "I will not edit it.",
            "Shall I now update them too?",
            "Now run `make install`.",
            "> Now let me create the server:",
            "- Let me check the tests.",
            "3. Now I'll run the tests.",
            "```\nLet me check the tests.",
            "I will start with a test. After that I will change `parse`. Then I will now run the suite.",
            "Then I will run the suite.",
            "I'll leave it at that now.",
            "Let me summarise: the tests pass.",
            "Let me check was what the log said. The tests pass.",
            "Once that is merged, I'll now update the rest.",
            "The loop prints `let me run` and ends.",
        ] {
            assert!(!announces(text), "{text}");
        }
    }
}
