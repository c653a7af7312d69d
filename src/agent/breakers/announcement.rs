//! Whether an answer ends by announcing an action, in English or Spanish, instead of taking it. Where that is in doubt it does not:
//! a finished answer must not be questioned.

/// Words that make what follows depend on something, concern somebody else, or deny it.
const NOT_NOW: [&str; 28] = [
    "if", "unless", "once", "when", "whenever", "whether", "you", "your", "you'd", "you'll", "not", "never",
    "would", "could", "should", "may", "might", "later", "can", "si", "cuando", "quieres", "quiere", "usted",
    "te", "no", "avísame", "avisame",
];

/// Words that may stand before or within an announcement and say nothing of when.
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

/// Words that say that it is to be done at once.
const AT_ONCE: [&str; 8] =
    ["now", "next", "first", "immediately", "ahora", "primero", "enseguida", "inmediatamente"];

/// What announces an action that is to be done at once.
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

/// What announces an action that may be done at once.
const FUTURE: [&[&str]; 6] = [
    &["i'll"],
    &["i", "will"],
    &["i", "am", "going", "to"],
    &["i'm", "going", "to"],
    &["voy", "a"],
    &["vamos", "a"],
];

/// What one does with tools.
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

/// Announcements beyond which an answer is a plan.
const MAX_IN_AN_ANSWER: usize = 2;

/// Whether the last thing that `text` says is that something is done next.
pub fn announces(text: &str) -> bool {
    let text = text.replace('’', "'").to_lowercase();
    let Some(line) = text.lines().map(str::trim_end).rfind(|line| !line.is_empty()) else { return false };
    let is_of_a_list =
        line.starts_with(|c: char| !c.is_alphabetic() && !matches!(c, '*' | '¡')) || line.starts_with("* ");
    let is_in_code = text.matches("```").count() % 2 == 1;
    if is_of_a_list || is_in_code || line.contains('?') {
        return false;
    }
    let futures = text.lines().flat_map(sentences).filter(|said| is_future(said)).count();
    let is_open = line.ends_with([':', '…']) || line.ends_with("...");
    futures <= MAX_IN_AN_ANSWER && sentences(line).last().is_some_and(|said| is_announcement(said, is_open))
}

/// The sentences of a line, each as its words. A dot inside a word, as in the name of a file, ends none.
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

/// The words after those that say nothing, and whether one of these said that it is now.
fn without_fillers<'a, 'b>(words: &'a [&'b str]) -> (&'a [&'b str], bool) {
    let is_filler = |word: &&&str| FILLERS.contains(*word) || AT_ONCE.contains(*word);
    let count = words.iter().take_while(is_filler).count();
    let (fillers, rest) = words.split_at(count);
    (rest, fillers.iter().any(|word| AT_ONCE.contains(word)))
}

/// Spanish verbs that one does with tools, as they follow `voy a`.
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
    fn an_announcement_at_the_end_is_one() {
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
    fn a_finished_answer_is_none() {
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
