//! Detects placeholder lines for omitted code, such as `// ... rest of the code`, which must not be written to a file.

use regex::Regex;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Matches a comment with an ellipsis before words for omitted code, or with such words at its start and an ellipsis at its end;
/// or such words between two ellipses, without a comment.
const PLACEHOLDER: &str = r"(?xi)
    ^ (?: (?: //+ | \#+ | --+ | ;+ | %+ | /\*+ | \{/\*+ | <!-- | \* ) \s*
          (?: (?: \.{3,} | … ) .{0,60} \b
              (?: rest\ of | existing | remaining | unchanged | same\ as | as\ before | previous | omitted
                | other\ (?: code | methods | functions | imports | fields | tests | items | cases ) ) \b
            | [\[(]? (?: keep\ | the\ | all\ )*
              (?: rest\ of | remaining\ (?: code | methods | functions | lines ) | existing\ (?: code | content | methods | functions | imports )
                | previous\ code | same\ as\ before | unchanged\ code ) \b .{0,60} (?: \.{3,} | … ) \W* $ )
        | (?: \.{3,} | … ) \s* \(? (?: the\ )? (?: rest\ of | existing | remaining | unchanged ) \b .{0,60} (?: \.{3,} | … ) \W* $ )";

/// Compiled pattern; `None`, which finds nothing, if it is invalid (a test checks that it is valid).
static FINDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PLACEHOLDER).ok());

/// Returns the first of the lines `new` that is a placeholder and not a line of `known`.
pub fn find_placeholder<'a>(new: impl Iterator<Item = &'a str>, known: &str) -> Option<&'a str> {
    // Every placeholder has an ellipsis; compiling the pattern takes longer than a whole edit, so it is avoided if possible.
    let is_one = |line: &str| {
        let may_be = line.contains("...") || line.contains('…');
        may_be && FINDER.as_ref().is_some_and(|finder| finder.is_match(line))
    };
    let found: Vec<&str> = new.map(str::trim).filter(|line| is_one(line)).collect();
    if found.is_empty() {
        return None;
    }
    let known: HashSet<&str> = known.lines().map(str::trim).collect();
    found.into_iter().find(|line| !known.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_stand_for_code_are_found() {
        for line in [
            "// ... rest of code",
            "    # ... existing code ...",
            "/* … remaining methods unchanged … */",
            "<!-- ... rest of the page ... -->",
            "// rest of the function remains the same...",
            "-- ... other functions",
            "... existing code ...",
            "{/* ... rest of component ... */}",
            "# ...(rest of file unchanged)",
        ] {
            assert_eq!(find_placeholder(["a", line, "b"].into_iter(), ""), Some(line.trim()), "{line}");
        }
    }

    #[test]
    fn code_and_prose_are_no_placeholders() {
        for line in [
            "...",
            "    ...",
            "def f(): ...",
            "let [first, ...rest] = list;",
            "// and so on...",
            "# Loading existing users...",
            "print(\"Reading the rest of the file...\")",
            "f(...existing)",
            "// the rest of the code",
            "..existing",
        ] {
            assert_eq!(find_placeholder(line.lines(), ""), None, "{line}");
        }
    }

    #[test]
    fn a_line_that_is_in_the_file_already_is_no_placeholder() {
        assert_eq!(find_placeholder("// ... rest of code".lines(), "x\n  // ... rest of code\n"), None);
    }
}
