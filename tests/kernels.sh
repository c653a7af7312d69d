#!/usr/bin/env bash
# Runs the whole suite as another user and in kernels that refuse more: `tests/kernels.sh [USER:KERNEL ...]`, as root.
# USER is a uid; KERNEL is one of tests/it/support/kernel.rs. Without words: all that the security manual speaks of.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
[ "$#" -gt 0 ] || set -- 0:Native 65534:Native 0:Docker 65534:Docker 0:DockerWithoutLandlock 65534:DockerWithoutLandlock
suite=$(cargo test --locked --no-run --message-format=json |
  sed -n 's/.*"executable":"\([^"]*\/it-[^"]*\)".*/\1/p' | tail -1)
install -d -m 1777 target/tmp
[ -x "$suite" ] || { echo "the suite does not build"; exit 1; }
failed=0
for place in "$@"; do
  user=${place%%:*} kernel=${place##*:}
  home=$(mktemp -d)
  chown "$user:$user" "$home"
  chmod 755 "$home"
  echo "== as $user in $kernel"
  if env -i PATH="$PATH" HOME="$home" TMPDIR="$home" AGENT_TEST_AROUND="$kernel" AGENT_TEST_KERNEL="$kernel" \
    AGENT_TEST_PROGRAM="$suite" AGENT_TEST_ARGUMENTS="${SUITE_ARGUMENTS:-[]}" \
    setpriv --reuid "$user" --regid "$user" --clear-groups \
    "$suite" --exact support::kernel::stand_in_kernel --nocapture >"$home/log" 2>&1; then
    grep -E '^test result' "$home/log" | tail -1
    rm -rf "$home"
  else
    failed=1
    grep -E '^test .* FAILED$|^test result' "$home/log"
    echo "the whole log: $home/log"
  fi
done
exit "$failed"
