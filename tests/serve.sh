#!/usr/bin/env bash
# The TypeScript client of `agent serve`: `tests/serve.sh` checks its types and drives the program with it. Node and the compiler are
# downloaded from npm and PyPI into target/serve.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/node.sh
. tests/node.sh
clients=$PWD/tests/clients
use_node serve typescript@5.9.3 @types/node@22.20.5

node_modules/.bin/tsc --noEmit --strict --noUncheckedIndexedAccess --module esnext --moduleResolution bundler --target es2023 --allowImportingTsExtensions \
  --erasableSyntaxOnly --typeRoots node_modules/@types --types node "$clients"/*.ts

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AGENT_HOME=$work/home
mkdir "$work/home" "$work/project"
cat >"$work/model.yaml" <<'SCRIPT'
turns:
  - &write
    calls: [{name: write_file, arguments: {path: new.txt, content: "text\n"}}]
  - &done
    text: done
  - *write
  - *done
SCRIPT
node "$clients/serve_driver.ts" "$work/project" "$AGENT_BIN" serve -w "$work/project" --model "scripted:$work/model.yaml"
