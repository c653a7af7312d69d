#!/bin/sh
# post_edit: checks the edited Rust file with rustfmt, then its package with clippy. Give it time: timeout: 120.
set -u
file=${1:-${AGENT_EDITED_FILE:-}}
[ -n "$file" ] || { echo "rust.sh: no file given" >&2; exit 3; }
[ -f "$file" ] || exit 0

# The package: the nearest directory upwards with a Cargo.toml, not beyond the directory we were started in.
package=$(dirname -- "$file")
while [ ! -f "$package/Cargo.toml" ] && [ "$package" != . ] && [ "$package" != / ]; do
    package=$(dirname -- "$package")
done
edition=$(sed -n 's/^edition *= *"\([0-9]*\)".*/\1/p' "$package/Cargo.toml" 2>/dev/null | head -n 1)

if command -v rustfmt >/dev/null 2>&1; then
    output=$(rustfmt --check --color never --edition "${edition:-2021}" -- "$file" 2>&1)
    status=$?
    # It also looks at the modules that the file declares; only the file itself counts.
    output=$(printf '%s\n' "$output" | file=$file awk '
        /^Diff in / { mine = index($0, ENVIRON["file"] ":") > 0; other = !mine }
        !other')
    case $status in
        0) ;;
        1) [ -z "$output" ] || { printf '%s\n' "$output" | head -n 60; exit 1; } ;;
        *) printf 'rust.sh: rustfmt failed: %s\n' "$output" | head -n 10 >&2; exit 3 ;;
    esac
else
    echo "rust.sh: rustfmt is not installed, the format of $file was not checked" >&2
fi

[ -f "$package/Cargo.toml" ] || exit 0
if ! command -v cargo-clippy >/dev/null 2>&1; then
    echo "rust.sh: clippy is not installed, $file was not linted" >&2
    exit 0
fi
output=$(cd -- "$package" && cargo clippy --quiet --message-format short 2>&1)
status=$?
# Errors wherever they are, since an edit can break its callers; warnings only about the file.
findings=$(printf '%s\n' "$output" | file=${file#"$package"/} awk '
    /^[^ ]+:[0-9]+:[0-9]+: error/ || (/^[^ ]+:[0-9]+:[0-9]+: warning/ && index($0, ENVIRON["file"] ":") == 1)')
if [ -n "$findings" ]; then
    printf '%s\n' "$findings" | head -n 40
    exit 1
fi
[ "$status" -eq 0 ] || { printf 'rust.sh: clippy failed: %s\n' "$output" | head -n 10 >&2; exit 3; }
