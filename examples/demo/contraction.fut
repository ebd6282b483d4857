-- A contraction of rank 6: Z_abcijk is the sum over q of X_icaq * Y_qbjk.
-- ==
-- entry: contraction
-- input { [[[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]]]
--         [[[[-2.0f32, 5.0f32], [1.0f32, -3.0f32]]], [[[4.0f32, 0.0f32], [-4.0f32, 3.0f32]]]] }
-- output { [[[[[[-4.0f32, 30.0f32], [-2.0f32, -12.0f32]]], [[[-14.0f32, 5.0f32], [13.0f32, -12.0f32]]]]],
--   [[[[[24.0f32, -10.0f32], [-22.0f32, 21.0f32]]], [[[-8.0f32, 20.0f32], [4.0f32, -12.0f32]]]]]] }
entry contraction [a][b][c][i][j][k][q] (X: [i][c][a][q]f32) (Y: [q][b][j][k]f32) : [a][b][c][i][j][k]f32 =
  let sum a b c i j k = f32.sum (map (\q -> X[i, c, a, q] * Y[q, b, j, k]) (iota q))
  in tabulate_3d a b c (\a b c -> tabulate_3d i j k (\i j k -> sum a b c i j k))
