#!/usr/bin/env bash
# Anthropic's own client of Claude Code, unchanged, against the program: `tests/claude.sh`. The client and Node are downloaded from npm and
# PyPI into target/claude, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/node.sh
. tests/node.sh
client=$PWD/tests/clients/claude.mjs
use_node claude @anthropic-ai/claude-agent-sdk@0.3.331 zod@4
# A module is looked for beside the file that imports it.
cp "$client" claude.mjs
node claude.mjs
