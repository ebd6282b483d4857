"""An entry as an operator of PyTorch, under torch.compile: pip install apl-compiler torch."""

import apl.torch
import torch

SOURCE = """
-- Pairwise distances with a kernel: a contraction with an operator of its own.
entry rbf [n][m][d] (xs: [n][d]f32) (ys: [m][d]f32) : [n][m]f32 =
  map (\\x -> map (\\y -> f32.exp (- f32.sum (map2 (\\a b -> (a - b) * (a - b)) x y))) ys) xs
"""

rbf = apl.torch.operator(SOURCE, "rbf")


@torch.compile(fullgraph=True)
def weights(xs, ys):
    kernel = rbf(xs, ys)
    return kernel / kernel.sum(dim=1, keepdim=True)


device = "cuda" if torch.cuda.is_available() else "cpu"
xs, ys = torch.rand(200, 8, device=device), torch.rand(300, 8, device=device)
expected = torch.exp(-torch.cdist(xs.double(), ys.double()) ** 2)
expected = (expected / expected.sum(dim=1, keepdim=True)).float()
got = weights(xs, ys)
assert torch.allclose(got, expected, atol=1e-5), (got - expected).abs().max()
print("as torch computes it, on", device)
