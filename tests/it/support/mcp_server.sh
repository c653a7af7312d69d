# An MCP server for tests: answers over standard input and output. What it does wrong is set by variables.
# NOISE: text before the first message; MODE: crash, hang, huge, ids, or nothing; DESCRIPTION of its tool; LOG: file for what it gets.
[ -z "$NOISE" ] || printf '%s\n' "$NOISE"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while IFS= read -r line; do
  [ -z "$LOG" ] || printf '%s\n' "$line" >> "$LOG"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"server/discover"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id" ;;
    *'"method":"initialize"'*)
      answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"test","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      tool='{"name":"%s","description":"%s","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}'
      tools=$(printf "$tool" echo "${DESCRIPTION:-Repeats a text.}")
      for name in $TOOLS; do tools="$tools,$(printf "$tool" "$name" "About $name.")"; done
      answer "$id" "{\"tools\":[$tools]}" ;;
    *'"method":"tools/call"'*)
      case "$MODE" in
        crash) echo 'something broke' >&2; exit 3 ;;
        hang) continue ;;
        huge) printf '{"a":"'; head -c 20000000 /dev/zero | tr '\0' a; continue ;;
        ids) answer 99999 '{"content":[{"type":"text","text":"WRONG"}]}' ;;
        error) answer "$id" '{"content":[{"type":"text","text":"it is full"}],"isError":true}'; continue ;;
        image) answer "$id" "{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/jpeg\",\"data\":\"$IMAGE\"}]}"; continue ;;
        write) printf 'changed\n' > changed.txt ;;
      esac
      text=$(printf '%s' "$line" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')
      answer "$id" "{\"content\":[{\"type\":\"text\",\"text\":\"echo: $text $TOKEN ${#TOKEN}\"}]}" ;;
  esac
done
