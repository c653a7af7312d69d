//! The shell that runs commands and hooks, and quoting for it.

use std::path::Path;

/// The shell that models and people expect where it is installed.
pub(super) const BASH: &str = "/bin/bash";

/// The shell that POSIX promises.
const SH: &str = "/bin/sh";

/// Program and arguments that run `command`: with bash where there is one, else with the system's shell.
pub fn argv(command: &str) -> Vec<String> {
    let shell = if Path::new(BASH).exists() { BASH } else { SH };
    [shell, "-c", "--", command].map(str::to_owned).to_vec()
}

/// `text` as one word of a POSIX shell.
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
