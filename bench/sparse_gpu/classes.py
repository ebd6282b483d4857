#!/usr/bin/env python3
"""Products by kind of matrix beside every exact result of cuSPARSE, from JSON files of

    apl_sparse_gpu --formats --searched --dense --json=FILE ...
    bench/sparse_gpu/classes.py FILE... [--cases]

How many times as long the best exact result takes, among CSR's algorithms and among all formats, in geometric mean and at
worst, beside what runs without a plan and beside the plan that a search chooses; what reordering gains, and what it takes;
what a plan runs that says `form dense`, beside cuBLAS, and whether the models say so where it is faster.
"""
import argparse
import collections

from records import cases_of, geomean

CSR = {"default", "alg1", "alg2", "alg3", "prepared"}
DOUBT = 1.05  # times are alike within it


def exact(case):
    inexact = case.get("inexact", {})
    return {name: time for name, time in case.get("peers", {}).items() if name not in inexact and time > 0}


def best(times, names=None):
    among = [time for name, time in times.items() if names is None or name in names]
    return min(among) if among else None


def planned(case):
    return case.get("searched", {}).get(case["type"], {}).get("us")


def name_of(case):
    return f"{case['matrix']} {case['width']}"


def ratio_cell(pairs):
    if not pairs:
        return "-"
    worst = min(pairs)
    return f"{geomean([r for r, _ in pairs]):.2f}, {worst[0]:.2f} ({worst[1]})"


def kinds(cases):
    groups = collections.defaultdict(list)
    for case in cases:
        groups[case["operator"], case["type"], case["kind"]].append(case)
        groups[case["operator"], case["type"], "all"].append(case)
    print("| | cases | CSR, worst | any exact format, worst | the same beside the plan |")
    print("| --- | --- | --- | --- | --- |")
    for (operator, element, kind), group in groups.items():
        csr, every, plans = [], [], []
        for case in group:
            times = exact(case)
            if best(times, CSR):
                csr.append((best(times, CSR) / case["us"], name_of(case)))
            if best(times):
                every.append((best(times) / case["us"], name_of(case)))
                if planned(case):
                    plans.append((best(times) / planned(case), name_of(case)))
        cells = [ratio_cell(csr), ratio_cell(every), ratio_cell(plans)]
        if csr or every:
            print(f"| {operator} {element} {kind} | {len(every)} | " + " | ".join(cells) + " |")


def who_is_best(cases):
    names = collections.Counter()
    for case in cases:
        times = exact(case)
        if times:
            names[min(times, key=times.get)] += 1
    print("the best exact peer:", ", ".join(f"{name} {count}" for name, count in names.most_common()))
    fastest = [min(case["peers"].values()) / case["us"] for case in cases if case.get("peers")]
    if not fastest:
        return
    print(f"the fastest of all peers, exact or not: {geomean(fastest):.2f}, {min(fastest):.2f} at worst")
    wrong = collections.Counter(name for case in cases for name in case.get("inexact", {}))
    if wrong:
        print("not exact:", ", ".join(f"{name} in {count}" for name, count in wrong.most_common()))


def reordering(cases):
    gains = []
    for case in cases:
        made = case.get("reordered") or {}
        if made.get("natural_us") and "reordered" in case["how"]:
            gains.append((made["natural_us"] / case["us"], name_of(case), made["seconds"]))
    for gain, name, seconds in sorted(gains, reverse=True):
        print(f"reordered: {name}: {gain:.2f} times as long without, made in {1e3 * seconds:.0f} ms")
    tried = [case["reordered"]["seconds"] for case in cases if (case.get("reordered") or {}).get("seconds")]
    if tried:
        print(f"tried in {len(tried)} products, kept in {len(gains)}, {1e3 * max(tried):.0f} ms at most")


def dense(cases):
    told = right = missed = wrong = 0
    beside = []
    for case in cases:
        if not isinstance(case.get("own_dense_us"), list) or "model_us" not in case:
            continue
        own, model = case["own_dense_us"]  # as it ran, and by the model of tiles
        sparse = case["us"]
        says = model < case["model_us"][0]
        told += says
        right += says and own < sparse * DOUBT
        wrong += says and sparse * DOUBT < own
        missed += not says and own * DOUBT < sparse
        if case.get("dense_us"):
            beside.append((case["dense_us"] / own, name_of(case)))
    if beside or told:
        print(f"dense: said of {told}, by our own product as fast or faster in {right}, slower in {wrong}; not said and "
              f"faster in {missed}; cuBLAS over ours {ratio_cell(beside)}")


def every_case(cases):
    for case in cases:
        times = exact(case)
        peer = f"{min(times, key=times.get)} {min(times.values()):.1f}" if times else "-"
        print(f"{case['operator']} {case['type']} {name_of(case)}: {case['us']:.2f}, plan {planned(case) or 0:.2f}, "
              f"peer {peer}, dense {case.get('own_dense_us', 0)} cuBLAS {case.get('dense_us', 0):.1f}, "
              f"model {case.get('model_us')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--cases", action="store_true")
    arguments = parser.parse_args()
    cases = cases_of(arguments.files)
    if arguments.cases:
        every_case(cases)
    kinds(cases)
    who_is_best(cases)
    reordering(cases)
    dense(cases)


if __name__ == "__main__":
    main()
