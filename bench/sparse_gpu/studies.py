#!/usr/bin/env python3
"""Searches that leave something out, by running (tables 6 and 7 and figure 12 of STile), from a JSON file of

    apl_sparse_gpu --studies --json=FILE ...
    bench/sparse_gpu/studies.py FILE

How many times as long plans take as the plan of a whole search; in brackets by the cost of their tiles.
"""
import sys

from records import cases_of


def main():
    cases = cases_of(sys.argv[1:], lambda case: case.get("studies"))
    names = []
    for case in cases:
        names += [name for name in case["studies"] if name not in names]
    print("| | " + " | ".join(case["matrix"] for case in cases) + " |")
    print("| --- |" + " --- |" * len(cases))
    for name in names:
        cells = []
        for case in cases:
            here, whole = case["studies"].get(name), case["studies"].get("all")
            if not here:
                cells.append("-")
            elif name == "all" or not whole:
                cells.append(f"{here['us']:.1f} us ({here['cost_us']:.1f})")
            else:
                cells.append(f"{here['us'] / whole['us']:.2f} ({here['cost_us'] / whole['cost_us']:.2f})")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("without a plan: " + ", ".join(f"{case['matrix']} {case['us']:.1f} us" for case in cases))


if __name__ == "__main__":
    main()
