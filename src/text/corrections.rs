//! Finds corrections and standing rules in what a person writes, in English and Spanish, by six families of patterns (spec.md
//! 1.11): direct correction, negation, clarification, what should be, wrong approach, absolute rule.

use crate::text::lines::words;
use regex::RegexSet;
use std::sync::LazyLock;

/// Maximum characters of a correction.
pub const MAX_CHARS: usize = 300;

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

/// Returns the first sentence of `text` that is a correction, on one line and at most [`MAX_CHARS`] long.
pub fn find_correction(text: &str) -> Option<String> {
    let families = FAMILIES.as_ref()?;
    let mut sentences = text.split_inclusive(['\n', '.', '!', '?', ';']);
    // A direct correction has its reason in the same paragraph.
    let opening = text.lines().next().unwrap_or_default();
    let first = families.matches(opening).iter().any(|family| family < 2).then_some(opening);
    let found = first.or_else(|| sentences.find(|sentence| families.is_match(sentence)))?;
    let line = words(found);
    (line.chars().count() <= MAX_CHARS && !line.is_empty()).then_some(line)
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
            assert_eq!(find_correction(text).as_deref(), Some(text), "{text}");
        }
        let long = format!("Fix the bug.\nNever touch the {} file.", "generated");
        assert_eq!(find_correction(&long).as_deref(), Some("Never touch the generated file."));
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
            assert_eq!(find_correction(text), None, "{text}");
        }
        assert_eq!(find_correction(&format!("never {}", "x".repeat(400))), None, "too long to be a rule");
    }
}
