-- Matrix product Z_ab = X_aq * Y_qb written with indices: maps over iota, a loop that accumulates, tabulate.

-- ==
-- entry: mm1_iota mm1_loop mm1_tabulate
-- input { [[6.0f32, 2.0f32], [-2.0f32, 5.0f32]]
--         [[-2.0f32, 5.0f32, 1.0f32], [-3.0f32, 4.0f32, 0.0f32]] }
-- output { [[-18.0f32, 38.0f32, 6.0f32], [-11.0f32, 10.0f32, -2.0f32]] }

-- ==
-- entry: mm1_iota_i32
-- input { [[6i32, 2i32], [-2i32, 5i32]]
--         [[-2i32, 5i32, 1i32], [-3i32, 4i32, 0i32]] }
-- output { [[-18i32, 38i32, 6i32], [-11i32, 10i32, -2i32]] }

entry mm1_iota [a] [b] [q] (X: [a][q]f32) (Y: [q][b]f32) : [a][b]f32 =
  map (\i ->
    map (\j ->
      map (\k -> X[i, k] * Y[k, j]) (iota q) |> f32.sum
    ) (iota b)
  ) (iota a)

entry mm1_loop [a] [b] [q] (X: [a][q]f32) (Y: [q][b]f32) : [a][b]f32 =
  map (\i ->
    map (\j ->
      loop acc = 0 for k < q do
        acc + X[i, k] * Y[k, j]
    ) (iota b)
  ) (iota a)

entry mm1_tabulate [a] [b] [q] (X: [a][q]f32) (Y: [q][b]f32) : [a][b]f32 =
  tabulate_2d a b (\i j -> reduce (+) 0 (tabulate q (\k -> X[i, k] * Y[k, j])))

entry mm1_iota_i32 [a] [b] [q] (X: [a][q]i32) (Y: [q][b]i32) : [a][b]i32 =
  map (\i -> map (\j -> i32.sum (map (\k -> X[i, k] * Y[k, j]) (iota q))) (iota b)) (iota a)
