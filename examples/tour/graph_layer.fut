-- A layer of a graph network: features times weights, summed over neighbours, then bias and activation.
def times [n][k][m] (X: [n][k]f32) (W: [k][m]f32) : [n][m]f32 =
  map (\x -> map (\w -> f32.sum (map2 (*) x w)) (transpose W)) X

#[sparse(graph)]
entry layer [n][k][m] (graph: [n][n]f32) (X: [n][k]f32) (W: [k][m]f32) (bias: [m]f32) : [n][m]f32 =
  times graph (times X W)
  |> map (map2 (+) bias)
  |> map (map (f32.max 0))

-- ==
-- entry: layer
-- input { [[0f32, 1f32, 1f32], [1f32, 0f32, 0f32], [1f32, 0f32, 0f32]] [[1f32, 2f32], [3f32, 4f32], [-5f32, 6f32]]
--         [[1f32, 0f32], [1f32, -1f32]] [0.5f32, 1f32] }
-- output { [[8.5f32, 0f32], [3.5f32, 0f32], [3.5f32, 0f32]] }
