//! Names that other file systems treat as equal, for rules on names such as `.git`.
//!
//! Repositories are moved between machines, and shares are mounted from other systems. A rule on `.git` therefore applies to
//! every name under which some file system finds `.git`: Linux has such names on `vfat`, on ext4 directories that fold case, on
//! ZFS with `normalization=formKC`, and on mounts from macOS or Windows.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;

/// Maximum characters of a name and of its extension that need no short name on FAT and NTFS.
const SHORT_CHARS: (usize, usize) = (8, 3);

/// Number of characters of a name that its short name retains before the number.
const SHORT_STEM_CHARS: usize = 6;

/// Returns `name` without case and invisible characters, in composed form, because some file systems decompose names.
pub fn folded(name: &str) -> String {
    fold(name, &ComposingNormalizerBorrowed::new_nfc())
}

/// Splits `path` into parts in every way that a file system may interpret it: a backslash may be a separator, a colon may start
/// a stream name, trailing dots and blanks may be ignored, and wide or ornate letters may equal plain ones. The local system's
/// interpretation is included.
pub fn path_variants(path: &str) -> Vec<Vec<String>> {
    let mut path_variants = Vec::new();
    for divided in [false, true] {
        for streams in [false, true] {
            for compatible in [false, true] {
                // Most paths have a single interpretation.
                let differs = (!divided || path.contains('\\'))
                    && (!streams || path.contains(':'))
                    && (!compatible || !path.is_ascii());
                if differs {
                    path_variants.push(path_variant(path, divided, streams, compatible));
                }
            }
        }
    }
    path_variants
}

fn path_variant(path: &str, divided: bool, streams: bool, compatible: bool) -> Vec<String> {
    let form = if compatible {
        ComposingNormalizerBorrowed::new_nfkc()
    } else {
        ComposingNormalizerBorrowed::new_nfc()
    };
    let mut parts: Vec<String> = Vec::new();
    for part in path.split(|c| c == '/' || (divided && c == '\\')) {
        if part == ".." {
            parts.pop();
            continue;
        }
        let part = fold(part, &form);
        let name = if streams { part.split(':').next().unwrap_or_default() } else { &part };
        let name = name.trim_end_matches(['.', ' ']);
        if !name.is_empty() {
            parts.push(name.to_owned());
        }
    }
    parts
}

fn fold(name: &str, form: &ComposingNormalizerBorrowed<'_>) -> String {
    if name.is_ascii() && !name.bytes().any(|byte| byte.is_ascii_control()) {
        return name.to_ascii_lowercase();
    }
    let ignored = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let visible: String = name.chars().filter(|c| !c.is_control() && !ignored.contains(*c)).collect();
    // Upper case comes first because it turns `ſ` into `S` and `ß` into `SS`.
    form.normalize(&visible).to_uppercase().to_lowercase()
}

/// Returns the short name of `name` on FAT and NTFS (`VSCODE~1` for `.vscode`), folded, with `N` for its number, which no
/// folded name contains. `None` if the name is already short.
pub fn short_name(name: &str) -> Option<String> {
    let bare = name.trim_start_matches('.');
    let (stem, extension) = bare.rsplit_once('.').unwrap_or((bare, ""));
    let is_short = bare == name
        && !stem.contains(['.', ' '])
        && stem.chars().count() <= SHORT_CHARS.0
        && extension.chars().count() <= SHORT_CHARS.1;
    if is_short || stem.is_empty() {
        return None;
    }
    let truncated = |text: &str, most: usize| -> String {
        folded(text).chars().filter(|c| !matches!(c, '.' | ' ')).take(most).collect()
    };
    let dot = if extension.is_empty() { "" } else { "." };
    let (stem, extension) = (truncated(stem, SHORT_STEM_CHARS), truncated(extension, SHORT_CHARS.1));
    Some(format!("{stem}~N{dot}{extension}"))
}

/// Returns `part` in the form of [`short_name`]. `None` if it is not a short name.
pub fn as_short_name(part: &str) -> Option<String> {
    let (stem, rest) = part.rsplit_once('~')?;
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (after.len() < rest.len()).then(|| format!("{stem}~N{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_differ_only_in_what_some_system_ignores_are_one() {
        for name in [
            ".Git",
            ".g\u{200c}it",
            ".git\u{feff}",
            ".ｇit",
            "．git",
            ".git. .",
            ".git:x",
            ".g\u{fe0f}it",
            ".𝐠it",
        ] {
            assert!(path_variants(name).contains(&vec![".git".to_owned()]), "{name:?}");
        }
        assert_eq!(folded(".vſcode"), ".vscode");
        assert_eq!(folded("STRASSE"), folded("Straße"));
        assert_eq!(folded("E\u{301}"), "é");
    }

    #[test]
    fn a_backslash_divides_a_path_or_is_a_part_of_a_name() {
        let parts = |path: &str| path_variants(path).iter().map(|parts| parts.join("|")).collect::<Vec<_>>();
        assert_eq!(parts("a/b"), ["a|b"]);
        assert_eq!(parts(r"v/a\..\..\b"), [r"v|a\..\..\b", "b"]);
    }

    #[test]
    fn a_name_that_is_no_short_one_has_short_names() {
        for (name, short) in [
            (".vscode", "vscode~1"),
            (".mcp.json", "mcp~2.jso"),
            (".aider.conf.yml", "aiderc~0.yml"),
            ("Long Name.text", "longna~12.tex"),
        ] {
            assert_eq!(as_short_name(short), short_name(name), "{name}");
        }
        for name in ["a.txt", "vault", "..", "."] {
            assert_eq!(short_name(name), None, "{name}");
        }
        for name in ["digit~x", "vscode~", "a.txt", "12"] {
            assert_eq!(as_short_name(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn the_reading_of_the_system_at_hand_comes_first(path in "[a-z./ ~\\\\:]{0,20}") {
            let all = path_variants(&path);
            prop_assert!(!all.is_empty());
            let parts = path.split('/').all(|part| part != "..");
            prop_assert!(!parts || all[0].iter().all(|part| path.contains(part.as_str())));
        }
    }
}
