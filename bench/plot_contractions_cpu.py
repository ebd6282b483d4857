"""Draws what contractions_cpu.py measured: shares of the peak of fused products, ours and the best peer's, a case a row.

usage: plot_contractions_cpu.py RESULTS.json FIGURE.svg

Of several runs in one file (`runs`) the first is drawn.
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    results = results.get("runs", [results])[0]
    peak = max(measured["fma"] for measured in results["peaks"])
    names = list(results["cases"])[::-1]
    ours, best = [], []
    for name in names:
        case = results["cases"][name]
        share = case["gflops"] * 1e9 / peak
        ours.append(100 * share)
        best.append(100 * share / case["best_peer_over_apl"])
    figure, axes = plt.subplots(figsize=(7, 0.16 * len(names) + 1))
    rows = range(len(names))
    axes.barh(rows, ours, height=0.7, color="#1f5fa8", label="apl")
    axes.plot(best, rows, "|", color="#d0342c", markersize=6, markeredgewidth=2, label="best peer")
    axes.set_yticks(rows, names, fontsize=6)
    axes.set_ylim(-1, len(names))
    axes.set_xlabel(f"per cent of the peak ({peak / 1e9:.0f} GFLOP/s, {results['type']}, {results['threads']} threads)")
    axes.legend(loc="lower right")
    axes.grid(axis="x", linewidth=0.3)
    figure.tight_layout()
    plt.rcParams["svg.hashsalt"] = "contractions"
    plt.rcParams["svg.fonttype"] = "none"
    figure.savefig(sys.argv[2], metadata={"Date": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
