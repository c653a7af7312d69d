#!/bin/sh
# pre_tool_use (write_file, edit_file, apply_patch): blocks the writing of key material. Never shows what it found.
set -u
# What an edit takes out may be a secret: only what it puts in counts.
if ! call=$(cat) || ! call=$(printf '%s' "$call" | sed -E 's/"old_str" *: *"([^"\\]|\\.)*"//g'); then
    echo "secret-check.sh: the call could not be read" >&2
    exit 2
fi

# block_if NAME PATTERN
block_if() {
    printf '%s' "$call" | grep -E -q -e "$2"
    case $? in
        0)
            echo "This would write what looks like $1. Keep secrets out of files: read them from the environment." >&2
            exit 2
            ;;
        1) ;;
        *)
            echo "secret-check.sh: grep failed, so nothing is known about this call" >&2
            exit 2
            ;;
    esac
}

block_if 'a private key' '-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----'
block_if 'an AWS access key' '(AKIA|ASIA)[0-9A-Z]{16}'
block_if 'a GitHub token' '(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40})'
block_if 'a GitLab token' 'glpat-[A-Za-z0-9_-]{20}'
block_if 'a Slack token' 'xox[abeprs]-[A-Za-z0-9-]{20}'
block_if 'a Google API key' 'AIza[A-Za-z0-9_-]{35}'
block_if 'a model provider key' 'sk-[A-Za-z0-9_-]{32}'
exit 0
