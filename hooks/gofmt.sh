#!/bin/sh
# post_edit: checks the format of the edited Go file with gofmt.
set -u
file=${1:-${AGENT_EDITED_FILE:-}}
[ -n "$file" ] || { echo "gofmt.sh: no file given" >&2; exit 3; }
[ -f "$file" ] || exit 0
command -v gofmt >/dev/null 2>&1 || { echo "gofmt.sh: gofmt is not installed, $file was not checked" >&2; exit 0; }

output=$(gofmt -d -- "$file" 2>&1)
status=$?
[ -n "$output" ] || [ "$status" -ne 0 ] || exit 0
case $output in
    # A syntax error names the file and the line; so does a difference.
    *"$file:"* | "diff "* | "--- "*) printf '%s\n' "$output" | head -n 60; exit 1 ;;
    *) printf 'gofmt.sh: gofmt failed (%s): %s\n' "$status" "$output" | head -n 10 >&2; exit 3 ;;
esac
