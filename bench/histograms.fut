-- Histograms of few and many bins, with and without an instruction for their operator, in segments; sums of columns.
-- `aplc bench --backend=cuda bench/histograms.fut`; with `--tuning=one-level` threads fold into the result at once, as
-- they do where two levels do not pay.
-- ==
-- entry: bins_8 bins_1024 bins_8192 bins_32000 bins_1000000 floats_1024 products_64 places_64
-- compiled random input { [20000000]i32 }

-- ==
-- entry: rows_16
-- compiled random input { [2000][10000]i32 }

-- ==
-- entry: columns
-- compiled random input { [20000][1000]f32 }

-- ==
-- entry: columns
-- compiled random input { [2000000][10]f32 }

def counts [n] (k: i64) (xs: [n]i32): [k]i32 =
  hist (+) 0 k (map (\x -> i64.i32 x % k) xs) (replicate n 1)

entry bins_8 [n] (xs: [n]i32): [8]i32 = counts 8 xs
entry bins_1024 [n] (xs: [n]i32): [1024]i32 = counts 1024 xs
entry bins_8192 [n] (xs: [n]i32): [8192]i32 = counts 8192 xs
entry bins_32000 [n] (xs: [n]i32): [32000]i32 = counts 32000 xs
entry bins_1000000 [n] (xs: [n]i32): [1000000]i32 = counts 1000000 xs

entry floats_1024 [n] (xs: [n]i32): [1024]f32 =
  hist (+) 0 1024 (map (\x -> i64.i32 x % 1024) xs) (map f32.i32 xs)

entry products_64 [n] (xs: [n]i32): [64]i32 = hist (*) 1 64 (map (\x -> i64.i32 x % 64) xs) xs

entry places_64 [n] (xs: [n]i32): ([64]i32, [64]i64) =
  let larger (a, i) (b, j) = if a > b || (a == b && i < j) then (a, i) else (b, j)
  in unzip (hist larger (i32.lowest, n) 64 (map (\x -> i64.i32 x % 64) xs) (zip xs (iota n)))

entry rows_16 [m][n] (xss: [m][n]i32): [m][16]i32 = map (counts 16) xss

entry columns [m][n] (xss: [m][n]f32): [n]f32 = map f32.sum (transpose xss)
