# Says what a ledger comes to.
report() {
    echo "total $(ledger_total "$1") in $(ledger_entries "$1") entries"
}
