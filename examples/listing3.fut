-- Tensor contraction Z_bickja = X_jqai * Y_bcqk (over q) with the map and the reduction as a parameter, used with
-- (*, +), (+, min), and with operators of two results: smallest and largest product, smallest product and its place.

-- ==
-- entry: jqai_bcqk_bickja
-- input { [[[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]], [[[-4.0f32,
--   3.0f32], [-1.0f32, 6.0f32]], [[2.0f32, -2.0f32], [5.0f32, 1.0f32]]]]
--         [[[[-2.0f32], [5.0f32]], [[1.0f32], [-3.0f32]]]] }
-- output { [[[[[[-7.0f32, 24.0f32], [18.0f32, 27.0f32]]], [[[3.0f32, -14.0f32], [-10.0f32, -16.0f32]]]],
--   [[[[-19.0f32, -10.0f32], [-16.0f32, -7.0f32]]], [[[11.0f32, 5.0f32], [9.0f32, 3.0f32]]]]]] }

-- ==
-- entry: jqai_bcqk_bickja_i32
-- input { [[[[6i32, 2i32], [-2i32, 5i32]], [[1i32, -3i32], [4i32, 0i32]]], [[[-4i32, 3i32], [-1i32, 6i32]],
--   [[2i32, -2i32], [5i32, 1i32]]]]
--         [[[[-2i32], [5i32]], [[1i32], [-3i32]]]] }
-- output { [[[[[[-7i32, 24i32], [18i32, 27i32]]], [[[3i32, -14i32], [-10i32, -16i32]]]], [[[[-19i32, -10i32],
--   [-16i32, -7i32]]], [[[11i32, 5i32], [9i32, 3i32]]]]]] }

-- ==
-- entry: jqai_bcqk_bickja_min_plus
-- input { [[[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]], [[[-4.0f32,
--   3.0f32], [-1.0f32, 6.0f32]], [[2.0f32, -2.0f32], [5.0f32, 1.0f32]]]]
--         [[[[-2.0f32], [5.0f32]], [[1.0f32], [-3.0f32]]]] }
-- output { [[[[[[4.0f32, -4.0f32], [-6.0f32, -3.0f32]]], [[[-2.0f32, -1.0f32], [-3.0f32, 0.0f32]]]],
--   [[[[0.0f32, 3.0f32], [1.0f32, 4.0f32]]], [[[-6.0f32, -3.0f32], [-5.0f32, -2.0f32]]]]]] }

-- ==
-- entry: jqai_bcqk_bickja_minmax
-- input { [[[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]], [[[-4.0f32,
--   3.0f32], [-1.0f32, 6.0f32]], [[2.0f32, -2.0f32], [5.0f32, 1.0f32]]]]
--         [[[[-2.0f32], [5.0f32]], [[1.0f32], [-3.0f32]]]] }
-- output { [[[[[[-12.0f32, 4.0f32], [8.0f32, 2.0f32]]], [[[-3.0f32, -12.0f32], [-6.0f32, -15.0f32]]]],
--   [[[[-15.0f32, -10.0f32], [-10.0f32, -12.0f32]]], [[[2.0f32, 0.0f32], [3.0f32, -3.0f32]]]]]]
--          [[[[[[5.0f32, 20.0f32], [10.0f32, 25.0f32]]], [[[6.0f32, -2.0f32], [-4.0f32, -1.0f32]]]],
--   [[[[-4.0f32, 0.0f32], [-6.0f32, 5.0f32]]], [[[9.0f32, 5.0f32], [6.0f32, 6.0f32]]]]]] }

-- ==
-- entry: jqai_bcqk_bickja_argmin
-- input { [[[[6.0f32, 2.0f32], [-2.0f32, 5.0f32]], [[1.0f32, -3.0f32], [4.0f32, 0.0f32]]], [[[-4.0f32,
--   3.0f32], [-1.0f32, 6.0f32]], [[2.0f32, -2.0f32], [5.0f32, 1.0f32]]]]
--         [[[[-2.0f32], [5.0f32]], [[1.0f32], [-3.0f32]]]] }
-- output { [[[[[[-12.0f32, 4.0f32], [8.0f32, 2.0f32]]], [[[-3.0f32, -12.0f32], [-6.0f32, -15.0f32]]]],
--   [[[[-15.0f32, -10.0f32], [-10.0f32, -12.0f32]]], [[[2.0f32, 0.0f32], [3.0f32, -3.0f32]]]]]]
--          [[[[[[0i64, 0i64], [0i64, 0i64]]], [[[1i64, 1i64], [1i64, 1i64]]]], [[[[1i64, 0i64], [1i64,
--   0i64]]], [[[0i64, 1i64], [0i64, 1i64]]]]]] }

def jqai_bcqk_bickja_with 't_x 't_y 't_z [b] [i] [c] [k] [j] [a] [q]
    (redomap: [q]t_x -> [q]t_y -> t_z)
    (X: [j][q][a][i]t_x)
    (Y: [b][c][q][k]t_y)
    : [b][i][c][k][j][a]t_z =
  let xssss: [i][j][a][q]t_x =
    X |> map transpose |> map (map transpose) |> map transpose |> transpose
  let yssss: [b][c][k][q]t_y = map (map transpose) Y
  in
    map (\ysss ->
      map (\xsss ->
        map (\yss ->
          map (\ys ->
            map (\xss ->
              map (\xs -> redomap xs ys) xss
            ) xsss
          ) yss
        ) ysss
      ) xssss
    ) yssss

entry jqai_bcqk_bickja [b] [i] [c] [k] [j] [a] [q]
    (X: [j][q][a][i]f32) (Y: [b][c][q][k]f32) : [b][i][c][k][j][a]f32 =
  jqai_bcqk_bickja_with (\xs ys -> map2 (*) xs ys |> f32.sum) X Y

entry jqai_bcqk_bickja_i32 [b] [i] [c] [k] [j] [a] [q]
    (X: [j][q][a][i]i32) (Y: [b][c][q][k]i32) : [b][i][c][k][j][a]i32 =
  jqai_bcqk_bickja_with (\xs ys -> map2 (*) xs ys |> i32.sum) X Y

entry jqai_bcqk_bickja_min_plus [b] [i] [c] [k] [j] [a] [q]
    (X: [j][q][a][i]f32) (Y: [b][c][q][k]f32) : [b][i][c][k][j][a]f32 =
  jqai_bcqk_bickja_with (\xs ys -> map2 (+) xs ys |> f32.minimum) X Y

def minmax [q] (xs: [q]f32) (ys: [q]f32) : (f32, f32) =
  map2 (\x y -> let p = x * y in (p, p)) xs ys
  |> reduce_comm (\(lo, hi) (l, h) -> (f32.min lo l, f32.max hi h)) (f32.inf, -f32.inf)

entry jqai_bcqk_bickja_minmax [b] [i] [c] [k] [j] [a] [q]
    (X: [j][q][a][i]f32) (Y: [b][c][q][k]f32)
    : ([b][i][c][k][j][a]f32, [b][i][c][k][j][a]f32) =
  let flat = jqai_bcqk_bickja_with minmax X Y
  in (map (map (map (map (map (map (.0)))))) flat, map (map (map (map (map (map (.1)))))) flat)

-- Of equal products the first, so that the operator commutes.
def argmin [q] (xs: [q]f32) (ys: [q]f32) : (f32, i64) =
  let smaller (x: f32, i: i64) (y: f32, j: i64) =
    if x < y || (x == y && i < j) then (x, i) else (y, j)
  in map3 (\x y i -> (x * y, i)) xs ys (iota q)
     |> reduce_comm smaller (f32.inf, i64.highest)

entry jqai_bcqk_bickja_argmin [b] [i] [c] [k] [j] [a] [q]
    (X: [j][q][a][i]f32) (Y: [b][c][q][k]f32) : [b][i][c][k][j][a](f32, i64) =
  jqai_bcqk_bickja_with argmin X Y
