#!/usr/bin/env python3
"""Plans of contractions beside each other on this machine's NVIDIA GPU: what the model of tiles is fitted to.

    bench/plans_gpu.py APLC PLANS.json [--only NAME] [--seconds SECONDS] [--json FILE]

PLANS.json is a result of this program, as bench/results/plans-h100-2026-11-26.json: a list `plans` of cases of
bench/contractions_gpu.py (name, type) with tuning parameters (none: what the model chooses). Each is compiled to a CUDA
library of its own and measured anew, in microseconds; then the table says for each case how much longer the plan without
parameters takes than the fastest one. Exit status 0 only if everything ran.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch

import contractions_gpu
import results_file
from contractions_cpu import program
from gpu_library import Library, build, milliseconds


def prepare(job):
    """In a process of its own: the library and its kernels."""
    aplc, folder, base, case, parameters = job
    kind, _, _, result, left, right, _ = case
    text = program(result, left, right, "f32", "f16") if kind == "f16" else program(result, left, right, kind)
    build(aplc, text, folder, base, parameters)
    Library("main", contractions_gpu.results_of(kind, result), folder, base).warm(contractions_gpu.operands(case))
    torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("aplc")
    parser.add_argument("plans")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.01)
    parser.add_argument("--json")
    options = parser.parse_args()
    known = {(kind, case[1]): (kind, *case) for kind in contractions_gpu.TYPES
             for case in contractions_gpu.cases("mm,sd,tccg,shapes".split(","), False)}
    plans = [plan for plan in json.loads(pathlib.Path(options.plans).read_text())["plans"] if options.only in plan["name"]]
    failed, rows, times = 0, [], collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        jobs = [(options.aplc, folder, f"plan{k}", known[plan["type"], plan["name"]], plan["parameters"])
                for k, plan in enumerate(plans)]
        with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
            later = [pool.submit(prepare, job) for job in jobs]
            concurrent.futures.wait(later)
        for plan, job, prepared in zip(plans, jobs, later):
            case = job[3]
            try:
                prepared.result()
                library = Library("main", contractions_gpu.results_of(case[0], case[3]), folder, job[2])
                arguments = library.arguments(contractions_gpu.operands(case))
                us = 1e3 * milliseconds(lambda: library.release(library.call(arguments)), options.seconds)
                library.forget()
                torch.cuda.empty_cache()
            except Exception as error:  # of a worker, too
                print(f"{plan['name']} {plan['type']} {' '.join(plan['parameters'])} failed: {str(error)[-300:]}")
                failed += 1
                continue
            rows.append({**{key: plan[key] for key in ("name", "type", "variant", "parameters")}, "us": us})
            times[plan["name"], plan["type"]].append((us, not plan["parameters"], " ".join(plan["parameters"]) or "default"))
    losses = []
    for (name, kind), all_of_case in times.items():
        default = [us for us, is_default, _ in all_of_case if is_default]
        best = min(all_of_case)
        if default:
            losses.append(min(default) / best[0])
            print(f"{name + ' ' + kind:26}{min(default):9.1f} us, {losses[-1]:5.2f} times the best of {len(all_of_case)}: {best[2]}")
    if losses:
        print(f"defaults take {statistics.geometric_mean(losses):.3f} times the best in geometric mean, {max(losses):.2f} at most")
    if options.json:
        record = {"date": time.strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(), "plans": rows}
        results_file.write(options.json, record)
    return 1 if failed or not math.isfinite(sum(losses)) else 0


if __name__ == "__main__":
    sys.exit(main())
