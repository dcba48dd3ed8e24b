#!/usr/bin/env python3
"""Compares registers, spills, stack and shared memory of every CUDA kernel with the committed table.

usage: check_kernel_resources.py BUILD_DIR TABLE.csv [--update]

The compiler's report lies beside each object file (tools/log_kernel_resources.sh). A spilled register or a
kernel that the table does not know is an error; --update writes the table anew, to be looked at and
committed with the change that moved it.
"""
import csv
import pathlib
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(sm_\w+)'")
SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
STACK = re.compile(r"(\d+) bytes cumulative stack size")
COLUMNS = ["kernel", "arch", "registers", "spill_bytes", "stack_bytes", "shared_bytes"]


def plain_name(mangled: str) -> str:
    full = subprocess.run(["c++filt", mangled], check=True, capture_output=True, text=True).stdout.strip()
    full = full.replace("(anonymous namespace)::", "").replace("(tandem::tensor::WeightFormat)", "format ")
    head = full.split("(", 1)[0]
    head = re.sub(r"\b_GLOBAL__N__\w+::", "", head)
    return head.removeprefix("void ").replace("tandem::cuda::", "").strip()


def rows_of(report: str) -> list[dict]:
    rows = []
    current = None
    for line in report.splitlines():
        if entry := ENTRY.search(line):
            current = dict.fromkeys(COLUMNS, 0) | {"kernel": plain_name(entry.group(1)), "arch": entry.group(2)}
        if current is None:
            continue
        if spill := SPILL.search(line):
            current["spill_bytes"] = int(spill.group(2)) + int(spill.group(3))
        if used := USED.search(line):
            current["registers"] = int(used.group(1))
            if shared := SHARED.search(line):
                current["shared_bytes"] = int(shared.group(1))
            if stack := STACK.search(line):
                current["stack_bytes"] = int(stack.group(1))
            rows.append(current)
            current = None
    return rows


def main() -> int:
    build, table_path = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    reports = sorted(build.rglob("*.cu.o.resources"))
    rows = [row for report in reports for row in rows_of(report.read_text(encoding="utf-8"))]
    names = [(row["kernel"], row["arch"]) for row in rows]
    if len(set(names)) != len(names):
        print("two kernels have the same name: " + ", ".join(sorted({str(n) for n in names if names.count(n) > 1})))
        return 1
    rows.sort(key=lambda row: (row["kernel"], row["arch"]))
    if not rows:
        print(f"{build}: no kernel reports; build the target tandem_cuda_ops first")
        return 1
    if "--update" in sys.argv:
        with table_path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    with table_path.open(encoding="utf-8") as table:
        known = {(row["kernel"], row["arch"]): {k: int(row[k]) for k in COLUMNS[2:]} for row in csv.DictReader(table)}
    found = {(row["kernel"], row["arch"]): {k: row[k] for k in COLUMNS[2:]} for row in rows}
    wrong = [f"{key}: {found[key]} and the table says {known.get(key)}" for key in found if found[key] != known.get(key)]
    wrong += [f"{key}: in the table, not in the build" for key in known if key not in found]
    wrong += [f"{key}: spills {row['spill_bytes']} bytes" for key, row in found.items() if row["spill_bytes"]]
    print("\n".join(wrong) if wrong else f"kernel resources: {len(found)} kernels as in the table, no spills")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
