-- Rows of few elements, read under a condition of the row: a C compiler that unrolls them has neighbours to read under a
-- mask.

-- ==
-- entry: joined
-- random input { [19][2]f32 [19][2]f32 } auto output
-- random input { [0][2]f32 [0][2]f32 } auto output
-- input { [[1f32, 2f32], [3f32, 4f32], [5f32, 6f32], [7f32, 8f32], [9f32, 10f32]]
--         [[11f32, 12f32], [13f32, 14f32], [15f32, 16f32], [17f32, 18f32], [19f32, 20f32]] }
-- output { [[1f32, 2f32], [3f32, 4f32], [5f32, 6f32], [7f32, 8f32], [9f32, 10f32],
--           [11f32, 12f32], [13f32, 14f32], [15f32, 16f32], [17f32, 18f32], [19f32, 20f32]] }
entry joined [n] (xs: [n][2]f32) (ys: [n][2]f32) = xs ++ ys

-- ==
-- entry: chosen
-- random input { 20i64 [37][2]f32 [37][2]f32 } auto output
entry chosen [n] (m: i64) (xs: [n][2]f32) (ys: [n][2]f32) =
  tabulate_2d n 2 (\i j -> if i + 3 < m then xs[i, j] else ys[i, j])

-- ==
-- entry: backwards
-- random input { 20i64 [37][2]f32 } auto output
entry backwards [n] (m: i64) (xs: [n][2]f32) = map2 (\i x -> if i + 3 < m then reverse x else [1, 2]) (iota n) xs

-- ==
-- entry: products
-- random input { [43]bool [43][3]f64 } auto output
entry products [n] (cs: [n]bool) (xs: [n][3]f64) =
  map2 (\c x -> if c then (x[0] * x[1], x[1] - x[2]) else (1, 0)) cs xs
