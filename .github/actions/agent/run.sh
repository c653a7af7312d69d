#!/usr/bin/env bash
# Runs `agent` for the action beside it. The inputs come in variables ACTION_* only, because text that a workflow inserts into a
# script would be executed. Needs jq.
set -euo pipefail

command=${ACTION_COMMAND:-run}
program=${ACTION_PROGRAM:-agent}
prompt=${ACTION_PROMPT:-}
session_file=${ACTION_SESSION_FILE:-}

fail() {
  printf '%s\n' "$1" >&2
  exit 3
}

# Adds `NAME=VALUE` to the arguments unless the value is empty. A value in the same word cannot become an option.
arguments=()
add_option() {
  if [ -n "$2" ]; then arguments+=("$1=$2"); fi
}

# Writes an output of the step. The value cannot contain the delimiter, which is random.
write_output() {
  local delimiter
  delimiter=agent_$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf '%s<<%s\n%s\n%s\n' "$1" "$delimiter" "$2" "$delimiter" >>"$GITHUB_OUTPUT"
}

directory=${ACTION_DIRECTORY:-}
if [ -z "$directory" ]; then directory=$(mktemp -d "${RUNNER_TEMP:-/tmp}/agent.XXXXXX"); fi
mkdir -p -- "$directory"
directory=$(cd -- "$directory" && pwd)
result=$directory/result.json

add_option --config "${ACTION_CONFIG:-}"
add_option --workspace "${ACTION_WORKSPACE:-}"
common=("${arguments[@]}")
add_option --model "${ACTION_MODEL:-}"
add_option --sandbox "${ACTION_SANDBOX:-require}"
add_option --max-steps "${ACTION_MAX_STEPS:-}"
add_option --timeout "${ACTION_TIMEOUT:-}"
add_option --budget "${ACTION_BUDGET:-}"
case $command in
  run)
    [ -n "$prompt" ] || fail "the input prompt is empty"
    add_option --mode "${ACTION_MODE:-yolo}"
    words=(-- "$prompt")
    ;;
  review)
    add_option --base "${ACTION_BASE:-}"
    add_option --fail-on "${ACTION_FAIL_ON:-}"
    words=()
    ;;
  resume)
    [ -n "$session_file" ] || fail "the input session-file is empty"
    add_option --mode "${ACTION_MODE:-yolo}"
    words=(-- "$("$program" sessions import "${common[@]}" -- "$session_file")")
    if [ -n "$prompt" ]; then words+=("$prompt"); fi
    ;;
  *) fail "the input command is none of run, review and resume" ;;
esac
# Commands that the model runs inherit the environment.
for name in "${!ACTION_@}"; do unset "$name"; done

# The runner executes commands in lines of the log (`::set-env …`). The log of a run contains text of strangers.
token=agent_$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '::stop-commands::%s\n' "$token"
# A runner that cancels a job sends signals to this script only; one before the program runs is passed on when it does.
running='' cancelled=''
trap 'cancelled=1 signalled=1; kill -TERM $running 2>/dev/null || true' INT TERM
"$program" "$command" --json --report=sarif "--report-file=$directory/report.sarif" "${arguments[@]}" "${words[@]}" >"$result" &
running=$!
[ -z "$cancelled" ] || kill -TERM "$running" 2>/dev/null || true
# A signal ends a wait early, with a code of its own.
signalled=1
while [ -n "$signalled" ]; do
  code=0 signalled=''
  wait "$running" || code=$?
done

read_result() { jq -r "$1" "$result" 2>/dev/null || true; }
session=$(read_result '.session_id // empty')
[[ $session =~ ^[A-Za-z0-9-]+$ ]] || session=
if [ -n "$session" ]; then
  "$program" report "${common[@]}" --format=junit "--output=$directory/report.xml" -- "$session" || true
  "$program" sessions export "${common[@]}" "--output=$directory/session.jsonl" -- "$session" || true
  "$program" report "${common[@]}" --format=github -- "$session" >>"$GITHUB_STEP_SUMMARY" || true
else
  printf 'agent ended with exit code %s and without a session.\n' "$code" >>"$GITHUB_STEP_SUMMARY"
fi
printf '::%s::\n' "$token"

write_output exit-code "$code"
write_output status "$(read_result .status)"
write_output answer "$(read_result '.output | if type == "string" then . else tojson end | .[0:20000]')"
write_output session-id "$session"
write_output directory "$directory"
exit "$code"
