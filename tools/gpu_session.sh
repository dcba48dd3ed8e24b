#!/usr/bin/env bash
# Everything that needs a GPU, in the order of what it tells, in pieces of less than eight minutes.
#
# usage: tools/gpu_session.sh PIECE...
#   facts     the card, its driver, the tools at hand                        (seconds)
#   build     make build/gpu-kit here; not needed where it was carried       (about 3 minutes)
#   parity    every op against the oracle, invariance under any batching     (about 1 minute)
#   golden    the whole model against golden vectors, one and two ranks      (about 2 minutes)
#   invariance  chunks, rollback, snapshots, ranks on the real model          (about 2 minutes)
#   nccl      two ranks over NCCL on one GPU; a stuck rank is named           (about 1 minute)
#   soak      10,000 random steps, replayed against direct                    (about 2 minutes)
#   memcheck  parity of the small ops under compute-sanitizer                 (about 3 minutes)
#   decode    one rank of two at full shape: decode                           (about 4 minutes)
#   prefill   the same: prompt chunks and a draft                             (about 4 minutes)
#   profile   time of each kernel in one decode step                          (about 3 minutes)
# Logs and numbers go to $GPU_OUT (default build/gpu-out). Each piece ends with one line PASS or FAIL.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
kit=build/gpu-kit
out=${GPU_OUT:-build/gpu-out}
mkdir -p "$out"

prepare() {
  [ -d "$kit" ] || { echo "no $kit: run tools/gpu_kit.sh before, or the piece 'build'"; exit 2; }
  # The programs look for test data where they were built.
  local built
  built=$(cat "$kit/source_dir")
  if [ ! -e "$built" ]; then
    mkdir -p "$(dirname "$built")" && ln -s "$PWD" "$built"
  fi
  local nccl
  nccl=$(find / -name 'libnccl.so.2' -not -path '/proc/*' 2>/dev/null | head -1)
  export LD_LIBRARY_PATH="$PWD/$kit/lib${nccl:+:$(dirname "$nccl")}:${LD_LIBRARY_PATH:-}"
}

# run NAME SECONDS COMMAND...: keeps the log, shows its end, says PASS or FAIL.
run() {
  local name=$1 limit=$2 begin=$SECONDS code
  shift 2
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  code=$?
  tail -n "${SHOW:-6}" "$out/$name.log"
  [ "$code" = "${EXPECT:-0}" ] && echo "PASS $name ($((SECONDS - begin)) s)" ||
    echo "FAIL $name (exit code $code, expected ${EXPECT:-0}, $((SECONDS - begin)) s): $out/$name.log"
}

piece_facts() {
  nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv
  command -v nvcc ncu compute-sanitizer cmake ninja || true
}

piece_build() { SHOW=3 run build 460 tools/gpu_kit.sh; }
piece_parity() { run parity 300 "$kit/bin/cuda_gpu_test" --gtest_brief=1; }
piece_golden() { run golden 460 "$kit/bin/golden_gpu_test" --gtest_brief=1; }
piece_invariance() { run invariance 460 "$kit/bin/invariance_gpu_test" --gtest_brief=1; }
piece_soak() { run soak 460 "$kit/bin/graph_gpu_test" --gtest_brief=1; }

piece_nccl() {
  run nccl_golden 120 "$kit/bin/nccl_two_ranks" golden
  EXPECT=7 run nccl_stuck 60 "$kit/bin/nccl_two_ranks" stuck
}

piece_memcheck() {
  run memcheck 460 compute-sanitizer --error-exitcode 9 "$kit/bin/cuda_gpu_test" --gtest_brief=1 \
    '--gtest_filter=*Attention*:*Compress*:*Rows*:*Index*:*Window*:*Experts*'
}

piece_decode() {
  SHOW=45 run decode 470 "$kit/bin/shard_gpu_bench" --prefill 64 --csv "$out/decode.csv"
}

piece_prefill() {
  SHOW=20 run prefill 470 "$kit/bin/shard_gpu_bench" --rows 1 --contexts 0 --repeats 5 --csv "$out/prefill.csv"
}

# Without graphs, so that kernels have names; few layers, since all are alike.
piece_profile() {
  SHOW=60 run profile 470 ncu --clock-control none --metrics gpu__time_duration.sum --csv \
    --launch-skip 2000 --launch-count 600 \
    "$kit/bin/shard_gpu_bench" --layers 8 --rows 1 --contexts 0 --prefill 64 --repeats 3 --no-graphs
}

[ $# -gt 0 ] || { sed -n '2,20p' "$0"; exit 2; }
for piece in "$@"; do
  declare -F "piece_$piece" >/dev/null || { echo "no piece '$piece'"; exit 2; }
  [ "$piece" = facts ] || [ "$piece" = build ] || prepare
  echo "== $piece"
  "piece_$piece"
done
