#!/usr/bin/env python3
"""What Nsight Compute counts in the kernels of sparse products, ours and cuSPARSE's.

  bench/sparse_gpu/profile.py [--json FILE] [--most N] BIN/apl_sparse_gpu ARGUMENT...

Runs the program with --once, so that each kernel that it would time is launched once, in the order in which it says
them, and prints a line a kernel: microseconds, megabytes of the device's memory read and written and of the second cache,
shares of their peaks, hits of both caches, issue slots, warps that are resident, registers, and what warps wait for most.
Caches are as the kernel before left them.
"""
import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile

METRICS = {
    "us": "gpu__time_duration.sum",
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "l2": "lts__t_bytes.sum",
    "memory %": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2 %": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "l1 hits": "l1tex__t_sector_hit_rate.pct",
    "l2 hits": "lts__t_sector_hit_rate.pct",
    "issued %": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "active %": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "registers": "launch__registers_per_thread",
}
STALLS = ["long_scoreboard", "short_scoreboard", "lg_throttle", "mio_throttle", "math_pipe_throttle", "barrier", "wait",
          "no_instruction", "imc_miss", "not_selected", "dispatch_stall", "membar", "drain"]
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
KERNELS = "regex:apl_|spmm|sddmm|csr|coo|bsr|ell|gemm|cutlass"


def counted(ncu, most, command):
    with tempfile.NamedTemporaryFile(suffix=".csv") as log:
        names = list(METRICS.values()) + [STALL.format(name) for name in STALLS]
        run = subprocess.run([ncu, "--clock-control", "none", "--cache-control", "none", "--csv", "--print-units", "base",
                              "--kernel-name", KERNELS, "--launch-count", str(most), "--log-file", log.name,
                              "--metrics", ",".join(names), *command, "--once"], stdout=subprocess.PIPE, text=True)
        lines = open(log.name).read().splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        sys.exit("\n".join(["no counters:"] + lines[-5:]))
    kernels = {}
    for row in csv.DictReader(lines[first:]):
        kernel = kernels.setdefault(row["ID"], {"kernel": row["Kernel Name"], "grid": row["Grid Size"]})
        try:
            kernel[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        except ValueError:  # "n/a": a counter that this device does not give
            continue
    return run.stdout, list(kernels.values())


def line_of(kernel):
    known = {what: kernel[name] for what, name in METRICS.items() if name in kernel}
    stalls = sorted(((kernel.get(STALL.format(name), 0), name) for name in STALLS), reverse=True)
    known["waits"] = {name: round(ratio, 1) for ratio, name in stalls[:3] if ratio > 0}
    known["us"] = known.get("us", 0) / 1e3
    for what in ("read", "written", "l2"):
        if what in known:
            known[what] /= 1e6
    return {"kernel": kernel["kernel"], "grid": kernel["grid"], **known}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--most", type=int, default=200, help="kernels")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    ncu = shutil.which("ncu")
    if ncu is None:
        sys.exit("ncu is not installed")
    said, kernels = counted(ncu, options.most, options.command)
    lines = [line_of(kernel) for kernel in kernels if not kernel["kernel"].startswith("bench_")]
    print(said)
    columns = [name for name in METRICS if any(name in line for line in lines)]
    print(f"{'kernel':<44}" + "".join(f"{name:>10}" for name in columns) + "  waits")
    for line in lines:
        waits = ", ".join(f"{name} {ratio}" for name, ratio in line["waits"].items())
        print(f"{line['kernel'][:43]:<44}" + "".join(f"{line.get(name, 0):>10.1f}" for name in columns) + f"  {waits}")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"command": options.command, "said": said, "kernels": lines}, out, indent=1)


if __name__ == "__main__":
    main()
