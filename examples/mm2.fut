-- Matrix product Z_ab = X_qa * Y_bq (summed over q): X has the reduction dim outermost.

-- ==
-- entry: mm2
-- input { [[6.0f32, 2.0f32], [-2.0f32, 5.0f32]]
--         [[-2.0f32, 5.0f32], [1.0f32, -3.0f32], [4.0f32, 0.0f32]] }
-- output { [[-22.0f32, 12.0f32, 24.0f32], [21.0f32, -13.0f32, 8.0f32]] }

-- ==
-- entry: mm2_i32
-- input { [[6i32, 2i32], [-2i32, 5i32]]
--         [[-2i32, 5i32], [1i32, -3i32], [4i32, 0i32]] }
-- output { [[-22i32, 12i32, 24i32], [21i32, -13i32, 8i32]] }

entry mm2 [a] [b] [q] (X: [q][a]f32) (Y: [b][q]f32) : [a][b]f32 =
  let xss = transpose X
  in map (\xs -> map (\ys -> map2 (*) xs ys |> f32.sum) Y) xss

entry mm2_i32 [a] [b] [q] (X: [q][a]i32) (Y: [b][q]i32) : [a][b]i32 =
  let xss = transpose X
  in map (\xs -> map (\ys -> map2 (*) xs ys |> i32.sum) Y) xss
