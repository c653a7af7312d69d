#!/bin/sh
# post_edit: lints the edited Python file with ruff.
set -u
file=${1:-${AGENT_EDITED_FILE:-}}
[ -n "$file" ] || { echo "python-ruff.sh: no file given" >&2; exit 3; }
[ -f "$file" ] || exit 0
command -v ruff >/dev/null 2>&1 || { echo "python-ruff.sh: ruff is not installed, $file was not checked" >&2; exit 0; }

output=$(ruff check --quiet --output-format concise -- "$file" 2>&1)
case $? in
    0) exit 0 ;;
    1) printf '%s\n' "$output" | head -n 40; exit 1 ;;
    *) printf 'python-ruff.sh: ruff failed: %s\n' "$output" | head -n 10 >&2; exit 3 ;;
esac
