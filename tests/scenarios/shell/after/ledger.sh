. ./lib/sum.sh
. ./lib/report.sh
report "$1"
