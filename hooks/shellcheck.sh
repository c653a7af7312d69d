#!/bin/sh
# post_edit: checks the edited shell script with shellcheck.
set -u
file=${1:-${AGENT_EDITED_FILE:-}}
[ -n "$file" ] || { echo "shellcheck.sh: no file given" >&2; exit 3; }
[ -f "$file" ] || exit 0
command -v shellcheck >/dev/null 2>&1 || { echo "shellcheck.sh: shellcheck is not installed, $file was not checked" >&2; exit 0; }

output=$(shellcheck --format gcc -- "$file" 2>&1)
case $? in
    0) exit 0 ;;
    1) printf '%s\n' "$output" | head -n 40; exit 1 ;;
    *) printf 'shellcheck.sh: shellcheck failed: %s\n' "$output" | head -n 10 >&2; exit 3 ;;
esac
