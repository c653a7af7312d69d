#!/usr/bin/env bash
# OpenAI's own client of Codex, unchanged, against the program: `tests/codex.sh`. The client and Node are downloaded from npm and PyPI
# into target/codex, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/node.sh
. tests/node.sh
client=$PWD/tests/clients/codex.mjs
use_node codex @openai/codex-sdk@0.163.0
# A module is looked for beside the file that imports it.
cp "$client" codex.mjs
node codex.mjs
