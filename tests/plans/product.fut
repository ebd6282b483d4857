-- A product of matrices with two sizes.
-- ==
-- entry: product
-- "tiny" random input { [5][9]f32 [9][6]f32 }
-- "small" random input { [70][33]f32 [33][65]f32 }

entry product [m] [n] [q] (A: [m][q]f32) (B: [q][n]f32) : [m][n]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A
