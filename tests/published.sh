#!/usr/bin/env bash
# Breaks a published crate and a published Python package, which are downloaded into target/published, and has them repaired
# (tests/it/repair_tasks.rs): `tests/published.sh`. Needs the network (crates.io, PyPI), so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$PWD/target/published
rm -rf "$dir"
mkdir -p "$dir"/{fetch/src,crate/project,package/project}

printf '[package]\nname = "fetch"\nversion = "0.0.0"\n[workspace]\n[dependencies]\nfnv = "=1.0.7"\n' >"$dir/fetch/Cargo.toml"
: >"$dir/fetch/src/lib.rs"
(cd "$dir/fetch" && cargo vendor -q vendor >/dev/null)
cp -r "$dir/fetch/vendor/fnv/." "$dir/crate/project"
rm "$dir/crate/project/.cargo-checksum.json"
printf '\n[workspace]\n' >>"$dir/crate/project/Cargo.toml"
printf '/target\nCargo.lock\n' >"$dir/crate/project/.gitignore"
cat >"$dir/crate/repair.json" <<'JSON'
{
  "file": "lib.rs",
  "right": "wrapping_mul(0x100000001b3)",
  "wrong": "wrapping_mul(0x100000001b5)",
  "check": "CARGO_HOME=$TMPDIR/cargo cargo test --offline --quiet"
}
JSON

python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" download -q --no-deps --no-binary :all: --dest "$dir" semantic_version==2.10.0
tar -xzf "$dir"/semantic_version-2.10.0.tar.gz -C "$dir/package/project" --strip-components 1
cat >"$dir/package/repair.json" <<'JSON'
{
  "file": "semantic_version/base.py",
  "right": "patch=self.patch + 1,",
  "wrong": "patch=self.patch + 2,",
  "check": "python3 -B -m unittest tests.test_base"
}
JSON
AGENT_TEST_PUBLISHED=$dir cargo test --locked --test it -- repair_tasks::
