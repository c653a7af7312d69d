#!/bin/sh
# post_edit: checks the edited JavaScript or TypeScript file with eslint and prettier, the project's own where it has them.
set -u
file=${1:-${AGENT_EDITED_FILE:-}}
[ -n "$file" ] || { echo "javascript.sh: no file given" >&2; exit 3; }
[ -f "$file" ] || exit 0
result=0
found=no

# check NAME ARGUMENT...: both tools exit with 1 when they found something and with more when they failed.
check() {
    name=$1
    shift
    if [ -x "node_modules/.bin/$name" ]; then
        program=node_modules/.bin/$name
    else
        program=$(command -v "$name" 2>/dev/null) || return 0
    fi
    found=yes
    output=$("$program" "$@" "$file" 2>&1)
    case $? in
        0) ;;
        1)
            printf '%s\n' "$output" | head -n 40
            [ "$result" -ne 0 ] || result=1
            ;;
        *)
            printf 'javascript.sh: %s failed: %s\n' "$name" "$output" | head -n 10 >&2
            result=3
            ;;
    esac
}

check eslint --no-color --
check prettier --check --no-color --
[ "$found" = yes ] || echo "javascript.sh: neither eslint nor prettier is installed, $file was not checked" >&2
exit "$result"
