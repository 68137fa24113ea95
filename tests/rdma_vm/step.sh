# shellcheck shell=bash
# Sourced in the guest by what run.py writes.

# step NAME SECONDS COMMAND...: leaves /run/out/NAME.log, and /run/out/NAME.result with the exit status
# and the milliseconds that it took. A command that takes too long ends with 124.
step() {
  local name=$1 seconds=$2 start=${EPOCHREALTIME/./} status
  shift 2
  echo "== $name: $*"
  timeout -k 5 "$seconds" "$@" </dev/null 2>&1 | tee "/run/out/$name.log"
  status=${PIPESTATUS[0]}
  echo "$status $(((${EPOCHREALTIME/./} - start) / 1000))" >"/run/out/$name.result"
}
