#!/bin/bash
# all.sh BUILD: every check, after the proof that each can fail. BUILD is a configured build folder.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$1

failed=()
step() {
  echo "== check: $1"
  shift
  "$@" || failed+=("${*##*/}")
}
PYTHONPATH=$here step "the checks themselves" python3 -m unittest discover -s "$here/../../tests/checks" -p "*_test.py"
step "include directions" "$here/include_directions.py"
step "house rules" "$here/house_rules.py"
step "links and paths in the documentation" "$here/doc_links.py"
step "what the site shows" "$here/doc_site.py"
step "format" "$here/format.py"
step "generated kernels" "$here/kernels.py"
step "clang-tidy" "$here/tidy.py" "$build"
step "one definition of each type" "$here/one_definition.py" "$build/one-definition"
if [ ${#failed[@]} -gt 0 ]; then
  printf '== check: failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "== check: all passed"
