# Says what a ledger comes to.
report() {
    echo "total $(sum "$1")"
}
