-- Tensor contraction Z_abcijk = X_icaq * Y_qbjk (summed over q).

-- ==
-- entry: sd1_7
-- input { [[[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]]]
--         [[[[-2.0f32, 5.0f32], [1.0f32, -3.0f32]]], [[[4.0f32, 0.0f32], [-4.0f32, 3.0f32]]]] }
-- output { [[[[[[-4.0f32, 30.0f32], [-2.0f32, -12.0f32]]], [[[-14.0f32, 5.0f32], [13.0f32, -12.0f32]]]]],
--   [[[[[24.0f32, -10.0f32], [-22.0f32, 21.0f32]]], [[[-8.0f32, 20.0f32], [4.0f32, -12.0f32]]]]]] }

-- ==
-- entry: sd1_7_i32
-- input { [[[[6i32, 2i32], [-2i32, 5i32]], [[1i32, -3i32], [4i32, 0i32]]]]
--         [[[[-2i32, 5i32], [1i32, -3i32]]], [[[4i32, 0i32], [-4i32, 3i32]]]] }
-- output { [[[[[[-4i32, 30i32], [-2i32, -12i32]]], [[[-14i32, 5i32], [13i32, -12i32]]]]], [[[[[24i32, -10i32],
--   [-22i32, 21i32]]], [[[-8i32, 20i32], [4i32, -12i32]]]]]] }

entry sd1_7 [a] [b] [c] [i] [j] [k] [q]
    (X: [i][c][a][q]f32) (Y: [q][b][j][k]f32) : [a][b][c][i][j][k]f32 =
  let xssss: [a][c][i][q]f32 = X |> map transpose |> transpose |> map transpose
  let yssss: [b][j][k][q]f32 = Y |> transpose |> map transpose |> map (map transpose)
  in
    map (\xsss ->
      map (\ysss ->
        map (\xss ->
          map (\xs ->
            map (\yss ->
              map (\ys -> map2 (*) xs ys |> f32.sum) yss
            ) ysss
          ) xss
        ) xsss
      ) yssss
    ) xssss

entry sd1_7_i32 [a] [b] [c] [i] [j] [k] [q]
    (X: [i][c][a][q]i32) (Y: [q][b][j][k]i32) : [a][b][c][i][j][k]i32 =
  let xssss: [a][c][i][q]i32 = X |> map transpose |> transpose |> map transpose
  let yssss: [b][j][k][q]i32 = Y |> transpose |> map transpose |> map (map transpose)
  in
    map (\xsss ->
      map (\ysss ->
        map (\xss ->
          map (\xs ->
            map (\yss ->
              map (\ys -> map2 (*) xs ys |> i32.sum) yss
            ) ysss
          ) xss
        ) xsss
      ) yssss
    ) xssss
