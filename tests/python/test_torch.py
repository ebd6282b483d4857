"""apl.torch on the CPU: addresses, torch.compile, checks of PyTorch itself."""

import sys
import unittest

try:
    import torch
except ImportError:
    print("torch is not here")
    sys.exit(77)

import apl
import apl.torch

SOURCE = """
entry mm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =
  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A
entry both [n] (xs: [n]f32) (ys: [n]i32) : ([n]f32, i64) = (map (* 2) xs, n)
entry shift [n] (x: f32) (k: i64) (xs: [n]f32) : [k][n]f32 = replicate k (map (+ x) xs)
entry third [n] (xs: [n]f32) : [n]f32 = replicate n xs[2]
entry some (xs: []f32) : []f32 = filter (> 0) xs
"""


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.a = torch.randint(-4, 5, (8, 12)).float()
        self.b = torch.randint(-4, 5, (12, 4)).float()

    def test_addresses(self):
        program = apl.compile(SOURCE)
        self.assertEqual(program.addresses("mm", self.a, self.b), [self.a.data_ptr(), self.b.data_ptr()])
        result = program.mm(self.a, self.b)
        self.assertIsInstance(result, torch.Tensor)
        self.assertTrue(torch.equal(result, self.a @ self.b))
        self.assertEqual(program.addresses("mm", self.a, self.b[:, :])[1], self.b.data_ptr())
        # One that is not contiguous is copied by torch.
        self.assertTrue(torch.equal(program.mm(self.b.t(), self.a.t()), self.b.t() @ self.a.t()))

    def test_operator(self):
        mm = apl.torch.operator(SOURCE, "mm")
        self.assertTrue(torch.equal(mm(self.a, self.b), self.a @ self.b))
        torch.library.opcheck(mm, (self.a, self.b))
        xs, n = apl.torch.operator(SOURCE, "both")(self.a[0].contiguous(), torch.ones(12, dtype=torch.int32))
        self.assertTrue(torch.equal(xs, 2 * self.a[0]))
        self.assertEqual((n.item(), n.dtype), (12, torch.int64))
        shift = apl.torch.operator(SOURCE, "shift")
        self.assertEqual(shift(0.5, 3, self.a[0]).shape, (3, 12))
        with self.assertRaises(apl.ProgramError):
            apl.torch.operator(SOURCE, "third")(torch.zeros(2))

    def test_tensors_that_require_gradients(self):
        mm = apl.torch.operator(SOURCE, "mm")
        weights = self.b.clone().requires_grad_()
        with self.assertRaisesRegex(NotImplementedError, "argument B requires a gradient: call `.detach"):
            mm(self.a, weights)
        with self.assertRaisesRegex(Exception, "requires a gradient"):
            torch.compile(lambda a, b: mm(a, b) + 1)(self.a, weights)
        self.assertTrue(torch.equal(mm(self.a, weights.detach()), self.a @ self.b))
        with torch.no_grad():
            self.assertTrue(torch.equal(mm(self.a, weights), self.a @ self.b))
        with self.assertRaisesRegex(apl.ProgramError, "call `.detach"):
            apl.compile(SOURCE).mm(self.a, weights)

    def test_compile(self):
        mm = apl.torch.operator(SOURCE, "mm")
        compiled = torch.compile(lambda a, b: mm(a, b).relu() + 1, fullgraph=True)
        self.assertTrue(torch.equal(compiled(self.a, self.b), (self.a @ self.b).relu() + 1))
        # Other sizes.
        more = torch.cat([self.a, self.a])
        self.assertTrue(torch.equal(compiled(more, self.b), (more @ self.b).relu() + 1))

    def test_meta(self):
        some = apl.torch.operator(SOURCE, "some")
        self.assertEqual(some(torch.tensor([1.0, -1, 2])).tolist(), [1, 2])
        mm = apl.torch.operator(SOURCE, "mm")
        self.assertEqual(mm(self.a.to("meta"), self.b.to("meta")).shape, (8, 4))


if __name__ == "__main__":
    unittest.main()
