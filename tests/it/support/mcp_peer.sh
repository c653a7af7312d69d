# An MCP server for tests over standard input and output. The functions of a test stand in place of the line CASE and replace these.
say() { printf '%s\n' "$1"; }
answer() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
fail() { say '{"jsonrpc":"2.0","id":'"$id"',"error":'"$1"'}'; }
text() { answer '{"content":[{"type":"text","text":"'"$1"'"}]}'; }
tool() { printf '{"name":"%s","description":"%s","inputSchema":%s}' "$1" "${2:-Repeats a text.}" "${3:-$schema}"; }
schema='{"type":"object","properties":{"text":{"type":"string"}}}'
at_start() { :; }
at_discover() { fail '{"code":-32601,"message":"Method not found"}'; }
at_initialize() { answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}'; }
at_initialized() { :; }
at_list() { answer '{"tools":['"$(tool echo)"']}'; }
at_call() { text 'called'; }
at_other() { :; }
# CASE
at_start
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"server/discover"'*) at_discover ;;
    *'"method":"initialize"'*) at_initialize ;;
    *'"method":"notifications/initialized"'*) at_initialized ;;
    *'"method":"tools/list"'*) at_list ;;
    *'"method":"tools/call"'*) at_call ;;
    *) at_other ;;
  esac
done
