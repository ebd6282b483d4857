"""Tables and figures of docs/performance.md from what contractions_gpu.py and programs_gpu.py measured.

usage: performance.py CONTRACTIONS.json PROGRAMS.json FOLDER
       performance.py --cpu ONE-THREAD.json TWO-THREADS.json     what programs_cpu.py measured, the table alone

Prints the tables as Markdown, and writes FOLDER/contractions-gpu.svg and FOLDER/programs-gpu.svg: shares of the floor, the
larger of operations and bytes over what the machine was measured to reach, ours and the best peer's, a case a row.
"""
import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

GROUPS = {"mm": "products of 4096 by 4096, four layouts", "sd": "rank 6 (thesis)", "tccg": "TCCG", "shapes": "other shapes"}
PEERS = ("torch", "compile", "jax", "cuda")


def geomean(values):
    return statistics.geometric_mean(values)


def draw(file, rows, label):
    """`rows`: name, share of ours, share of the best peer or None."""
    rows = rows[::-1]
    figure, axes = plt.subplots(figsize=(7, 0.15 * len(rows) + 1))
    places = range(len(rows))
    axes.barh(places, [100 * ours for _, ours, _ in rows], height=0.7, color="#1f5fa8", label="apl")
    peers = [(100 * peer, place) for place, (_, _, peer) in enumerate(rows) if peer]
    axes.plot([x for x, _ in peers], [y for _, y in peers], "|", color="#d0342c", markersize=6, markeredgewidth=2, label="best peer")
    axes.set_yticks(places, [name for name, _, _ in rows], fontsize=5)
    axes.set_ylim(-1, len(rows))
    axes.set_xlim(0, 105)
    axes.set_xlabel(label)
    axes.legend(loc="lower right")
    axes.grid(axis="x", linewidth=0.3)
    figure.tight_layout()
    plt.rcParams["svg.hashsalt"] = file.stem
    plt.rcParams["svg.fonttype"] = "none"
    figure.savefig(file, metadata={"Date": None})


def contractions(record, file):
    cases = record["cases"]
    print(f"{record['device']}, {record['date']}; torch {record['torch']}; measured rates: " + ", ".join(
        f"{kind} {rate / 1e12:.1f} T{'B/s' if kind == 'bytes' else 'FLOP/s'}" for kind, rate in record["rates"].items()) + "\n")
    print("| cases | type | number | TFLOP/s | torch's time over ours | least | share of the floor |\n| --- | --- | --- | --- | --- | --- | --- |")
    for group, words in GROUPS.items():
        for kind in dict.fromkeys(case["type"] for case in cases):
            some = [case for case in cases if case["group"] == group and case["type"] == kind]
            if not some:
                continue
            ratios = [case["torch_us"] / case["us"] for case in some]
            print(f"| {words} | {kind} | {len(some)} | {geomean(case['tflops'] for case in some):.1f} | {geomean(ratios):.2f} | "
                  f"{min(ratios):.2f} | {geomean(case['floor_us'] / case['us'] for case in some):.2f} |")
    lost = sorted((case["torch_us"] / case["us"], case) for case in cases if case["torch_us"] < 0.85 * case["us"])
    print("\nSlower than torch by more than 15 %:\n\n| case | einsum | us | torch | ratio | share of the floor |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for ratio, case in lost:
        print(f"| {case['name']} {case['type']} | `{case['einsum']}` | {case['us']:.0f} | {case['torch_us']:.0f} | {ratio:.2f} | "
              f"{case['floor_us'] / case['us']:.2f} |")
    draw(file, [(f"{case['name']} {case['type']}", case["floor_us"] / case["us"], min(1, case["floor_us"] / case["torch_us"]))
                for case in cases], f"per cent of the floor ({record['device']}, default plans)")


def programs(record, file):
    print(f"\n{record['device']}, {record['date']}; copies at {record['copy_bytes_per_second'] / 1e12:.2f} TB/s\n")
    print("| program | ms | torch | torch.compile | JAX | CUB, CUDA | best peer's time over ours |\n| --- | --- | --- | --- | --- | --- | --- |")
    for row in record["milliseconds"]:
        cells = " | ".join(f"{row[peer]:.4g}" if peer in row else "" for peer in PEERS)
        print(f"| {row['name']} | {row['ours']:.4g} | {cells} | {row['best_over_ours']:.2f} |" if row["best_over_ours"] else
              f"| {row['name']} | {row['ours']:.4g} | {cells} | |")
    ratios = [row["best_over_ours"] for row in record["milliseconds"] if row["best_over_ours"]]
    print(f"\nGeometric mean {geomean(ratios):.2f}, least {min(ratios):.2f}.")
    bound = [row for row in record["milliseconds"] if row["limit_over_ours"]]
    draw(file, [(row["name"], row["limit_over_ours"], row["limit_over_ours"] / row["best_over_ours"]) for row in bound],
         f"per cent of a copy's bandwidth ({record['device']})")


def programs_on_cpu(one, two):
    peers = ("numpy", "numba", "jax", "torch", "c")
    versions = ", ".join(f"{name} {version}" for name, version in one["peers"].items())
    print(f"\n{one['machine']}, {one['date']}; {versions}\n")
    print("| program | ms | NumPy | numba | JAX | torch | loops in C | best peer's time over ours | with two threads |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row, other in zip(one["cases"], two["cases"]):
        cells = " | ".join(f"{row['peers_ms'][peer]:.3g}" if peer in row["peers_ms"] else "" for peer in peers)
        print(f"| {row['name']} | {row['ours_ms']:.3g} | {cells} | {row['best_over_ours']:.2f} | {other['best_over_ours']:.2f} |")
    for record in (one, two):
        ratios = [row["best_over_ours"] for row in record["cases"]]
        print(f"\n{record['threads']} thread(s): geometric mean {geomean(ratios):.2f}, least {min(ratios):.2f}.")


def main():
    if sys.argv[1] == "--cpu":
        programs_on_cpu(*(json.loads(pathlib.Path(name).read_text()) for name in sys.argv[2:4]))
        return 0
    folder = pathlib.Path(sys.argv[3])
    contractions(json.loads(pathlib.Path(sys.argv[1]).read_text()), folder / "contractions-gpu.svg")
    programs(json.loads(pathlib.Path(sys.argv[2]).read_text()), folder / "programs-gpu.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
