-- Scatters and histograms. Indices that are written are made so that no two agree, or are out of bounds.

entry every_other [n] (xs: *[n]i32) (ys: [n]i32): [n]i32 = scatter xs (map (* 2) (iota n)) ys

entry rows [m][n] (xss: *[m][n]i32) (yss: [m][n]i32): [m][n]i32 =
  scatter xss (map (\i -> m - i) (iota m)) yss

entry diagonal [m][n] (xss: *[m][n]i32) (ys: [m]i32): [m][n]i32 =
  scatter_2d xss (map (\i -> (i, i)) (iota m)) ys

entry pairs [n] (xs: [n]i32): ([n]i32, [n]bool) =
  unzip (spread n (7, false) (map (\i -> i - 1) (iota n)) (zip xs (map (> 0) xs)))

entry counts [n] (is: [n]i64): [5]i32 = hist (+) 0 5 is (replicate n 1)

entry largest [n] (is: [n]i64) (xs: [n]i16): [5]i16 = hist i16.max i16.lowest 5 is xs

entry products [n] (is: [n]i64) (xs: [n]i8): [3]i8 = hist (\a b -> a * b) 1 3 is xs

-- The largest element, the first of them if there are several.
entry places [n] (is: [n]i64) (xs: [n]i32): ([4]i32, [4]i64) =
  let larger (a, i) (b, j) = if a > b || (a == b && i < j) then (a, i) else (b, j)
  in unzip (hist larger (i32.lowest, n) 4 is (zip xs (iota n)))

entry floats [n] (hist: *[n]f32) (is: [n]i64) (xs: [n]f32): [n]f32 = reduce_by_index hist (+) 0 is xs

entry plane [m][n] (h: *[m][n]i32) (xs: [m]i32): [m][n]i32 =
  reduce_by_index_2d h (+) 0 (map (\i -> (i % 3, i % 2)) (iota m)) xs

entry of_rows [m][n] (is: [m]i64) (xss: [m][n]i32): [3][n]i32 =
  hist (map2 (+)) (replicate n 0) 3 is xss

entry in_each [m][n] (iss: [m][n]i64): [m][4]i32 = map (\is -> hist (+) 0 4 is (map i32.i64 is)) iss

-- Several threads write the same into one element.
entry same_value [n] (is: [n]i64): [5]i32 = scatter (replicate 5 0) (map (% 5) is) (replicate n 7)
