//! Shell that runs commands and hooks, and quoting for it.

use std::path::Path;

/// Preferred shell, which models and users expect.
pub(super) const BASH: &str = "/bin/bash";

/// Shell that POSIX guarantees.
const SH: &str = "/bin/sh";

/// Returns program and arguments that run `command` with bash, or with `/bin/sh` if bash is missing.
pub fn argv(command: &str) -> Vec<String> {
    let shell = if Path::new(BASH).exists() { BASH } else { SH };
    [shell, "-c", "--", command].map(str::to_owned).to_vec()
}

/// Quotes `text` as one word of a POSIX shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quoted_text_has_no_quote_that_is_open_or_unescaped(text: String) {
            let quoted = quoted(&text);
            prop_assert_eq!(quoted.matches('\'').count(), 2 + 3 * text.matches('\'').count());
            let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or_default();
            prop_assert_eq!(inner.replace(r"'\''", "\0quote\0").contains('\''), false);
        }
    }
}
