"""Times torch on the same contractions: the matrix product (cuBLAS) and einsum, complete, in the asked layout.

Prints and writes JSON: case -> {"cublas": microseconds or null, "einsum": microseconds}. float32, TF32 off.
Inputs are uniform in (-1, 1); times are medians of event-timed calls after warm-up.
"""
import argparse
import statistics

import torch

import results_file


def cases():
    square = dict(a=4096, b=4096, q=4096)
    for name, spec in (("mm0", "aq,bq->ab"), ("mm1", "aq,qb->ab"), ("mm2", "qa,bq->ab"), ("mm3", "qa,qb->ab")):
        yield name, spec, square
    for number, (n, q) in enumerate(((32, 32), (32, 31), (31, 31), (16, 2048)), 1):
        sizes = dict.fromkeys("abcijk", n) | {"q": q}
        yield f"sd1_7_ds{number}", "icaq,qbjk->abcijk", sizes
        yield f"sd2_3_ds{number}", "kiaq,bcjq->abcijk", sizes


def median_microseconds(call, runs):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1000)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", required=True)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    results = {}
    for name, spec, sizes in cases():
        left, right = spec.split("->")[0].split(",")
        x = torch.rand([sizes[c] for c in left], device="cuda") * 2 - 1
        y = torch.rand([sizes[c] for c in right], device="cuda") * 2 - 1
        times = {"einsum": median_microseconds(lambda: torch.einsum(spec, x, y).contiguous(), arguments.runs)}
        times["cublas"] = None
        if name.startswith("mm"):
            a = x if left[0] == "a" else x.T
            b = y if right[0] == "q" else y.T
            out = torch.empty(sizes["a"], sizes["b"], device="cuda")
            times["cublas"] = median_microseconds(lambda: torch.matmul(a, b, out=out), arguments.runs)
        results[name] = times
        print(name, times, flush=True)
        del x, y
    results["device"] = torch.cuda.get_device_name()
    results["torch"] = torch.__version__
    results_file.write(arguments.json, results)


if __name__ == "__main__":
    main()
