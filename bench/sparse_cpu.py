#!/usr/bin/env python3
"""Times sparse products on this machine's cores: ours beside scipy's and Eigen's, all in one process.

    sparse_cpu.py MODULE [--json FILE] [--data FOLDER] [--seconds S] [--only TEXT,...] [--most N]
                  [--dense 1,32,128,512] [--bytes 4]
MODULE is what bench/sparse_cpu/module.cpp becomes. With --data, cora, citeseer and pubmed are read from FOLDER as Matrix
Market files; else there are stand-ins. Times are the least of many interleaved repetitions, in microseconds, with one
thread those of its processor: the machine may be busy with other work. Each library is given one thread and two (scipy
has one; --threads=1 where two never run at once), and its better time counts.
"""
import argparse
import ctypes
import math
import os
import time

import numpy
import scipy
import scipy.sparse

import results_file

GRAPHS = ["cora", "citeseer", "pubmed", "ppi_syn", "arxiv_syn"]
PRUNED = ["768x768_s70", "768x768_s90", "768x768_s95", "3072x768_s95", "move_3072x768_s95", "blocks_768x768_121",
          "blocks_3072x768_492"]
ATTENTION = ["logsparse", "strided", "crossed"]


def load(path):
    library = ctypes.CDLL(os.path.abspath(path))
    case, text, number, whole = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_int
    for name, result, *arguments in (
            ("case", case, text, whole), ("free", None, case), ("size", ctypes.c_long, case, whole),
            ("row_start", case, case), ("column", case, case), ("plan", text, case), ("format", text, case),
            ("use_plan", whole, case, text), ("search", whole, case, whole, ctypes.c_long, whole, whole),
            ("prepare", number, case, whole, ctypes.c_long, whole), ("run", number, case, whole, whole, whole),
            ("program", number, case, whole, whole, whole), ("operand", case, case, whole, whole)):
        function = getattr(library, "sparse_" + name)
        function.restype, function.argtypes = result, arguments
    return library


def view(address, kind, count):
    return numpy.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), (count,))


def scipy_operands(library, case, dense, size):
    rows, columns, nonzeros = (library.sparse_size(case, k) for k in range(3))
    kind = ctypes.c_float if size == 4 else ctypes.c_double
    matrix = scipy.sparse.csr_matrix(
        (view(library.sparse_operand(case, size, 0), kind, nonzeros),
         view(library.sparse_column(case), ctypes.c_int, nonzeros),
         view(library.sparse_row_start(case), ctypes.c_int, rows + 1)), shape=(rows, columns), copy=False)
    b = view(library.sparse_operand(case, size, 1), kind, columns * dense)
    return matrix, (b if dense == 1 else b.reshape(columns, dense))


def measure(library, case, sddmm, dense, size, seconds, threads):
    """Microseconds by name, the least of interleaved repetitions."""
    least = {}

    def note(name, nanoseconds):
        least[name] = min(least.get(name, math.inf), nanoseconds / 1000)

    matrix, b = scipy_operands(library, case, dense, size) if not sddmm else (None, None)
    def timed(call):
        """Nanoseconds by the clock, or of this thread's processor where the clock counts others' work, too."""
        clock, processor = time.perf_counter_ns(), time.thread_time_ns()
        inside = call()
        processor, clock = time.thread_time_ns() - processor, time.perf_counter_ns() - clock
        return min(processor, inside if isinstance(inside, float) else clock)

    rounds = 0
    # One thread first: where others compute, two of them often wait for each other as long as a slice of time.
    for count in threads:
        start, here = time.monotonic(), 0
        while here < 3 or (time.monotonic() - start < seconds / len(threads) and here < 500):
            here += 1
            for name, eigen in (("apl", 0), ("eigen", 1)):
                def run(eigen=eigen, count=count):
                    return library.sparse_run(case, size, count, eigen)
                note(f"{name} {count}", timed(run) if count == 1 else run())
            if matrix is not None and count == 1:
                note("scipy", timed(lambda: matrix @ b))
        rounds += here
        # A compiled program with the same operands, called as often.
        program = library.sparse_program(case, size, count, max(here, 20))
        if program > 0:
            note(f"program {count}", program)
    return least, rounds


def run_case(library, name, path, operator, dense, size, seconds, threads, most):
    case = library.sparse_case(path.encode(), 2)
    if not case:
        raise SystemExit(f"no matrix {path}")
    if library.sparse_size(case, 2) > most:
        library.sparse_free(case)
        return None
    sddmm = operator == "sddmm"
    before = time.monotonic()
    if library.sparse_search(case, sddmm, dense, size, 20000) == 0:
        raise SystemExit(f"no plan for {name}")
    searched = time.monotonic() - before
    error = library.sparse_prepare(case, sddmm, dense, size)
    if error > (1e-5 if size == 4 else 1e-12):
        raise SystemExit(f"{name}: wrong by {error}")
    least, rounds = measure(library, case, sddmm, dense, size, seconds, threads)
    result = {"matrix": name, "operator": operator, "dense": dense, "bytes": size,
              "nonzeros": library.sparse_size(case, 2), "format": library.sparse_format(case).decode(),
              "search_seconds": round(searched, 3), "rounds": rounds, "microseconds": least}
    library.sparse_free(case)
    ours = min(v for k, v in least.items() if k.startswith("apl"))
    program = min((v for k, v in least.items() if k.startswith("program")), default=math.nan)
    peers = {k: v for k, v in least.items() if not k.startswith(("apl", "program"))}
    result["ratio"] = min(peers.values()) / ours
    result["program_ratio"] = min(peers.values()) / program
    result["ratio_one_thread"] = min(least["eigen 1"], least.get("scipy", math.inf)) / least["apl 1"]
    return result


def print_row(r):
    t = r["microseconds"]
    columns = [t.get(k, math.nan) for k in ("apl 1", "apl 2", "program 1", "program 2", "eigen 1", "eigen 2", "scipy")]
    print(f"{r['matrix']:20} {r['operator']:5} {r['dense']:4} " + " ".join(f"{c:10.1f}" for c in columns) +
          f" {r['ratio']:6.2f} {r['ratio_one_thread']:6.2f} {r['program_ratio']:6.2f}  {r['format']}", flush=True)


def geomean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--json")
    parser.add_argument("--data")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--most", type=float, default=math.inf, help="leave out matrices with more non-zeros")
    parser.add_argument("--dense", default="1,32,128,512")
    parser.add_argument("--bytes", type=int, default=4, choices=(4, 8))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--operators", default="spmm,sddmm")
    arguments = parser.parse_args()
    library, results = load(arguments.module), []
    threads = sorted(set(map(int, arguments.threads.split(","))) | {1})
    load_before = os.getloadavg()[0]
    print(f"{'matrix':20} {'op':5} {'J':>4} {'apl 1':>10} {'apl 2':>10} {'program 1':>10} {'program 2':>10} {'eigen 1':>10} {'eigen 2':>10} {'scipy':>10} "
          f"{'ratio':>6} {'one':>6} {'prog':>6}  format")
    for operator in arguments.operators.split(","):
        for name in GRAPHS + PRUNED + ATTENTION:
            for dense in map(int, arguments.dense.split(",")):
                if not any(part in name for part in arguments.only.split(",")) or (operator == "sddmm" and dense == 1):
                    continue
                path = name
                if name in GRAPHS[:3]:
                    path = f"{arguments.data}/{name}.mtx" if arguments.data else name + "_syn"
                result = run_case(library, name, path, operator, dense, arguments.bytes, arguments.seconds, threads,
                                  arguments.most)
                if result:
                    results.append(result)
                    print_row(result)
    summary = {}
    for operator in arguments.operators.split(","):
        for kind, names in (("graphs", GRAPHS), ("pruned", PRUNED), ("attention", ATTENTION), ("all", None)):
            here = [r for r in results if r["operator"] == operator and (names is None or r["matrix"] in names)]
            if here:
                summary[f"{operator} {kind}"] = {
                    "cases": len(here), "geomean": geomean([r["ratio"] for r in here]),
                    "least": min(r["ratio"] for r in here),
                    "one_thread_geomean": geomean([r["ratio_one_thread"] for r in here]),
                    "one_thread_least": min(r["ratio_one_thread"] for r in here),
                    "program_geomean": geomean([r["program_ratio"] for r in here]),
                    "program_least": min(r["program_ratio"] for r in here)}
    for name, s in summary.items():
        print(f"{name}: {s['cases']} cases, ratio {s['geomean']:.2f} (least {s['least']:.2f}), with one thread each "
              f"{s['one_thread_geomean']:.2f} (least {s['one_thread_least']:.2f}), programs {s['program_geomean']:.2f} "
              f"(least {s['program_least']:.2f})")
    if arguments.json:
        document = {"threads": threads, "load": [load_before, os.getloadavg()[0]], "scipy": scipy.__version__, "summary": summary,
                    "cases": results}
        results_file.write(arguments.json + ".tmp", document)
        os.replace(arguments.json + ".tmp", arguments.json)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("stopped: no results are written")
