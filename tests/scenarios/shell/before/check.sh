got=$(sh ledger.sh january.txt)
if [ "$got" != "total 42 in 3 entries" ]; then
    echo "check: got '$got'"
    exit 1
fi
echo "check: all is well"
