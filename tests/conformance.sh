#!/usr/bin/env bash
# MCP's own conformance tests against the program, as a client and as a server, and its official client against `agent mcp serve`:
# `tests/conformance.sh`. With `core`, only the client's suite of that name, which the gate runs. The tests and Node are downloaded from npm
# and PyPI into target/conformance.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/node.sh
. tests/node.sh
client="node $PWD/tests/conformance/client.mjs"
use_node conformance @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/sdk@1.32.2

# check NAME SCENARIOS OPTION...: all scenarios that count pass, and there are that many.
check() {
  local name=$1 scenarios=$2
  shift 2
  npx --no conformance client --command "$client" "$@" >"$name.log" 2>&1 || { cat "$name.log"; exit 1; }
  # Scenarios that the revision does not require are listed again after "Not scored".
  passed=$(sed -n '/SUITE SUMMARY/,$p' "$name.log" | grep -c '^✓') || true
  failed=$(sed -n '/SUITE SUMMARY/,/^Total/p' "$name.log" | sed -n 's/^✗ \([^:]*\):.*/\1/p')
  for scenario in $failed; do
    grep -q "^  ✗ $scenario (" "$name.log" || { echo "$name: $scenario failed, see $tools/$name.log"; exit 1; }
  done
  [ "$passed" = "$scenarios" ] || { echo "$name: $passed of $scenarios scenarios, see $tools/$name.log"; exit 1; }
  echo "$name: $passed of $scenarios scenarios, $(sed -n 's/^Total: \(.* passed\).*/\1/p' "$name.log") checks"
}

# A program that does nothing fails in each of the suite's 50 checks that need a client.
npx --no conformance client --command /bin/true --suite core >nothing.log 2>&1 || true
grep -q '^Total: 0 passed, 50 failed' nothing.log || { tail -1 nothing.log; echo "a client that does nothing passes, see $tools/nothing.log"; exit 1; }

check core 18 --suite core
[ "${1-}" != core ] || exit 0
check 2025-11-25 18 --requirements 2025-11-25
check 2026-07-28 32 --requirements 2026-07-28

# The server: exactly the checks in server_expected_failures.json fail, each for the reason there; each message fits the schema of its
# revision.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/workspace" "$work/scripts"
export AGENT_HOME=$work/home
printf 'turns: [{text: done}]\n' >"$work/model.yaml"
# `node` is a wrapper, which would leave the bridge behind when it is killed.
"$(node -p process.execPath)" ../../tests/conformance/server.mjs -w "$work/workspace" --model "scripted:$work/model.yaml" >"$work/url" &
bridge=$!
trap 'kill $bridge; rm -rf "$work"' EXIT
until [ -s "$work/url" ]; do kill -0 $bridge && sleep 0.1; done
for revision in 2025-11-25 2026-07-28; do
  npx --no conformance server --url "$(cat "$work/url")" --requirements "$revision" -o "$work/$revision" >"server-$revision.log" 2>&1 || true
done
python3 - "$work" ../../tests/conformance/server_expected_failures.json <<'CHECK'
import json, pathlib, re, sys
NEEDED = {"2025-11-25": {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"}, "2026-07-28": {"tools-list", "dns-rebinding-protection"}}
EXPECTED = json.loads(pathlib.Path(sys.argv[2]).read_text())
for revision, reasons in EXPECTED.items():
    expected = {(name, check) for scenarios in reasons.values() for name, checks in scenarios.items() for check in checks}
    failed, passed, schema = set(), set(), 0
    for file in pathlib.Path(sys.argv[1], revision).glob("*/checks.json"):
        name = re.fullmatch(r"server-(.*)-\d{4}-\d\d-\d\dT.*", file.parent.name)[1]
        checks = json.loads(file.read_text())
        wrong = {(name, check["id"]) for check in checks if check["status"] == "FAILURE"}
        failed |= wrong
        if not wrong and any(check["status"] == "SUCCESS" for check in checks):
            passed.add(name)
        schema += any(check["id"] == "wire-schema-valid" for check in checks)
    assert failed == expected, f"{revision}: failed unexpectedly {sorted(failed - expected)}, passed unexpectedly {sorted(expected - failed)}"
    assert NEEDED[revision] <= passed, f"{revision}: only {passed} passed"
    print(f"server {revision}: {', '.join(sorted(passed))} passed; {len(failed)} checks failed as expected; {schema} scenarios with valid messages only")
CHECK
# Imports are looked up beside the file.
cp ../../tests/conformance/serve_client.mjs .
node serve_client.mjs "$work/workspace" "$work/scripts"
