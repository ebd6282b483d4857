"""apl.jax on the CPU: jit, vmap, shards of four devices."""

import os
import sys
import unittest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
try:
    import jax
except ImportError:
    print("jax is not here")
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import apl.jax

SOURCE = """
entry mm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =
  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A
entry both [n] (xs: [n]f32) (ys: [n]i32) : ([n]f32, [n]i32) = (map (* 2) xs, map (+ 1) ys)
entry wide [n] (xs: [n]f32) : []f32 = xs ++ xs
entry shift [n] (x: f32) (xs: [n]f32) : [n]f32 = map (+ x) xs
entry third [n] (xs: [n]f32) : [n]f32 = replicate n xs[2]
entry some (xs: []f32) : []f32 = filter (> 0) xs
"""


def ints(seed, shape):
    return jnp.asarray(np.random.default_rng(seed).integers(-4, 5, shape), dtype=jnp.float32)


class Jax(unittest.TestCase):
    def setUp(self):
        self.mm = apl.jax.function(SOURCE, "mm")
        self.a, self.b = ints(1, (8, 12)), ints(2, (12, 4))

    def test_call_and_jit(self):
        np.testing.assert_array_equal(self.mm(self.a, self.b), self.a @ self.b)
        jitted = jax.jit(lambda a, b: jax.nn.relu(self.mm(a, b)) + 1)
        np.testing.assert_array_equal(jitted(self.a, self.b), jax.nn.relu(self.a @ self.b) + 1)
        both = jax.jit(apl.jax.function(SOURCE, "both"))
        xs, ys = both(jnp.arange(3, dtype=jnp.float32), jnp.arange(3, dtype=jnp.int32))
        self.assertEqual((xs.tolist(), ys.tolist()), ([0, 2, 4], [1, 2, 3]))
        self.assertEqual(apl.jax.function(SOURCE, "wide")(self.a[0]).shape, (24,))
        np.testing.assert_array_equal(apl.jax.function(SOURCE, "shift")(jnp.float32(3), self.a[0]), self.a[0] + 3)

    def test_errors(self):
        third = apl.jax.function(SOURCE, "third")
        with self.assertRaisesRegex(Exception, "run.index-out-of-bounds"):
            np.asarray(third(jnp.zeros(2, jnp.float32)))
        np.testing.assert_array_equal(third(jnp.arange(3, dtype=jnp.float32)), [2, 2, 2])
        with self.assertRaises(NotImplementedError):
            apl.jax.function(SOURCE, "some")(self.a[0])
        with self.assertRaisesRegex(Exception, "run.argument"):
            np.asarray(self.mm(self.a.astype(jnp.int32), self.b))
        with self.assertRaises(ValueError):
            apl.jax.function(SOURCE)

    def test_vmap(self):
        batch = ints(3, (5, 8, 12))
        np.testing.assert_array_equal(jax.vmap(self.mm, in_axes=(0, None))(batch, self.b), batch @ self.b)
        others = ints(4, (5, 12, 4))
        np.testing.assert_array_equal(jax.jit(jax.vmap(self.mm))(batch, others), batch @ others)
        np.testing.assert_array_equal(jax.vmap(self.mm, in_axes=(None, 2))(self.a, jnp.moveaxis(others, 0, 2)),
                                      self.a @ others)
        twice = ints(5, (2, 5, 8, 12))
        np.testing.assert_array_equal(jax.vmap(jax.vmap(self.mm, in_axes=(0, None)), in_axes=(0, None))(twice, self.b),
                                      twice @ self.b)
        xs, ys = jax.vmap(apl.jax.function(SOURCE, "both"))(batch[0], jnp.ones((8, 12), jnp.int32))
        np.testing.assert_array_equal(xs, 2 * batch[0])
        self.assertEqual(ys.shape, (8, 12))

    def test_vmap_of_many_arguments_and_results(self):
        for arguments, results in ((6, 1), (7, 3), (5, 6), (12, 7), (1, 11), (27, 26)):
            params = " ".join(f"(x{k}: [n]f32)" for k in range(arguments))
            parts = [f"map2 (\\x y -> x + {k} * y) x{k % arguments} x{(k + arguments - 1) % arguments}" for k in range(results)]
            type_ = ", ".join(["[n]f32"] * results)
            many = apl.jax.function(f"entry many [n] {params} : ({type_}) = ({', '.join(parts)})")
            given = [ints(k, (3, 4)) for k in range(arguments)]
            got = jax.vmap(many)(*given)
            want = [given[k % arguments] + k * given[(k + arguments - 1) % arguments] for k in range(results)]
            for one, other in zip(got if results > 1 else (got,), want, strict=True):
                np.testing.assert_array_equal(one, other)
            # The last argument alone, of one that others share.
            got = jax.vmap(many, in_axes=(*[None] * (arguments - 1), 0))(*[a[0] for a in given[:-1]], given[-1])
            first = got if results == 1 else got[0]
            np.testing.assert_array_equal(first, np.broadcast_to(given[0][0], (3, 4)) if arguments > 1 else given[0])

    def test_shards(self):
        mesh = Mesh(np.array(jax.devices()), ("x",))
        rows = NamedSharding(mesh, P("x", None))
        whole = NamedSharding(mesh, P())
        a, b = jax.device_put(self.a, rows), jax.device_put(self.b, whole)
        product = jax.jit(self.mm)(a, b)
        np.testing.assert_array_equal(product, self.a @ self.b)
        self.assertEqual(product.sharding.spec[0], "x")
        # Along the sum everything is gathered: right, whatever it costs.
        depth = jax.jit(self.mm)(jax.device_put(self.a, NamedSharding(mesh, P(None, "x"))),
                                 jax.device_put(self.b, rows))
        np.testing.assert_array_equal(depth, self.a @ self.b)
        # Each shard its part of the sum, added up by the engine.
        parts = jax.shard_map(lambda a, b: jax.lax.psum(self.mm(a, b), "x"), mesh=mesh,
                              in_specs=(P(None, "x"), P("x", None)), out_specs=P(), check_vma=False)
        np.testing.assert_array_equal(jax.jit(parts)(self.a, self.b), self.a @ self.b)


if __name__ == "__main__":
    unittest.main()
