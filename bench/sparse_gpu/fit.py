#!/usr/bin/env python3
"""Fits the numbers of SDDMM and of dense products in runtime/sparse/device_cost.c to what apl_sparse_gpu recorded.

    bench/sparse_gpu/fit.py bench/results/sparse-h200-2026-11-21.json

Least squares of the logarithms of times (Levenberg-Marquardt, in plain Python). Prints the numbers, and, once for all
cases and once with each matrix left out of the fit that predicts it, the errors and where 'dense' is said wrongly.
"""
import math
import sys

from records import cases_of

DOUBT = 1.2  # apl_sparse_prefers_dense
CACHE_BYTES = 40e6


def rounds(length, each):
    return -(-length // each)


def solve(matrix, right):
    rows = [row[:] + [r] for row, r in zip(matrix, right)]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-14:
            rows[i][i] = 1e-14
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def least_squares(residuals, start):
    """Numbers that stay positive: their logarithms are what is searched."""
    def at(logs):
        return residuals([math.exp(max(min(x, 20), -18)) for x in logs])
    x = [math.log(s) for s in start]
    r = at(x)
    cost, damping = sum(v * v for v in r), 1e-2
    for _ in range(80):
        jacobian = []
        for i in range(len(x)):
            moved = x[:]
            moved[i] += 1e-4
            jacobian.append([(a - b) / 1e-4 for a, b in zip(at(moved), r)])
        normal = [[sum(a * b for a, b in zip(p, q)) for q in jacobian] for p in jacobian]
        for i in range(len(x)):
            normal[i][i] += damping * (1e-3 + normal[i][i])
        step = solve(normal, [-sum(a * b for a, b in zip(p, r)) for p in jacobian])
        tried = [a + max(min(s, 1), -1) for a, s in zip(x, step)]
        r_tried = at(tried)
        cost_tried = sum(v * v for v in r_tried)
        if cost_tried < cost:
            done = cost - cost_tried < 1e-9 * cost
            x, r, cost, damping = tried, r_tried, cost_tried, max(damping / 3, 1e-9)
            if done:
                break
        else:
            damping *= 4
            if damping > 1e8:
                break
    return [math.exp(max(min(v, 20), -18)) for v in x]


def sddmm_features(s, depth):
    is_large = (s["rows"] + s["columns"]) * depth * 2 > CACHE_BYTES
    if s["windows"] > 0:
        gathered = s["steps"] * 16 * depth * 2 / 1e6
        return "samples", (s["task_steps"] * rounds(depth, 128), gathered, gathered if is_large else 0,
                           s["steps"] / 1000)
    lanes = 1
    while lanes < rounds(depth, 8) and lanes < 16:
        lanes *= 2
    gathered = s["nonzeros"] * depth * 4 / 1e6
    return "list", (rounds(depth, 8 * lanes), gathered, gathered if is_large else 0, s["nonzeros"] / 1e6)


def added(p, f):
    return p[0] + sum(a * b for a, b in zip(p[1:], f))


MODELS = {"list": added, "samples": added,
          "dense": lambda p, f: p[0] + max(p[1] * f[0], p[2] * f[1] + p[3] * f[2], p[4] * f[3])}


def dense_features(rows, depth, columns):
    return (depth / 1000, 2 * (rows * depth + depth * columns) / 1e6, 2 * rows * columns / 1e6,
            2 * rows * depth * columns / 1e9)


def samples_of(cases):
    """(model, matrix, features, time) and for each case which two samples it is about."""
    found = []
    for case in cases:
        shape, width = case.get("shape"), case["width"]
        if not shape:
            continue
        is_spmm = case["operator"] == "spmm"
        if not is_spmm:
            model, features = sddmm_features(shape, width)
            found.append((model, case, features, case["us"]))
        # cuBLAS has other kernels for rows that are no multiples of 16 bytes, as graphs have them.
        if case["dense_us"] > 0 and shape["rows"] % 8 == 0 and shape["columns"] % 8 == 0:
            depth, columns = (shape["columns"], width) if is_spmm else (width, shape["columns"])
            found.append(("dense", case, dense_features(shape["rows"], depth, columns), case["dense_us"]))
    return found


def fit_all(samples):
    numbers = {}
    for name, model in MODELS.items():
        ours = [(f, t) for m, _, f, t in samples if m == name]
        # Where one of several terms is the time, each must be it somewhere at the start.
        start = [2.5, 1, 0.2, 0.3, 1.4] if name == "dense" else [2.0] + [0.2] * len(ours[0][0])
        numbers[name] = least_squares(lambda p: [math.log(model(p, f) / t) for f, t in ours], start)
    return numbers


def evaluate(title, samples, numbers_for):
    predicted, errors = {}, {}
    for model, case, features, time in samples:
        guess = MODELS[model](numbers_for(case["matrix"])[model], features)
        errors.setdefault(model, []).append(math.log(guess / time))
        predicted.setdefault((case["matrix"], case["width"], case["operator"]), {})[
            "dense" if model == "dense" else "sparse"] = (guess, time)
    print(title + ":", ", ".join(f"{m} {math.sqrt(sum(e * e for e in v) / len(v)):.3f}" for m, v in errors.items()))
    both = {k: v for k, v in predicted.items() if len(v) == 2}
    for key, v in both.items():
        (sparse, sparse_time), (dense, dense_time) = v["sparse"], v["dense"]
        told = sparse * DOUBT > dense
        if not told and sparse_time > 1.05 * dense_time:
            print("  dense is not told:", *key, f"{sparse_time / dense_time:.2f}")
        if told and dense_time > 1.05 * sparse_time:
            print("  dense is told wrongly:", *key, f"{dense_time / sparse_time:.2f}")


def main():
    samples = samples_of(cases_of(sys.argv[1:2]))
    numbers = fit_all(samples)
    for name, values in numbers.items():
        print(f"{name:8}", " ".join(f"{v:.4g}" for v in values))
    evaluate("errors", samples, lambda _: numbers)
    matrices = sorted({case["matrix"] for _, case, _, _ in samples})
    without = {m: fit_all([s for s in samples if s[1]["matrix"] != m]) for m in matrices}
    evaluate("errors for matrices that are left out", samples, lambda m: without[m])


if __name__ == "__main__":
    main()
