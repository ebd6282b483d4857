-- Two dense layers and a softmax: what a small classifier computes for a batch.
--
-- `aplc explain layers.fut` says what became of each line. Both products are contractions and are tiled, `ba,ca->cb` in
-- the notation of einsum. That needs a kernel that gives what it reduced: with bias and `f` in the map around the
-- product, it says `computed from the reduction by further code`, and what to do. Softmax takes a thread for each row.

-- ==
-- entry: classify
-- input { [[1.0f32, 2.0f32], [-1.0f32, 0.5f32]]
--         [[1.0f32, -1.0f32], [0.5f32, 1.0f32], [-2.0f32, 0.0f32]] [0.0f32, 0.5f32, 1.0f32]
--         [[1.0f32, 0.0f32, 2.0f32], [0.0f32, 1.0f32, -1.0f32]] [0.1f32, -0.1f32] }
-- output { [[0.05732418f32, 0.9426758f32], [0.9998334f32, 0.0001665581f32]] }

def relu (x: f32) : f32 = f32.max 0 x

-- A row of `weights` for each output.
def dense [batch] [inputs] [outputs] (f: f32 -> f32) (weights: [outputs][inputs]f32) (bias: [outputs]f32)
                                     (xss: [batch][inputs]f32) : [batch][outputs]f32 =
  let product = map (\xs -> map (\ws -> f32.sum (map2 (*) ws xs)) weights) xss
  in map (map2 (\b x -> f (b + x)) bias) product

-- The largest element is subtracted first, so that no exponential overflows.
def softmax [n] (xs: [n]f32) : [n]f32 =
  let largest = f32.maximum xs
  let es = map (\x -> f32.exp (x - largest)) xs
  let total = f32.sum es
  in map (/ total) es

entry classify [batch] [a] [b] [c] (xss: [batch][a]f32) (w1: [b][a]f32) (b1: [b]f32) (w2: [c][b]f32) (b2: [c]f32)
    : [batch][c]f32 =
  xss |> dense relu w1 b1 |> dense id w2 b2 |> map softmax
