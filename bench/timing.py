"""How calls are timed that others wait for: for the benchmarks in Python."""

import statistics
import time


def milliseconds(call, wait, seconds=0.05, most=2000):
    """A call's, by the median of five batches of about so many seconds (of `most` calls) that are waited for at their end."""
    call()
    wait()
    start = time.perf_counter()
    call()
    wait()
    once = time.perf_counter() - start
    calls = max(1, min(most, int(seconds / max(once, 1e-6))))
    times = []
    for _ in range(5 if once < 0.5 else 2):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        times.append((time.perf_counter() - start) / calls * 1e3)
    return statistics.median(times)
