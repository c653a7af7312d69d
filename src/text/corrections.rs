//! Finds corrections and standing rules in what a person writes, in English and Spanish, by six families of patterns:
//! direct correction, negation, clarification, what should be, wrong approach, absolute rule.

use crate::lines::words;
use regex::RegexSet;
use std::sync::LazyLock;

/// Maximum characters of a correction.
pub const MAX_CHARS: usize = 300;

/// Maximum number of corrections in one text.
const MAX_SENTENCES: usize = 5;

/// The patterns, one line a family, English then Spanish.
const PATTERNS: [&str; 12] = [
    r"(?i)^\s*(no|nope|wrong|incorrect|that'?s (wrong|incorrect|not right|not what i))\b[\s,.:;!-]+\S",
    r"(?i)^\s*(no|mal|incorrecto|eso (está mal|no es así|no es correcto))[\s,.:;!]+\S",
    r"(?i)\b(don'?t|do not|stop|avoid|quit) (use|using|add|adding|change|changing|touch|edit|write|writing|put|call|commit|create|remove|run)\b",
    r"(?i)\bno (uses|uses nunca|añadas|agregues|cambies|toques|edites|escribas|pongas|llames|crees|borres|ejecutes)\b",
    r"(?i)\b(i meant|what i meant|i was talking about|to be clear|to clarify)\b",
    r"(?i)\b(me refería|quería decir|lo que quiero decir|para aclarar|aclaro)\b",
    r"(?i)\b(should (be|have been|use|go|return|live)|instead of|rather than)\b",
    r"(?i)\b(debería (ser|usar|ir|estar|devolver)|en (vez|lugar) de)\b",
    r"(?i)\b(wrong (approach|way|place|file|direction)|not how (we|you|it)|bad idea)\b",
    r"(?i)\b(enfoque equivocado|mal enfoque|así no|no es la forma|mala idea)\b",
    r"(?i)\b(always|never|from now on|every time)\b",
    r"(?i)\b(siempre|nunca|jamás|de ahora en adelante|a partir de ahora|cada vez)\b",
];

static FAMILIES: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(PATTERNS).ok());

/// Returns the sentences of `text` that are corrections, at most five, each on one line and at most [`MAX_CHARS`] characters long.
pub fn find_corrections(text: &str) -> Vec<String> {
    let Some(families) = FAMILIES.as_ref() else { return Vec::new() };
    // A direct correction has its reason in the same paragraph.
    let (opening, rest) = text.split_once('\n').unwrap_or((text, ""));
    let is_direct = families.matches(opening).iter().any(|family| family < 2);
    let (first, rest) = if is_direct { (Some(opening), rest) } else { (None, text) };
    let sentences = rest.split_inclusive(['\n', '.', '!', '?', ';']).filter(|text| families.is_match(text));
    let lines = first.into_iter().chain(sentences).map(words);
    lines.filter(|line| !line.is_empty() && line.chars().count() <= MAX_CHARS).take(MAX_SENTENCES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k11_corrections_are_found_in_both_languages() {
        for text in [
            "No, use tabs",
            "That's wrong: the port is 8080",
            "Please don't use unwrap here",
            "I meant the other file",
            "The name should be `total`",
            "That is the wrong approach",
            "Always run the tests first",
            "No, usa tabuladores",
            "no añadas dependencias",
            "Me refería al otro archivo",
            "El nombre debería ser `total`",
            "Eso es mala idea",
            "Nunca hagas commit",
        ] {
            assert_eq!(find_corrections(text), [text], "{text}");
        }
        let long = format!("Fix the bug.\nNever touch the {} file.", "generated");
        assert_eq!(find_corrections(&long), ["Never touch the generated file."]);
    }

    #[test]
    fn k11_each_correction_of_a_text_is_found_up_to_five() {
        let text = "No, use tabs. They are shorter.\nFix it. Never edit a; always test!\nNunca hagas commit";
        assert_eq!(
            find_corrections(text),
            ["No, use tabs. They are shorter.", "Never edit a;", "always test!", "Nunca hagas commit"]
        );
        assert_eq!(find_corrections(&"Never do it. ".repeat(9)).len(), MAX_SENTENCES);
        let long = format!("Never {}. Always test.", "x".repeat(400));
        assert_eq!(find_corrections(&long), ["Always test."]);
    }

    #[test]
    fn k11_ordinary_tasks_are_none() {
        for text in [
            "",
            "Fix the failing test",
            "Explain what this project does",
            "Node is installed",
            "Añade una prueba para parse_date",
            "Now change the title",
        ] {
            assert!(find_corrections(text).is_empty(), "{text}");
        }
        assert!(find_corrections(&format!("never {}", "x".repeat(400))).is_empty(), "too long to be a rule");
    }
}
