-- Matrix product Z_ab = X_aq * Y_qb (summed over q): Y has the reduction dim outermost.

-- ==
-- entry: mm1
-- input { [[6.0f32, 2.0f32], [-2.0f32, 5.0f32]]
--         [[-2.0f32, 5.0f32, 1.0f32], [-3.0f32, 4.0f32, 0.0f32]] }
-- output { [[-18.0f32, 38.0f32, 6.0f32], [-11.0f32, 10.0f32, -2.0f32]] }

-- ==
-- entry: mm1_i32
-- input { [[6i32, 2i32], [-2i32, 5i32]]
--         [[-2i32, 5i32, 1i32], [-3i32, 4i32, 0i32]] }
-- output { [[-18i32, 38i32, 6i32], [-11i32, 10i32, -2i32]] }

entry mm1 [a] [b] [q] (X: [a][q]f32) (Y: [q][b]f32) : [a][b]f32 =
  let yss = transpose Y
  in map (\xs -> map (\ys -> map2 (*) xs ys |> f32.sum) yss) X

entry mm1_i32 [a] [b] [q] (X: [a][q]i32) (Y: [q][b]i32) : [a][b]i32 =
  let yss = transpose Y
  in map (\xs -> map (\ys -> map2 (*) xs ys |> i32.sum) yss) X
