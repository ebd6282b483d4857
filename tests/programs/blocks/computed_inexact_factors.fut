-- Factors that are computed from inexact numbers, whose sums depend on their order: products by matrix units, compared
-- with a tolerance.
-- ==
-- entry: exponentials_nt
-- random input { [70][90]f16 [90][33]f16 } auto output
-- random input { [130][64]f16 [64][200]f16 } auto output
entry exponentials_nt [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [b][n]f16 =
  map (\col -> map (\row -> f16.sum (map2 (\x y -> f16.exp x * y) row col)) A) (transpose B)

-- ==
-- entry: doubles
-- random input { [70][90]f64 [90][70]f64 } auto output
-- random input { [130][64]f64 [64][200]f64 } auto output
entry doubles [n][m][b] (A: [n][m]f64) (B: [m][b]f64): [n][b]f64 =
  map (\row -> map (\col -> f64.sum (map2 (\x y -> f64.exp x * (y + 1)) row col)) (transpose B)) A
