-- Tensor contraction Z_abcijk = X_kiaq * Y_bcjq (summed over q).

-- ==
-- entry: sd2_3
-- input { [[[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]], [[[-4.0f32,
--   3.0f32], [-1.0f32, 6.0f32]], [[2.0f32, -2.0f32], [5.0f32, 1.0f32]]]]
--         [[[[-2.0f32, 5.0f32]]], [[[1.0f32, -3.0f32]]]] }
-- output { [[[[[[-2.0f32, 23.0f32]], [[-17.0f32, -14.0f32]]]], [[[[0.0f32, -13.0f32]], [[10.0f32, 8.0f32]]]]],
--   [[[[[29.0f32, 32.0f32]], [[-8.0f32, -5.0f32]]]], [[[[-17.0f32, -19.0f32]], [[4.0f32, 2.0f32]]]]]] }

-- ==
-- entry: sd2_3_i32
-- input { [[[[6i32, 2i32], [-2i32, 5i32]], [[1i32, -3i32], [4i32, 0i32]]], [[[-4i32, 3i32], [-1i32, 6i32]],
--   [[2i32, -2i32], [5i32, 1i32]]]]
--         [[[[-2i32, 5i32]]], [[[1i32, -3i32]]]] }
-- output { [[[[[[-2i32, 23i32]], [[-17i32, -14i32]]]], [[[[0i32, -13i32]], [[10i32, 8i32]]]]], [[[[[29i32,
--   32i32]], [[-8i32, -5i32]]]], [[[[-17i32, -19i32]], [[4i32, 2i32]]]]]] }

entry sd2_3 [a] [b] [c] [i] [j] [k] [q]
    (X: [k][i][a][q]f32) (Y: [b][c][j][q]f32) : [a][b][c][i][j][k]f32 =
  let xssss: [a][i][k][q]f32 = X |> transpose |> map transpose |> transpose
  in
    map (\xsss ->
      map (\ysss ->
        map (\yss ->
          map (\xss ->
            map (\ys ->
              map (\xs -> map2 (*) xs ys |> f32.sum) xss
            ) yss
          ) xsss
        ) ysss
      ) Y
    ) xssss

entry sd2_3_i32 [a] [b] [c] [i] [j] [k] [q]
    (X: [k][i][a][q]i32) (Y: [b][c][j][q]i32) : [a][b][c][i][j][k]i32 =
  let xssss: [a][i][k][q]i32 = X |> transpose |> map transpose |> transpose
  in
    map (\xsss ->
      map (\ysss ->
        map (\yss ->
          map (\xss ->
            map (\ys ->
              map (\xs -> map2 (*) xs ys |> i32.sum) xss
            ) yss
          ) xsss
        ) ysss
      ) Y
    ) xssss
