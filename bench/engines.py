#!/usr/bin/env python3
"""Entries as operators of PyTorch and JAX: what a call costs beside the same kernel called directly, and two devices
beside one for a contraction that is sharded.

    PYTHONPATH=FOLDER-WITH-apl bench/engines.py [--json FILE] [--part overhead,rows,depth] [--device cuda|cpu]

Overheads are times of calls of a kernel that takes next to nothing, one after the other without waiting; a part of two
devices is left out, with the reason, where there are fewer. Each result is checked.
"""

import argparse
import os
import sys

import results_file
from timing import milliseconds

SOURCE = """
entry mm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =
  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A
entry twice [n] (xs: [n]f32) : [n]f32 = map (* 2) xs
"""


def microseconds(call, wait):
    return 1e3 * milliseconds(call, wait, most=300)


def overhead_torch(device):
    import torch

    import apl.torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    xs = torch.arange(256, device=device, dtype=torch.float32)
    module = apl.parse(SOURCE)
    program = module.copy().load("cuda" if device == "cuda" else "c")
    if device == "cuda":
        program.set_stream(torch.cuda.current_stream().cuda_stream or 1)
    twice = apl.torch.operator(SOURCE, "twice")
    compiled = torch.compile(lambda x: twice(x), fullgraph=True)
    for call in (twice, compiled):
        assert torch.equal(call(xs), 2 * xs)
    rows = {
        "torch: x * 2": lambda: xs * 2,
        "apl, called directly": lambda: program._raw.call("twice", [xs], apl._apl.Like.torch, False),
        "apl.Program": lambda: program.twice(xs, wait=False),
        "apl.torch": lambda: twice(xs),
        "apl.torch under torch.compile": lambda: compiled(xs),
    }
    result = {name: microseconds(call, wait) for name, call in rows.items()}
    if device == "cuda":
        program.wait()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        # The kernel itself, by the device's clock over calls that keep it busy.
        start.record()
        for _ in range(1000):
            program._raw.call("twice", [xs], apl._apl.Like.torch, False)
        stop.record()
        torch.cuda.synchronize()
        result["apl, by the device's clock"] = start.elapsed_time(stop)
    return result


def overhead_jax(device):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import numpy as np

    import apl.jax

    where = jax.devices("gpu" if device == "cuda" else "cpu")[0]
    xs = jax.device_put(np.arange(256, dtype=np.float32), where)
    twice = jax.jit(apl.jax.function(SOURCE, "twice"))
    plain = jax.jit(lambda x: x * 2)
    assert (np.asarray(twice(xs)) == 2 * np.arange(256)).all()

    def wait():
        jax.block_until_ready(twice(xs))

    return {
        "jax.jit: x * 2": microseconds(lambda: plain(xs), wait),
        "apl.jax under jax.jit": microseconds(lambda: twice(xs), wait),
    }


def sharded_jax(part, sizes, device):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    import apl.jax

    devices = jax.devices("gpu" if device == "cuda" else "cpu")
    if len(devices) < 2:
        return {"left out": f"{len(devices)} device"}
    n, m, k = sizes
    mm = apl.jax.function(SOURCE, "mm")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((n, m), (m, k)))
    whole = jax.jit(mm)
    single_a, single_b = jax.device_put(a, devices[0]), jax.device_put(b, devices[0])
    one = milliseconds(lambda: jax.block_until_ready(whole(single_a, single_b)), lambda: None)
    mesh = Mesh(np.array(devices[:2]), ("x",))
    if part == "rows":
        specs, out, each = (P("x", None), P()), P("x", None), mm
    else:
        specs, out = (P(None, "x"), P("x", None)), P()
        each = lambda a, b: jax.lax.psum(mm(a, b), "x")
    both = jax.jit(jax.shard_map(each, mesh=mesh, in_specs=specs, out_specs=out, check_vma=False))
    shards = [jax.device_put(v, NamedSharding(mesh, s)) for v, s in zip((a, b), specs)]
    assert (np.asarray(both(*shards)) == np.asarray(whole(single_a, single_b))).all()
    two = milliseconds(lambda: jax.block_until_ready(both(*shards)), lambda: None)
    return {"one": one, "two": two, "efficiency": one / two / 2}


def _torch_worker(rank, part, sizes, device, queue, port):
    import torch
    import torch.distributed as dist

    import apl.torch

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if device == "cuda" else "gloo", rank=rank, world_size=2)
    where = f"cuda:{rank}" if device == "cuda" else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    n, m, k = sizes
    generator = torch.Generator().manual_seed(1)
    a = torch.randint(-2, 3, (n, m), generator=generator).float()
    b = torch.randint(-2, 3, (m, k), generator=generator).float()
    mm = apl.torch.operator(SOURCE, "mm")
    half = (n if part == "rows" else m) // 2
    own = slice(rank * half, (rank + 1) * half)
    mine = (a[own], b) if part == "rows" else (a[:, own].contiguous(), b[own])
    mine = [v.to(where) for v in mine]

    def call():
        product = mm(*mine)
        if part == "depth":
            dist.all_reduce(product)
        return product

    def both():
        wait()
        dist.barrier()
        return call()

    product = both()
    want = (a.double() @ b.double()).float().to(where)
    assert torch.equal(product, want[own] if part == "rows" else want)
    two = milliseconds(both, wait)
    one = None
    if rank == 0:
        all_a, all_b = a.to(where), b.to(where)
        one = milliseconds(lambda: mm(all_a, all_b), wait)
    dist.barrier()
    if rank == 0:
        queue.put({"one": one, "two": two, "efficiency": one / two / 2})
    dist.destroy_process_group()


def sharded_torch(part, sizes, device):
    import torch
    import torch.multiprocessing as mp

    if device == "cuda" and torch.cuda.device_count() < 2:
        return {"left out": f"{torch.cuda.device_count()} device"}
    context = mp.get_context("spawn")
    queue = context.Queue()
    port = 20000 + os.getpid() % 20000
    workers = [context.Process(target=_torch_worker, args=(r, part, sizes, device, queue, port)) for r in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a worker failed")
    return queue.get(timeout=5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--part", default="overhead,rows,depth")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--engine", default="torch,jax")
    parser.add_argument("--size", type=int, default=8192, help="of every dim of the sharded contraction")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
        options.size = min(options.size, 512)
    sizes = (options.size,) * 3
    results, failed = {"device": options.device, "sizes": sizes}, False
    for engine in options.engine.split(","):
        for part in options.part.split(","):
            if part == "overhead":
                run = {"torch": overhead_torch, "jax": overhead_jax}[engine]
                arguments = (options.device,)
            else:
                run = {"torch": sharded_torch, "jax": sharded_jax}[engine]
                arguments = (part, sizes, options.device)
            try:
                results[f"{engine} {part}"] = run(*arguments)
            except ImportError as error:
                results[f"{engine} {part}"] = {"left out": str(error)}
            except Exception as error:  # the other parts are run all the same
                failed = True
                results[f"{engine} {part}"] = {"failed": f"{type(error).__name__}: {error}"}
    for name, row in results.items():
        if not isinstance(row, dict):
            continue
        print(f"== {name}" + ("" if "overhead" in name else f", {sizes[0]} x {sizes[1]} x {sizes[2]}, ms"))
        for key, value in row.items():
            print(f"  {key:36} {value if isinstance(value, str) else format(value, '10.2f')}")
    if options.json:
        results_file.write(options.json, results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
