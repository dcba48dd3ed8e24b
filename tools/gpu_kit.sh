#!/usr/bin/env bash
# Builds every GPU test and bench and puts them with the libraries they need into build/gpu-kit, to be carried
# to a machine with a GPU and no network. Run tools/gpu_session.sh there.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
cmake --preset cuda >build-cuda.log 2>&1 || { cat build-cuda.log; rm -f build-cuda.log; exit 1; }
rm -f build-cuda.log
ninja -C build/cuda gpu_tests
kit=build/gpu-kit
rm -rf "$kit"
mkdir -p "$kit/bin" "$kit/lib"
programs=(tests/parity/cuda_gpu_test tests/golden/golden_gpu_test tests/invariance/invariance_gpu_test
  tests/invariance/graph_gpu_test tests/gpu/nccl_two_ranks bench/shard/shard_gpu_bench)
for program in "${programs[@]}"; do
  strip -o "$kit/bin/$(basename "$program")" "build/cuda/$program"
done
# All but what every Linux has; the GPU's driver and NCCL come from the machine.
ldd "$kit"/bin/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -v -E '/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux[^/]*)\.so' | xargs -r cp -L -t "$kit/lib"
pwd >"$kit/source_dir"  # the tests read their data from where they were built
du -sh "$kit"
