#!/usr/bin/env python3
"""The 48 contractions of TCCG in f32 and with f16 operands (f32 results), with default plans: half the bytes should never
take longer.

    bench/narrow_pairs.py APLC [--explain] [--only tccg_0] [--device h200] [--runs 10] [--json FILE]

Without `--explain` both are measured on this machine's GPU by `aplc bench` (whole calls), with it the model is asked, which
needs none. Prints each pair with the ratio of f32's time to f16's, and names those under 1; under 0.97, which no spread of
the timer explains, the exit status is 1 where they were measured.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cases(only):
    for line in (ROOT / "bench/tccg48.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        name, result, _, left, _, right, *sizes = line.split()
        if only in name:
            yield name, result, left, right, {s.split("=")[0]: int(s.split("=")[1]) for s in sizes}


def entry(name, result, left, right, sizes, kind):
    """The text of an entry with its dataset: a sum over the dims that the result has not, in the order of the operands."""
    sums = [c for c in dict.fromkeys(left + right) if c not in result]

    def shape(dims, text):
        return "".join(f"[{text(c)}]" for c in dims)

    def read(array, dims):
        element = f"{array}[{', '.join('i_' + c for c in dims)}]"
        return element if kind == "f32" else f"f32.{kind} {element}"

    body = f"{read('A', left)} * {read('B', right)}"
    for c in reversed(sums):
        body = f"f32.sum (tabulate s{c} (\\i_{c} -> {body}))"
    for c in reversed(result):
        body = f"tabulate s{c} (\\i_{c} -> {body})"
    inputs = " ".join(shape(dims, lambda c: sizes[c]) + kind for dims in (left, right))
    generic = " ".join(f"[s{c}]" for c in sorted(set(left + right)))
    return (f"-- ==\n-- entry: {name}_{kind}\n-- random input {{ {inputs} }}\n"
            f"entry {name}_{kind} {generic} (A: {shape(left, lambda c: 's' + c)}{kind}) "
            f"(B: {shape(right, lambda c: 's' + c)}{kind}) : {shape(result, lambda c: 's' + c)}f32 =\n  {body}\n\n")


def predicted(aplc, source, device):
    """Microseconds and plan by entry, as the model chooses."""
    text = subprocess.run([aplc, "explain", "--all", f"--device={device}", "--json", str(source)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for remark in json.loads(text):
        if remark["pass"] != "plan":
            continue
        facts = remark["facts"]
        times = [part.rsplit(" ", 2) for part in facts.get("variants", "").split(", ") if part]
        seconds = {words[0]: float(words[1]) for words in times}
        key = {"tiled": "tiled", "split": "split", "untiled": "not", "transposed": "with"}.get(facts.get("variant", ""))
        chosen = next((t for name, t in seconds.items() if key and name.startswith(key)), None)
        if chosen is None:
            chosen = float(facts["cost"].split(" ")[0]) if "cost" in facts else float("nan")
        found[remark["function"]] = (chosen, f"{facts.get('variant', '')} {facts.get('block', '')}")
    return found


def measured(aplc, source, runs, folder):
    report = folder / "times.json"
    subprocess.run([aplc, "bench", "--backend=cuda", "--no-convergence-phase", f"--runs={runs}", "--json", str(report),
                    str(source)], check=True, stdout=subprocess.DEVNULL)
    found = {}
    for name, values in json.loads(report.read_text()).items():
        for case in values["datasets"].values():
            found[name.rsplit(":", 1)[1]] = (statistics.median(case["runtimes"]), "")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("aplc")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--only", default="tccg_")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    all_cases = list(cases(options.only))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "pairs.fut"
        source.write_text("".join(entry(*case, kind) for case in all_cases for kind in ("f32", "f16")), encoding="utf-8")
        found = (predicted(options.aplc, source, options.device) if options.explain
                 else measured(options.aplc, source, options.runs, folder))
    lines, slower = [], []
    for name, result, left, right, sizes in all_cases:
        operations = 2
        for c in set(left + right):
            operations *= sizes[c]
        (wide, wide_plan), (narrow, narrow_plan) = found[name + "_f32"], found[name + "_f16"]
        ratio = wide / narrow
        print(f"{name} {result:6} = {left:6} {right:6} f32 {wide:9.1f} us {operations / wide / 1e6:6.1f} TFLOP/s, f16 "
              f"{narrow:9.1f} us {operations / narrow / 1e6:6.1f}: {ratio:.2f} {wide_plan} | {narrow_plan}"
              .rstrip(" |"), flush=True)
        lines.append({"case": name, "f32_us": round(wide, 1), "f16_us": round(narrow, 1), "ratio": round(ratio, 3)})
        if ratio < 1:
            slower.append((name, ratio))
    mean = statistics.geometric_mean(line["ratio"] for line in lines)
    print(f"geometric mean {mean:.2f}; slower with f16: {', '.join(n for n, _ in slower) or 'none'}")
    if options.json:
        options.json.write_text(json.dumps({"pairs": lines, "predicted": options.explain}, indent=1) + "\n")
    return 1 if not options.explain and any(ratio < 0.97 for _, ratio in slower) else 0


if __name__ == "__main__":
    sys.exit(main())
