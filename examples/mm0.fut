-- Matrix product Z_ab = X_aq * Y_bq (summed over q): the reduction dim innermost on both operands.

-- ==
-- entry: mm0
-- input { [[6.0f32, 2.0f32], [-2.0f32, 5.0f32]]
--         [[-2.0f32, 5.0f32], [1.0f32, -3.0f32], [4.0f32, 0.0f32]] }
-- output { [[-2.0f32, 0.0f32, 24.0f32], [29.0f32, -17.0f32, -8.0f32]] }

-- ==
-- entry: mm0_i32
-- input { [[6i32, 2i32], [-2i32, 5i32]]
--         [[-2i32, 5i32], [1i32, -3i32], [4i32, 0i32]] }
-- output { [[-2i32, 0i32, 24i32], [29i32, -17i32, -8i32]] }

entry mm0 [a] [b] [q] (X: [a][q]f32) (Y: [b][q]f32) : [a][b]f32 =
  map (\xs -> map (\ys -> map2 (*) xs ys |> f32.sum) Y) X

entry mm0_i32 [a] [b] [q] (X: [a][q]i32) (Y: [b][q]i32) : [a][b]i32 =
  map (\xs -> map (\ys -> map2 (*) xs ys |> i32.sum) Y) X
