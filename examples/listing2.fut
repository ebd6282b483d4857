-- Tensor contraction Z_cba = X_aqc * Y_bq (summed over q): the order of the maps is that of the result.

-- ==
-- entry: aqc_bq_cba
-- input { [[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]]
--         [[-2.0f32, 5.0f32], [1.0f32, -3.0f32], [4.0f32, 0.0f32]] }
-- output { [[[-22.0f32, 18.0f32], [12.0f32, -11.0f32], [24.0f32, 4.0f32]], [[21.0f32, 6.0f32], [-13.0f32,
--   -3.0f32], [8.0f32, -12.0f32]]] }

-- ==
-- entry: aqc_bq_cba_i32
-- input { [[[6i32, 2i32], [-2i32, 5i32]], [[1i32, -3i32], [4i32, 0i32]]]
--         [[-2i32, 5i32], [1i32, -3i32], [4i32, 0i32]] }
-- output { [[[-22i32, 18i32], [12i32, -11i32], [24i32, 4i32]], [[21i32, 6i32], [-13i32, -3i32], [8i32,
--   -12i32]]] }

entry aqc_bq_cba [a] [b] [c] [q] (X: [a][q][c]f32) (Y: [b][q]f32) : [c][b][a]f32 =
  let xsss: [c][a][q]f32 = transpose (map transpose X)
  in map (\xss ->
       map (\ys ->
         map (\xs -> map2 (*) xs ys |> f32.sum) xss
       ) Y
     ) xsss

entry aqc_bq_cba_i32 [a] [b] [c] [q] (X: [a][q][c]i32) (Y: [b][q]i32) : [c][b][a]i32 =
  let xsss: [c][a][q]i32 = transpose (map transpose X)
  in map (\xss ->
       map (\ys ->
         map (\xs -> map2 (*) xs ys |> i32.sum) xss
       ) Y
     ) xsss
