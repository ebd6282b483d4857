-- The product of a sparse matrix and a dense one, as one writes it for dense ones.
-- ==
-- entry: spmm
-- input { [[0.0f32, 2.0f32, 0.0f32], [1.0f32, 0.0f32, 3.0f32]] [[1.0f32, 2.0f32], [3.0f32, 4.0f32], [5.0f32, 6.0f32]] }
-- output { [[6.0f32, 8.0f32], [16.0f32, 20.0f32]] }
#[sparse(A)]
entry spmm [n][m][b] (A: [n][m]f32) (B: [m][b]f32) : [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A
