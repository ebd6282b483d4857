-- Reductions whose operator is a map over rows, of rows that a map makes.
entry weighted [n][d] (p: [n]f32) (V: [n][d]f32): [d]f32 =
  reduce (map2 (+)) (replicate d 0) (map2 (\w v -> map (* w) v) p V)

entry weighted_each [m][n][d] (P: [m][n]f64) (V: [n][d]f64): [m][d]f64 =
  map (\p -> reduce (map2 (+)) (replicate d 0) (map2 (\w v -> map (* w) v) p V)) P

-- By indices, with what all columns share, another operator, and a neutral row that is not one scalar.
entry largest [m][n][d] (A: [m][n]i32) (B: [n][d]i32) (least: [d]i32): [m][d]i32 =
  map (\a -> reduce (map2 i32.max) least
                    (tabulate n (\i -> let s = a[i] * 3 - i32.i64 i in tabulate d (\j -> s ^ (B[i, j] + i32.i64 j))))) A

-- What is not cheap is done once for all columns.
entry softly [m][n][d] (A: [m][n]f64) (B: [n][d]f64): [m][d]f64 =
  map (\a -> reduce (map2 (+)) (replicate d 0) (map2 (\x b -> let w = f64.sqrt (x * x) in map (* w) b) a B)) A

-- Two rows at once, and rows of rows.
entry moments [n][d] (X: [n][d]i64) (w: [n]i64): ([d]i64, [d]i64) =
  reduce (\(a, b) (c, d) -> (map2 (+) a c, map2 (+) b d)) (replicate d 0, replicate d 0)
         (map2 (\x s -> (map (* s) x, map (\y -> y * y) x)) X w)

entry outer_products [n][p][q] (A: [n][p]f64) (B: [n][q]f64): [p][q]f64 =
  reduce (map2 (map2 (+))) (replicate p (replicate q 0)) (map2 (\a b -> map (\x -> map (* x) b) a) A B)

-- Three columns stay with their row; rows as they are beside rows that are made.
entry centre [m][n] (P: [m][n][3]f64) (w: [n]f64): [m][3]f64 =
  map (\ps -> reduce (map2 (+)) (replicate 3 0) (map2 (\p s -> map (/ (1 + s * s)) p) ps w)) P

entry chosen [m][n][d] (F: [m][n]bool) (X: [n][d]i32): [m][d]i32 =
  map (\f -> reduce (map2 (+)) (replicate d 0) (map2 (\ok x -> if ok then x else replicate d 0) f X)) F

-- A row read elsewhere than at its column.
entry shifted [m][n][d] (P: [m][n]i32) (X: [n][d]i32): [m][d]i32 =
  map (\p -> reduce (map2 (+)) (replicate d 0)
                    (map2 (\w x -> map (\j -> w * x[(j + 1) % d]) (iota d)) p X)) P

-- An index that may be outside.
entry looked_up [m][n][d] (I: [m][n]i64) (X: [n][d]i32): [m][d]i32 =
  map (\is -> reduce (map2 (+)) (replicate d 0) (map (\i -> map (* 2) X[i64.abs i % n]) is)) I

-- Sums of clusters as k-means has them.
entry clusters [n][d] (k: i64) (X: [n][d]f64) (C: [n]i64): [][d]f64 =
  tabulate (1 + i64.abs k % 5) (\c -> reduce (map2 (+)) (replicate d 0)
                                             (map2 (\x at -> if at & 3 == c then x else map (const 0) x) X C))
