-- Products with sparse operands, for plans and what is said of them.
-- ==
-- entry: product
-- input { [[1f32, 0f32, 2f32], [0f32, 0f32, 0f32], [3f32, 4f32, 0f32]] [[1f32], [2f32], [3f32]] }
-- output { [[7f32], [0f32], [11f32]] }

#[sparse(A)]
entry product [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

#[sparse(A, result)]
entry sampled [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> a * f32.product (map2 (+) x y)) row Y) A X

#[sparse(A, result)]
entry samples [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X
