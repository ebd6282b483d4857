-- Views of arrays that a map's lambda makes, and loops with views inside of maps and around them.
-- ==
-- entry: made
-- random input { [3][4][5]f32 [6][20]f32 } auto output
-- random input { [1][1][1]f32 [1][1]f32 } auto output
entry made [n][m][k][o] (x: [n][m][k]f32) (w: [o][k*m]f32) =
  map (\r -> let s = flatten (transpose (map (scan (+) 0) r)) in map (\v -> f32.sum (map2 (*) s v)) w) x
-- ==
-- entry: rounds
-- input { 3i64 [[[1, 2], [3, 4]], [[5, 6], [7, 8]]] }
-- output { [[[4, 6], [5, 7]], [[8, 10], [9, 11]]] [[[4, 2], [3, 1]], [[8, 6], [7, 5]]] }
-- input { 0i64 [[[1]]] } output { [[[1]]] [[[1]]] }
entry rounds [n][m] (k: i64) (x: [n][m][m]i32) =
  (map (\r -> loop r for _i < k do transpose (map (map (+ 1)) r)) x,
   loop x for _i < k do map (\r -> unflatten (reverse (flatten (transpose r)))) x)
