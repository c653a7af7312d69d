# Adds up the amounts of a ledger, one `NAME AMOUNT` a line.
sum() {
    total=0
    while read -r name amount; do
        total=$((total + amount))
    done <"$1"
    echo "$total"
}
