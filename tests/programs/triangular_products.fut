-- Products with a triangle of a matrix, whose elements are read and widened under a condition.

-- ==
-- entry: causal
-- random input { [70][40]f16 [96][40]f16 } auto output
-- random input { [130][133]f16 [33][133]f16 } auto output
-- random input { [64][64]f16 [64][64]f16 } auto output
entry causal [n][m][k] (A: [n][k]f16) (B: [m][k]f16) : [n][m]f32 =
  tabulate_2d n m (\i j -> f32.sum (tabulate k (\l -> (if l <= i then f32.f16 A[i,l] else 0) * f32.f16 B[j,l])))
