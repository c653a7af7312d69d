#!/usr/bin/env bash
# Checks JUnit and SARIF reports against the published schemas, reads them back with other tools, and lints the action and its
# examples: `tests/reports.sh`. It downloads these tools from PyPI and npm into target/reports, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked
agent=$PWD/target/debug/agent
action=$PWD/.github/actions/agent
tools=$PWD/target/reports
mkdir -p "$tools"
[ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
PATH=$tools/venv/bin:$PATH
pip install -q sarif-tools==3.0.5 junitparser==5.0.3 jsonschema==4.26.0 lxml==6.1.3 zizmor==1.32.0
cd "$tools"
# The source package of pytest has the XSD of Jenkins' xUnit plugin, the package of Microsoft's SARIF tool the JSON Schema.
[ -f pytest-8.3.5.tar.gz ] || pip download -q --no-deps --no-binary :all: pytest==8.3.5
tar xzf pytest-8.3.5.tar.gz --strip-components=3 pytest-8.3.5/testing/example_scripts/junit-10.xsd
[ -d node_modules ] || npm install --silent --no-save --force --prefix . @microsoft/sarif-multitool-linux@5.7.0 @action-validator/core@0.6.0 @action-validator/cli@0.6.0

echo "== a review with hostile texts, a run with gates, a run that never began"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AGENT_HOME=$work/home
mkdir "$work/home" "$work/project" && cd "$work/project"
git init -q && git -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m first
printf 'x\n' >'a <&"b.txt'
cat >"$work/review.yaml" <<'SCRIPT'
turns:
  - text: '{"summary": "\u0001\u001b[1m\ufffe]]>", "findings": [
      {"path": "a <&\"b.txt", "line": 1, "end_line": 2, "severity": "high", "title": "<&\"\u0000\ud83d\ude00", "message": "]]>\r\n\uffff", "suggestion": null},
      {"path": "/etc/passwd", "line": -5, "end_line": 99999999999, "severity": "info", "title": "", "message": "", "suggestion": ""}]}'
SCRIPT
printf 'turns: [{text: a}, {text: b}, {text: c}, {text: d}, {text: e}]\n' >"$work/run.yaml"
"$agent" review -q --model "scripted:$work/review.yaml" --report-file "$work/review.sarif" >/dev/null
"$agent" report -o "$work/review.xml"
"$agent" run task -q --check 'printf "<\001>"; exit 1' --model "scripted:$work/run.yaml" --report-file "$work/run.xml" >/dev/null || true
"$agent" report -o "$work/run.sarif"
for name in none.xml none.sarif; do "$agent" run task -q -c absent.yaml --report-file "$work/$name" 2>/dev/null || true; done
cd "$work"
python3 - "$tools" <<'CHECK'
import glob, json, sys
import jsonschema, junitparser
from lxml import etree
tools = sys.argv[1]
xsd = etree.XMLSchema(etree.parse(f"{tools}/junit-10.xsd"))
schema = json.load(open(f"{tools}/node_modules/@microsoft/sarif-multitool-linux/sarif-2.1.0.json"))
validator = jsonschema.validators.validator_for(schema)(schema)
for name in sorted(glob.glob("*.xml")):
    xsd.assertValid(etree.parse(name))
    for suite in junitparser.JUnitXml.fromfile(name):
        cases = [(case.name, [type(result).__name__ for result in case.result]) for case in suite]
        assert len(cases) == suite.tests, name
        print(f"{name}: fits junit-10.xsd;", cases)
for name in sorted(glob.glob("*.sarif")):
    validator.validate(json.load(open(name)))
    print(f"{name}: fits sarif-2.1.0.json")
CHECK
sarif summary review.sarif
sarif csv -o review.csv review.sarif >/dev/null
grep -q 'error,review/high' review.csv || { echo "sarif-tools does not find the finding" >&2; exit 1; }

echo "== the action and its examples"
zizmor --offline --no-progress --quiet "$action"
for file in "$action/action.yml" "$action"/examples/*.yml; do "$tools/node_modules/.bin/action-validator" "$file"; done
shellcheck "$action/run.sh"
echo "all reports and examples pass"
