-- Matrix product Z_ab = X_qa * Y_qb (summed over q): both operands have the reduction dim outermost.

-- ==
-- entry: mm3
-- input { [[6.0f32, 2.0f32], [-2.0f32, 5.0f32]]
--         [[-2.0f32, 5.0f32, 1.0f32], [-3.0f32, 4.0f32, 0.0f32]] }
-- output { [[-6.0f32, 22.0f32, 6.0f32], [-19.0f32, 30.0f32, 2.0f32]] }

-- ==
-- entry: mm3_i32
-- input { [[6i32, 2i32], [-2i32, 5i32]]
--         [[-2i32, 5i32, 1i32], [-3i32, 4i32, 0i32]] }
-- output { [[-6i32, 22i32, 6i32], [-19i32, 30i32, 2i32]] }

entry mm3 [a] [b] [q] (X: [q][a]f32) (Y: [q][b]f32) : [a][b]f32 =
  let xss = transpose X
  let yss = transpose Y
  in map (\xs -> map (\ys -> map2 (*) xs ys |> f32.sum) yss) xss

entry mm3_i32 [a] [b] [q] (X: [q][a]i32) (Y: [q][b]i32) : [a][b]i32 =
  let xss = transpose X
  let yss = transpose Y
  in map (\xs -> map (\ys -> map2 (*) xs ys |> i32.sum) yss) xss
