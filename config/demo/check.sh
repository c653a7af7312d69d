#!/bin/sh
# Checks total.sh; exits 1 and says what is wrong when it is.
got=$(sh ./total.sh 1 2 3)
if [ "$got" = 6 ]; then
  echo "ok: 1 + 2 + 3 = $got"
else
  echo "FAILED: 1 + 2 + 3 gave $got, not 6"
  exit 1
fi
