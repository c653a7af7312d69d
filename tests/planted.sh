#!/usr/bin/env bash
# Plants each bug of tests/planted into a copy of the tree and expects the simulator to find it: `tests/planted.sh [NAME ...]`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
root=$PWD
copy=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$copy/tree"; rm -rf "$copy"' EXIT
git worktree add --quiet --detach "$copy/tree" HEAD || exit
# One of its own: the next build of the tree would take what was built here for its own.
export CARGO_TARGET_DIR="$root/target/planted" RUST_BACKTRACE=0
if [ "$#" -eq 0 ]; then
  for patch in tests/planted/*.patch; do
    name=${patch##*/}
    set -- "$@" "${name%.patch}"
  done
fi
missed=0
for name in "$@"; do
  git -C "$copy/tree" checkout --quiet --force HEAD
  if ! git -C "$copy/tree" apply "$root/tests/planted/$name.patch"; then
    echo "| $name | does not apply |"
    missed=1
    continue
  fi
  out=$(cd "$copy/tree" && AGENT_SIMULATION_STEPS=${STEPS:-40000} timeout 900 cargo test -p agent-session simulation 2>&1)
  found=$(printf '%s\n' "$out" | grep -m1 -o '^seed [0-9]*: .*' | cut -c1-120)
  if [ -z "$found" ]; then
    printf '%s\n' "$out" | tail -3
    found="NOT FOUND"
    missed=1
  fi
  echo "| $name | $found |"
done
exit "$missed"
