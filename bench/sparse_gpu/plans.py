#!/usr/bin/env python3
"""What models are worth for plans that ran (STile, 5.6 and figure 14, on a GPU), from JSON files of

    apl_sparse_gpu --sweep --plans --searched --json=FILE ...
    bench/sparse_gpu/plans.py FILE... [--cases] [--svg PLANS.svg]

Pearson's correlation of predicted and measured times over all plans, and of their logarithms; how much longer the plan
takes that the model chooses than the fastest of those that ran; the fastest plan, and the chosen one, beside the best
single kernel of the sweep; what runs without a plan.
"""
import argparse
import math

from records import cases_of, geomean

LEAST_KINDS = 3  # matrices, for a correlation within them to say anything


def pearson(x, y):
    n = len(x)
    if n < LEAST_KINDS:
        return math.nan
    mean_x, mean_y = sum(x) / n, sum(y) / n
    over = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    under = math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))
    return over / under if under else math.nan


def correlations(cases):
    ran = [(p["model_us"], p["us"]) for c in cases for p in c.get("plan", {}).get("all", []) if p["us"] > 0]
    if ran:
        model, time = zip(*ran)
        logs = pearson([math.log(m) for m in model], [math.log(t) for t in time])
        both = pearson(model, time)
        print(f"{len(ran)} plans of {len(cases)} products: Pearson {both:.3f}, of logarithms {logs:.3f}")
    return ran


def choices(cases):
    def say(title, pairs):
        if pairs:
            ratios = [a / b for _, a, b in pairs]
            worst = max(pairs, key=lambda p: p[1] / p[2])
            print(f"{title}: {geomean(ratios):.3f} in {len(ratios)}, at worst {max(ratios):.2f} ({worst[0]})")

    def of(name, top, bottom):
        pairs = []
        for c in cases:
            a, b = top(c), bottom(c)
            if a and b:
                pairs.append((f"{c['matrix']} {c['width']}", a, b))
        say(name, pairs)

    def plan(c):
        return c.get("plan", {}).get("us")

    def best_kernel(c):
        return c.get("best_us")

    def best_single(c):
        return best_single_of(c)[1]

    def natural(c):
        return (c.get("reordered") or {}).get("natural_us")

    def chosen(c):
        return (c.get("searched") or {}).get(c["type"], {}).get("us")

    def by_model(c):
        ran = c.get("plan", {}).get("all", [])
        return min(ran, key=lambda p: p["model_us"])["us"] if ran else None

    of("the model's plan over the fastest plan", by_model, plan)
    of("what a search chooses by the models over the fastest plan", chosen, plan)
    of("what runs without a plan over the fastest plan", lambda c: c.get("us"), plan)
    of("the best single kernel of the sweep over the fastest plan", best_kernel, plan)
    of("the best plan of one kind of kernel over the fastest plan", best_single, plan)
    of("the best plan of one kind of kernel over what a search chooses", best_single, chosen)
    of("rows as they are over what runs without a plan", natural, lambda c: c.get("us"))
    of("the best single kernel over what a search chooses", best_kernel, chosen)


def best_single_of(case):
    named = case.get("plan", {}).get("names") or {}
    single = {
        name: time
        for name, time in named.items()
        if name in ("ell", "1d") or (name.startswith("block of ") and ", rows by" not in name)
    }
    return min(single.items(), key=lambda item: item[1]) if single else ("-", 0)


def every_case(cases):
    print("| | no plan | one kind of kernel | fastest plan | chosen by the models | rows as they are |")
    print("| --- | --- | --- | --- | --- | --- |")
    for c in cases:
        name, single = best_single_of(c)
        plan, chosen = c.get("plan", {}), (c.get("searched") or {}).get(c["type"], {})
        natural = (c.get("reordered") or {}).get("natural_us", 0)
        print(
            f"| {c['matrix']} {c['width']} | {c.get('us', 0):.1f} | {single:.1f} {name} | {plan.get('us', 0):.1f} "
            f"{plan.get('name', '-')} | {chosen.get('us', 0):.1f} {chosen.get('how', '-').split(',')[0]} | {natural:.1f} |"
        )


def draw(ran, file):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    model, time = zip(*ran)
    ends = [min(model + time) * 0.9, max(model + time) * 1.1]
    pyplot.figure(figsize=(4, 4))
    pyplot.loglog(ends, ends, color="0.7", linewidth=1)
    pyplot.loglog(time, model, "o", markersize=3, alpha=0.6)
    pyplot.xlabel("measured, microseconds")
    pyplot.ylabel("by the model")
    pyplot.tight_layout()
    pyplot.savefig(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--svg")
    parser.add_argument("--cases", action="store_true", help="a line for each product")
    arguments = parser.parse_args()
    cases = cases_of(arguments.files, lambda case: case["operator"] == "spmm")
    ran = correlations(cases)
    choices(cases)
    if arguments.cases:
        every_case(cases)
    if arguments.svg and ran:
        draw(ran, arguments.svg)


if __name__ == "__main__":
    main()
