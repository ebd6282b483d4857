#!/usr/bin/env python3
"""How long aplc compiles texts that grow: seconds of processor time at two sizes, and their ratio.

usage: bench/compile_times.py APLC [--kinds=NAME,...] [--stages=check,c] [--runs=3] [--scale=1.0] [--json=FILE]

The ratio for twice the text says what no machine's speed hides: 2 is linear, 2.3 the most that is wanted, 4 quadratic.
Times are user and system time, the least of several runs, so that other work on the machine hardly shows."""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

import results_file


def lets(first, statement, types="(x: i64) (y: i64) : i64"):
    """A text of n lets: `statement` gives v1 and so on from those before."""
    def make(n):
        lines = [f"  let v{i} = {statement(i)}\n" for i in range(1, n)]
        return f"entry main {types} =\n  let v0 = {first}\n{''.join(lines)}  in v{n - 1}\n"
    return make


def host(i):
    return [f"f64.sqrt (v{i - 1} + y)", f"v{i - 1} * {i}.5 - v{i // 2}", f"if v{i - 1} > y then v{i - 1} / y else y",
            f"f64.max v{i - 1} v{i // 3} * x"][i % 4]


def entries(n):
    return "".join(f"entry e{i} [k] (a: [k]f32) (x: f32) : [k]f32 = map (\\y -> y * {i} + x) a\n" for i in range(n))


def calls(n):
    text = "def g0 (x: f64) : f64 = x + 1\n"
    text += "".join(f"def g{i} (x: f64) : f64 = f64.sqrt (g{i - 1} (x * {i}))\n" for i in range(1, n))
    return f"{text}entry main (x: f64) : f64 = g{n - 1} x\n"


def functions(n):
    text = "".join(f"def g{i} 't (x: t) (y: f64) : (t, f64) = (x, f64.sqrt (y * {i}))\n" for i in range(n))
    body = "".join(f"  let (a{i + 1}, b{i + 1}) = g{i} a{i} b{i}\n" for i in range(n))
    return f"{text}entry main (a0: i32) (b0: f64) : (i32, f64) =\n{body}  in (a{n}, b{n})\n"


def module(n):
    """n functions of an ascribed module, of which each calls the one before."""
    vals = " ".join(f"val g{i} : t -> t" for i in range(n))
    text = "".join(f"  def g{i} (x: t) : t = {f'g{i - 1} x * {i}' if i else 'x'} + 1\n" for i in range(n))
    return (f"module type t = {{ type t val of : i64 -> t val to : t -> i64 {vals} }}\n"
            f"module m : t = {{\n  type t = i64\n  def of (x: t) = x\n  def to (x: t) = x\n{text}}}\n"
            f"entry main (x: i64) : i64 = m.to (m.g{n - 1} (m.of x))\n")


def parametric(n):
    """A parametric module of n functions, of which each calls the one before, for three types."""
    text = "".join(f"  def g{i} (x: t) : t = {f'g{i - 1} x p.+ p.i64 {i}' if i else 'x'}\n" for i in range(n))
    return (f"module f (p: numeric) = {{\n  type t = p.t\n{text}}}\nmodule a = f i64\nmodule b = f f64\n"
            f"module c = f i32\nentry main (x: i64) (y: f64) (z: i32) = (a.g{n - 1} x, b.g{n - 1} y, c.g{n - 1} z)\n")


def applications(n):
    """A chain of applications of a parametric module."""
    text = "".join(f"module m{i} = f m{i - 1}\n" for i in range(1, n))
    return ("module type t = { type t val g : t -> t }\n"
            "module f (p: t) : t with t = p.t = { type t = p.t def g (x: t) : t = p.g x }\n"
            f"module m0 = {{ type t = i64 def g (x: t) : t = x + 1 }}\n{text}"
            f"entry main (x: i64) : i64 = m{n - 1}.g x\n")


def nested(open_text, close_text, inner):
    """n texts inside of each other, the first outside of all others."""
    def make(n):
        head, tail = "".join(map(open_text, range(n))), "".join(map(close_text, reversed(range(n))))
        return f"entry main (x: i64) (y: i64) : i64 = {head}{inner(n)}{tail}\n"
    return make


def tuple_chain(n):
    lines = "".join(f"  let t{i} = (t{i - 1}.1, (t{i - 1}.0 + 1, x))\n" if i % 2 else
                    f"  let t{i} = (t{i - 1}.1.0, t{i - 1}.0)\n" for i in range(1, n))
    return f"entry main (x: i64) (y: i64) : i64 =\n  let t0 = (x, y)\n{lines}  in t{(n - 1) // 2 * 2}.0\n"


def deep_tuple(n):
    return f"entry main (x: i64) (y: i64) : i64 = let t = {'(x, ' * n}y{')' * n} in t{'.1' * n}\n"


def wide_tuple(n):
    values = ", ".join(f"x * {i} + y" for i in range(n))
    names = ", ".join(f"v{i}" for i in range(n))
    total = " + ".join(f"v{i}" for i in range(n))
    return f"entry main (x: i64) (y: i64) : i64 = let ({names}) = ({values}) in {total}\n"


def wide_loop(n):
    state = ", ".join(f"v{i}" for i in range(n))
    start = ", ".join(f"x + {i}" for i in range(n))
    step = ", ".join(f"v{(i + 1) % n} + y" for i in range(n))
    total = " + ".join(f"v{i}" for i in range(n))
    return (f"entry main (x: i64) (y: i64) : i64 =\n"
            f"  let ({state}) = loop ({state}) = ({start}) for i < y do ({step})\n  in {total}\n")


def arrays(n):
    head = " ".join(f"(a{i}: [k{i}]f32)" for i in range(n))
    sizes = " ".join(f"[k{i}]" for i in range(n))
    return f"entry main {sizes} {head} : f32 = {' + '.join(f'f32.sum a{i}' for i in range(n))}\n"


def type_parameters(n):
    names = [f"'t{i}" for i in range(n)]
    arguments = " ".join(f"(v{i}: t{i})" for i in range(n))
    types = ", ".join(f"t{i}" for i in range(n))
    values = ", ".join(f"v{i}" for i in range(n))
    result = ", ".join("i64" for i in range(n))
    return (f"def f {' '.join(names)} {arguments} : ({types}) = ({values})\n"
            f"entry main (x: i64) : ({result}) = f {' '.join('x' for _ in range(n))}\n")


def pipeline(n):
    steps = "".join(f" |> (\\v -> v * {i} + y)" for i in range(n))
    return f"entry main (x: i64) (y: i64) : i64 = x{steps}\n"


def literal(n):
    return f"entry main (x: i64) : [{n}]i64 = [{', '.join(f'x * {i}' for i in range(n))}]\n"


ARRAY = "[k] (x: [k]f32) (y: f32) : [k]f32"
# Name: (size at which it is measured first, text of that size).
KINDS = {
    "lets1": (5000, lets("x", lambda i: f"v{i - 1} + {'x' if i % 2 else 'y'}")),
    "lets2": (5000, lets("x", lambda i: f"v{i - 1} * {i % 7 + 1} + {'x' if i % 2 else 'y'}")),
    "lets2-i32": (5000, lets("x", lambda i: f"v{i - 1} * 3 + v{i // 2}", "(x: i32) : i32")),
    "host": (5000, lets("x", host, "(x: f64) (y: f64) : f64")),
    "ifs": (1000, lets("x", lambda i: f"if v{i - 1} % {i + 1} > y then v{i - 1} * x else v{i // 2} + y")),
    "loops": (2500, lets("x", lambda i: f"loop a = v{i - 1} for i < y do a * {i} + i")),
    "whiles": (2500, lets("x", lambda i: f"loop a = v{i - 1} while a > y do a / {i + 1}")),
    "maps-fused": (250, lets("x", lambda i: f"map (\\e -> e * {i} + y) v{i - 1}", ARRAY)),
    "maps-kept": (250, lets("x", lambda i: f"scan (+) 0 (map (* {i}) v{i - 1})", ARRAY)),
    "reductions": (250, lets("y", lambda i: f"f32.sum (map (* v{i - 1}) x)", "[k] (x: [k]f32) (y: f32) : f32")),
    "products": (50, lets("x", lambda i: f"map (\\r -> map (\\c -> f32.sum (map2 (*) r c)) (transpose x)) v{i - 1}",
                          "[k] (x: [k][k]f32) : [k][k]f32")),
    "updates": (1000, lets("copy x", lambda i: f"v{i - 1} with [{i}] = v{i - 1}[{i // 2}] + y", ARRAY)),
    "transposes": (250, lets("x", lambda i: f"transpose (map (map (+ {i})) v{i - 1})",
                             "[k] (x: [k][k]f32) : [k][k]f32")),
    "entries": (2500, entries),
    "calls": (1000, calls),
    "functions": (2500, functions),
    "module": (1000, module),
    "parametric": (1000, parametric),
    "applications": (1000, applications),
    "operators": (200, nested(lambda i: f"x {'+-*'[i % 3]} ", lambda i: "", lambda n: "y")),
    "parentheses": (20, nested(lambda i: f"(x {'+-*'[i % 3]} ", lambda i: ")", lambda n: "y")),
    "nested-ifs": (20, nested(lambda i: f"if x > y * {i} then x - {i} else (", lambda i: ")", lambda n: "y")),
    "nested-ifs-2": (20, nested(lambda i: f"if x > y * {i} then (", lambda i: f") else x * {i}", lambda n: "y")),
    "nested-conditions": (20, nested(lambda i: "if (", lambda i: f") > {i} then x * y else y", lambda n: "x")),
    "nested-lets": (20, nested(lambda i: f"let v{i} = (", lambda i: f") in v{i} * x", lambda n: "y")),
    "nested-loops": (25, nested(lambda i: f"loop x for i{i} < y do ", lambda i: "", lambda n: "x + i0")),
    "nested-maps": (6, nested(lambda i: f"i64.sum (map (\\v{i} -> ",
                              lambda i: f") (iota {f'(v{i - 1} % 3)' if i else 'x'}))", lambda n: f"v{n - 1} + y")),
    "lambdas": (20, nested(lambda i: f"(\\v{i} -> ", lambda i: f") (x + {i})",
                           lambda n: " + ".join(f"v{i}" for i in range(n)))),
    "pipeline": (200, pipeline),
    "tuple-chain": (1000, tuple_chain),
    "deep-tuple": (20, deep_tuple),
    "wide-tuple": (200, wide_tuple),
    "wide-loop": (200, wide_loop),
    "arrays": (50, arrays),
    "type-parameters": (250, type_parameters),
    "literal": (2500, literal),
}


def seconds(command, runs, limit):
    """The least user and system time of the command; None and a reason if it fails."""
    best = None
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit)
        except subprocess.TimeoutExpired:
            return None, f"more than {limit} s"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            text = done.stderr.decode(errors="replace").strip().split("\n")
            return None, f"exit code {done.returncode}: {text[0][:100]}"
        time = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = time if best is None else min(best, time)
        if time > 2:
            break
    return best, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("aplc")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--stages", default="check,c")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the sizes")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one run")
    parser.add_argument("--keep", help="folder that keeps the texts")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    table = []
    print(f"{'kind':18} {'stage':6} {'n':>6} {'s':>7} {'s of 2n':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        folder = arguments.keep or folder
        os.makedirs(folder, exist_ok=True)
        for kind in arguments.kinds.split(","):
            n, make = KINDS[kind]
            n = max(1, int(n * arguments.scale))
            files = []
            for size in (n, 2 * n):
                files.append(os.path.join(folder, f"{kind}-{size}.fut"))
                with open(files[-1], "w") as out:
                    out.write(make(size))
            for stage in arguments.stages.split(","):
                (small, why), (large, why_large) = (
                    seconds([arguments.aplc, stage, file], arguments.runs, arguments.limit) for file in files)
                row = {"kind": kind, "stage": stage, "n": n, "seconds": small, "seconds of 2n": large}
                if small is None or large is None:
                    row["failure"] = why or why_large
                    text = "" if small is None else f"{small:7.3f}"
                    print(f"{kind:18} {stage:6} {n:6} {text} {row['failure']}", flush=True)
                else:
                    ratio = large / max(small, 1e-9)
                    print(f"{kind:18} {stage:6} {n:6} {small:7.3f} {large:8.3f} {ratio:6.2f}", flush=True)
                table.append(row)
    if arguments.json:
        results_file.write(arguments.json, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
