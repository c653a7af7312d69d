#!/usr/bin/env bash
# MCP servers of others, with a scripted model, in each sandbox tier that this system has: `tests/mcp_servers.sh`. The servers and Node are
# downloaded from npm and PyPI into target/mcp-servers, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
# Restricts system calls and becomes the agent (tests/it/support/kernel.rs).
stand_in=$(cargo test --locked --test it --no-run --message-format=json |
  sed -n 's/.*"executable":"\([^"]*\/it-[^"]*\)".*/\1/p' | tail -1)
# shellcheck source=tests/node.sh
. tests/node.sh
use_node mcp-servers @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31
pip install -q mcp-server-git==2026.10.19 mcp-server-time==2026.10.19

everything=$tools/node_modules/@modelcontextprotocol/server-everything/dist/index.js
filesystem=$tools/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
work=$(mktemp -d)
PORT=$port node "$everything" streamableHttp >"$work/http.log" 2>&1 &
http=$!
trap 'kill $http; rm -rf "$work"' EXIT
until (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null; do kill -0 $http && sleep 0.1; done

# The workspace contains the servers: in a clone below /tmp, programs in the sandbox see nothing else of it.
rm -rf repo
git init -q repo
git -C repo -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m 'the first commit'
cat >"$work/servers.yaml" <<SERVERS
mcp:
  listing: all
  servers:
    everything: {command: node, args: ['$everything', stdio]}
    remote: {url: 'http://127.0.0.1:$port/mcp'}
    filesystem: {command: node, args: ['$filesystem', '$tools/repo'], workspace: write}
    git: {command: mcp-server-git, args: [--repository, '$tools/repo']}
    time: {command: mcp-server-time, args: [--local-timezone, UTC]}
SERVERS
cat >"$work/model.yaml" <<SCRIPT
turns:
  - calls: [{name: mcp__everything__echo, arguments: {message: over stdio}}]
  - expect: {last_contains: ['Echo: over stdio']}
    calls: [{name: mcp__everything__get-sum, arguments: {a: 19, b: 23}}]
  - expect: {last_contains: ['The sum of 19 and 23 is 42']}
    calls: [{name: mcp__remote__echo, arguments: {message: over HTTP}}]
  - expect: {last_contains: ['Echo: over HTTP']}
    calls: [{name: mcp__remote__get-sum, arguments: {a: 20, b: 23}}]
  - expect: {last_contains: ['The sum of 20 and 23 is 43']}
    calls: [{name: mcp__filesystem__write_file, arguments: {path: '$tools/repo/new.txt', content: written by a server}}]
  - expect: {last_contains: [Successfully wrote]}
    calls: [{name: mcp__filesystem__read_text_file, arguments: {path: '$tools/repo/new.txt'}}]
  - expect: {last_contains: [written by a server]}
    calls: [{name: mcp__git__git_status, arguments: {repo_path: '$tools/repo'}}]
  - expect: {last_contains: [new.txt]}
    calls: [{name: mcp__git__git_log, arguments: {repo_path: '$tools/repo'}}]
  - expect: {last_contains: [the first commit]}
    calls: [{name: mcp__time__convert_time, arguments: {source_timezone: UTC, time: '12:00', target_timezone: Asia/Tokyo}}]
  - expect: {last_contains: ['+9.0h', 'T21:00:00+09:00']}
    text: done
SCRIPT

# check TIER COMMAND...: the agent, run by COMMAND, uses the servers; TIER is what confines them.
check() {
  local tier=$1
  shift
  rm -rf repo/new.txt "${work:?}/home"
  AGENT_HOME=$work/home "$@" >"$work/out" 2>"$work/err" || { cat "$work/out" "$work/err"; exit 1; }
  python3 - "$work/out" "$tier" <<'CHECK'
import json, sys
text = open(sys.argv[1]).read()
result, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
found = (result["status"], result["sandbox"], [file["path"] for file in result["files_modified"]])
assert found == ("success", sys.argv[2], ["repo/new.txt"]), found
CHECK
  echo "$tier: 9 calls of 5 servers"
}

flags=(run task --workspace "$tools" --model "scripted:$work/model.yaml" --mcp-config "$work/servers.yaml" --mode yolo --json)
# in_kernel KERNEL: the agent where the kernel refuses more.
in_kernel() {
  AGENT_TEST_KERNEL=$1 AGENT_TEST_PROGRAM=$AGENT_BIN \
    AGENT_TEST_ARGUMENTS=$(python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "${flags[@]}") \
    "$stand_in" --exact support::kernel::stand_in_kernel --nocapture --test-threads 1
}
tier=$("$AGENT_BIN" doctor | sed -n 's/^ *sandbox  *\([a-z]*\):.*/\1/p')
[ "$tier" = none ] || check "$tier" "$AGENT_BIN" "${flags[@]}"
[ "$tier" = rules ] || check rules in_kernel Docker
check none "$AGENT_BIN" "${flags[@]}" --sandbox off
