# Adds up the amounts of a ledger, one `NAME AMOUNT` a line; lines that begin with `#` do not count.
ledger_total() {
    total=0
    while read -r name amount; do
        case "$name" in "#"*) continue ;; esac
        total=$((total + amount))
    done <"$1"
    echo "$total"
}

# How many entries a ledger has.
ledger_entries() {
    grep -vc '^#' "$1"
}
