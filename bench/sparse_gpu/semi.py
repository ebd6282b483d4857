#!/usr/bin/env python3
"""Times of cuSPARSELt, by way of torch, on matrices with two of each four elements: C = A B in f16, microseconds.

    bench/sparse_gpu/semi.py [ROWSxCOLUMNS:WIDTH ...]      # beside: apl_sparse_gpu --matrices=semi_768x768 --widths=128
"""
import sys

import torch

REPEATS, REPLAYS = 20, 7


def microseconds(work):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEATS):
            work()
    times = []
    for _ in range(REPLAYS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / REPEATS)
    return sorted(times)[REPLAYS // 2]


def main():
    if not torch.backends.cusparselt.is_available():
        print("cuSPARSELt is not here")
        return
    torch.manual_seed(1)
    for text in sys.argv[1:] or ["768x768:128", "3072x768:128", "768x3072:512"]:
        sizes, width = text.split(":")
        rows, columns = map(int, sizes.split("x"))
        mask = torch.rand(rows, columns // 4, 4, device="cuda").argsort(-1) < 2
        a = torch.randn(rows, columns, device="cuda").half() * mask.reshape(rows, columns)
        b = torch.randn(columns, int(width), device="cuda").half()
        torch.sparse.SparseSemiStructuredTensor._FORCE_CUTLASS = False
        sparse = torch.sparse.to_sparse_semi_structured(a)
        right = (torch.mm(sparse, b) - torch.mm(a, b)).abs().max().item()
        print(
            f"semi_{sizes} {width}: cuSPARSELt {microseconds(lambda: torch.mm(sparse, b)):.2f} us, "
            f"cuBLAS {microseconds(lambda: torch.mm(a, b)):.2f} us, differ by {right:.2g} at most",
            flush=True,
        )


if __name__ == "__main__":
    main()
