#!/usr/bin/env bash
# Sends the spans of a run to an OpenTelemetry collector (Rotel) and checks that it received them: `tests/collector.sh`. The collector is
# downloaded from PyPI into target/collector, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked
agent=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
tools=$PWD/target/collector
[ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install -q rotel==0.0.1a15
rotel=$("$tools/venv/bin/python" -c 'import os, rotel; print(os.path.dirname(rotel.__file__))')/rotel-agent
read -r http grpc < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(socket.getsockname()[1] for socket in sockets))')

work=$(mktemp -d)
collector=
tries=0
trap 'kill $collector; rm -rf "$work"' EXIT
mkdir "$work/workspace"
cat >"$work/script.yaml" <<'SCRIPT'
turns:
  - calls:
      - {name: list_files, arguments: {}}
  - text: done
SCRIPT
cat >"$work/config.yaml" <<CONFIG
telemetry: {enabled: true, exporter: otlp, endpoint: "http://127.0.0.1:$http"}
CONFIG
"$rotel" start --otlp-http-endpoint "127.0.0.1:$http" --otlp-grpc-endpoint "127.0.0.1:$grpc" --exporter blackhole \
  --debug-log traces --debug-log-verbosity detailed >"$work/spans" &
collector=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$http") 2>/dev/null; do sleep 0.1; done

AGENT_HOME=$work/home TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 "$agent" run "look" \
  --model "scripted:$work/script.yaml" -c "$work/config.yaml" -w "$work/workspace" --quiet
for expected in 'service.name: Str(agent)' 'Trace ID       : 0af7651916cd43dd8448eb211c80319c' 'Parent ID      : b7ad6b7169203331' \
  'Name           : invoke_agent build' 'Name           : execute_tool list_files' 'Name           : chat ' 'agent.status: Str(success)'; do
  until grep -qF "$expected" "$work/spans"; do
    [ $((tries += 1)) -le 50 ] || { printf 'the collector did not receive "%s"\n' "$expected" >&2; exit 1; }
    sleep 0.1
  done
done
printf 'the collector received %s spans\n' "$(grep -c '^Span #' "$work/spans")"
