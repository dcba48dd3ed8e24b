#!/usr/bin/env python3
"""Checks that every #include under src/ obeys the layer table of docs/ARCHITECTURE.md.

A folder may include itself and the folders in its row. The script also bans what must stay in one
place: CUDA headers, getenv, printing from libraries. Exit code 1 names every breach.
"""
import pathlib
import re
import sys

FOUNDATION = {"foundation/base", "foundation/json", "foundation/obs", "foundation/net"}
CONTRACTS = {"compute/tensor", "compute/device", "compute/kernels"}
POLICY = {"engine/sampling", "engine/grammar", "engine/scheduler", "engine/speculation"}
ALLOWED = {
    "foundation/base": set(),
    "foundation/json": {"foundation/base"},
    "foundation/obs": {"foundation/base", "foundation/json"},
    "foundation/net": {"foundation/base", "foundation/obs", "foundation/json"},
    "compute/tensor": FOUNDATION,
    "compute/device": FOUNDATION | {"compute/tensor"},
    "compute/kernels": FOUNDATION | {"compute/tensor", "compute/device"},
    "compute/cpu": FOUNDATION | CONTRACTS,
    "compute/cuda": FOUNDATION | CONTRACTS,
    "compute/comm": FOUNDATION | {"compute/tensor", "compute/device"},
    "model/checkpoint": FOUNDATION | {"compute/tensor", "compute/device"},
    "model/text": FOUNDATION,
    "model/cache": FOUNDATION | CONTRACTS,
    "model/v4": FOUNDATION | CONTRACTS | {"compute/comm", "model/checkpoint", "model/cache"},
    "engine/sampling": FOUNDATION | {"model/text"},
    "engine/grammar": FOUNDATION | {"model/text"},
    "engine/scheduler": FOUNDATION | {"model/text"},
    "engine/speculation": FOUNDATION | {"model/text", "engine/sampling"},
    "engine/runtime": FOUNDATION | CONTRACTS | POLICY
    | {"compute/comm", "model/checkpoint", "model/text", "model/cache", "model/v4"},
    "serving/protocol": FOUNDATION
    | {"model/text", "engine/sampling", "engine/grammar", "engine/runtime"},
    "serving/http": FOUNDATION,
    "serving/server": FOUNDATION
    | {"model/text", "engine/sampling", "engine/grammar", "engine/runtime", "serving/protocol",
       "serving/http"},
    "operations/cluster": FOUNDATION,
    "operations/verify": FOUNDATION,
    "operations/bench": FOUNDATION,
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
TEXT_BANS = [  # (pattern, folders where it is allowed, what to do instead)
    (re.compile(r"\bgetenv\s*\("), {"apps/tandem"}, "read the typed config instead"),
    (re.compile(r"\bstd::(cout|cerr)\b|[^n]\bprintf\s*\("), {"apps/tandem"}, "return a Status or use foundation/obs"),
    (re.compile(r"\bstd::random_device\b|\brand\s*\(\)"), set(), "use foundation/base/random.h with a seed"),
]


def folder_of(path: pathlib.Path, src: pathlib.Path) -> str:
    parts = path.relative_to(src).parts
    return "/".join(parts[:2])


def breaches_of(path: pathlib.Path, src: pathlib.Path) -> list[str]:
    folder = folder_of(path, src)
    found = []
    if folder != "apps/tandem" and folder not in ALLOWED:
        found.append(f"{path}: folder {folder} has no row in the layer table")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            name = match.group(1)
            target = "/".join(name.split("/")[:2])
            known = target in ALLOWED or target == "apps/tandem"
            if known and target != folder and folder != "apps/tandem" and target not in ALLOWED.get(folder, set()):
                found.append(f"{path}:{number}: {folder} may not include {target}")
            if re.match(r"(cuda|cublas|nccl)", name) and folder not in {"compute/cuda", "compute/comm"}:
                found.append(f"{path}:{number}: CUDA headers belong to compute/cuda")
        for pattern, places, advice in TEXT_BANS:
            if folder not in places and pattern.search(line) and not line.lstrip().startswith("//"):
                found.append(f"{path}:{number}: {pattern.pattern} is banned here: {advice}")
    return found


def main() -> int:
    src = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "src"
    files = [p for p in sorted(src.rglob("*")) if p.suffix in {".h", ".cc", ".cu", ".cuh"}]
    found = [line for path in files for line in breaches_of(path, src)]
    print("\n".join(found) if found else f"layers: {len(files)} files obey the table")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
