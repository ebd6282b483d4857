#!/usr/bin/env python3
"""Programs whose plan says `form dense`: by this compiler's own product and by cuBLAS, against the sparse program on a CPU.

    bench/sparse_gpu/dense_plans.py APLC [--backend=cuda] [--rows=512] [--sanitize] [--json=FILE]

Operands are small integers, so that all results are exact, and must be the same. Times are those of `aplc bench`, whole
calls. With --sanitize everything runs under compute-sanitizer's memcheck and racecheck instead, but for cuBLAS.
"""
import argparse
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

PROGRAM = """
#[sparse(A)]
entry half [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f16 =
  map (\\row -> map (\\col -> f16.f32 (f32.sum (map2 (\\a x -> f32.f16 a * f32.f16 x) row col))) (transpose B)) A
#[sparse(A)]
entry relu [n][m][b] (A: [n][m]f16) (B: [m][b]f16) (bias: [b]f32): [n][b]f32 =
  map (\\row -> map2 (\\col z -> f32.max 0 (z + f32.sum (map2 (\\a x -> f32.f16 a * f32.f16 x) row col)))
                     (transpose B) bias) A
#[sparse(A)]
entry single [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B)) A
#[sparse(A)]
entry double [n][m][b] (A: [n][m]f64) (B: [m][b]f64): [n][b]f64 =
  map (\\row -> map (\\col -> f64.sum (map2 (*) row col)) (transpose B)) A
#[sparse(A, result)]
entry samples [n][m][k] (A: [n][m]f16) (X: [n][k]f16) (Y: [m][k]f16): [n][m]f16 =
  map2 (\\row x -> map2 (\\a y -> f16.f32 (f32.f16 a * f32.sum (map2 (\\p q -> f32.f16 p * f32.f16 q) x y))) row Y) A X
"""
# Entry, operator, the other operands' names with their rows (n, m, or 0: a vector) and types.
ENTRIES = [
    ("half", "spmm", [("B", "m", "f16")]),
    ("relu", "spmm", [("B", "m", "f16"), ("bias", None, "f32")]),
    ("single", "spmm", [("B", "m", "f32")]),
    ("double", "spmm", [("B", "m", "f64")]),
    ("samples", "sddmm", [("X", "n", "f16"), ("Y", "m", "f16")]),
]
FORMATS = {"f16": "e", "f32": "f", "f64": "d"}


def binary(shape, kind, source):
    count = 1
    for size in shape:
        count *= size
    numbers = [source.randint(-2, 2) for _ in range(count)]
    head = b"b" + bytes([2, len(shape)]) + kind.rjust(4).encode() + struct.pack(f"<{len(shape)}q", *shape)
    return head + struct.pack(f"<{count}{FORMATS[kind]}", *numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("aplc")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    aplc = str(pathlib.Path(arguments.aplc).resolve())
    folder = pathlib.Path(tempfile.mkdtemp())
    source = random.Random(1)
    rows, columns, width = arguments.rows, arguments.rows + 64, arguments.width
    (folder / "dense.fut").write_text(PROGRAM)
    points = [(i, j) for i in range(rows) for j in range(columns) if source.random() < 0.5]
    lines = [f"{i + 1} {j + 1} {source.choice((-2, -1, 1, 2))}" for i, j in points]
    (folder / "a.mtx").write_text(
        f"%%MatrixMarket matrix coordinate integer general\n{rows} {columns} {len(points)}\n" + "\n".join(lines) + "\n"
    )

    def run(*words, tool=None, fine=True):
        before = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--report-api-errors", "no"] if tool else []
        ran = subprocess.run([*before, aplc, *words], cwd=folder, capture_output=True, text=True, errors="replace",
                             check=False)
        if fine and ran.returncode != 0:
            print(f"FAILED: {' '.join(words)}: {ran.returncode}\n{ran.stdout[-600:]}{ran.stderr[-600:]}")
        return ran

    key = re.search("key ([0-9a-f]+)", run("sparse", "inspect", "a.mtx").stdout).group(1)
    for operator in ("spmm", "sddmm"):
        (folder / f"{operator}.plan").write_text(
            f"apl-sparse-plan 2\nmatrix {rows} {columns} {len(points)} {key}\noperator {operator}\n"
            f"dense {width} part {width}\nform dense\nend\n"
        )
    wrong, records = 0, []
    for entry, operator, operands in ENTRIES:
        values = ["A=@a.mtx"]
        for name, size, kind in operands:
            shape = [width] if size is None else [{"n": rows, "m": columns}[size], width]
            (folder / f"{name}.in").write_bytes(binary(shape, kind, source))
            values.append(f"{name}=@{name}.in")
        call = ["dense.fut", "-e", entry, *values]
        plan = ["--plan", f"A={operator}.plan", "--backend", arguments.backend]
        if arguments.sanitize:
            for tool in ("memcheck", "racecheck"):
                ran = run("run", "--remarks", "-b", *call, *plan, tool=tool)
                summary = re.findall("(?:ERROR|RACECHECK) SUMMARY: .*", ran.stdout + ran.stderr)
                wrong += ran.returncode != 0
                print(f"{entry} {tool}: {'; '.join(summary) or 'nothing was said'}", flush=True)
            continue
        wanted = run("run", *call, "--backend", "c").stdout
        record = {"entry": entry, "rows": rows, "columns": columns, "width": width}
        for library in ([], ["--use-cublas"]):
            got = run("run", "--remarks", *call, *plan, *library)
            is_right = got.returncode == 0 and got.stdout == wanted
            says = "by cuBLAS" if library and arguments.backend == "cuda" else "dense product"
            wrong += not is_right or says not in got.stderr
            name = "cublas" if library else "own"
            record[name] = "right" if is_right else "WRONG"
            if says not in got.stderr:
                print(f"FAILED: {entry} {name}: it does not say what runs: {got.stderr}")
            if arguments.backend != "emulate":
                ran = run("bench", *call, *plan, *library, "-r", "20", "--no-convergence-phase")
                record[name + "_us"] = int(re.search(r": (\d+) us", ran.stdout).group(1)) if ran.returncode == 0 else 0
        if arguments.backend != "emulate":
            ran = run("bench", *call, "--backend", arguments.backend, "-r", "20", "--no-convergence-phase")
            record["sparse_us"] = int(re.search(r": (\d+) us", ran.stdout).group(1)) if ran.returncode == 0 else 0
        records.append(record)
        print(", ".join(f"{name} {value}" for name, value in record.items()), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    print(f"{wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
