-- Scans of all lengths, of rows: on GPUs a part of a warp, a warp or many warps scan each of them.
-- ==
-- entry: sums before
-- random input { [0]i32 } auto output
-- random input { [1]i32 } auto output
-- random input { [31]i32 } auto output
-- random input { [1000]i32 } auto output
-- random input { [70001]i32 } auto output
entry sums [n] (xs: [n]i32) : [n]i32 = scan (+) 0 xs
-- With what is mapped besides, before and after.
entry before [n] (xs: [n]i32) : ([n]i64, [n]i32) =
  let ys = map (\x -> x * 3) xs
  in (map (+ 1) (scan (+) 0 (map i64.i32 ys)), ys)

-- Composition of x -> a x + b, first one first; kept indices.
-- ==
-- entry: lines kept
-- random input { [1]i32 } auto output
-- random input { [300]i32 } auto output
-- random input { [70001]i32 } auto output
entry lines [n] (xs: [n]i32) : ([n]i32, [n]i32) =
  unzip (scan (\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) (zip xs (map (2 *) xs)))
entry kept [n] (xs: [n]i32) : []i32 = filter (\x -> x % 3 == 0) xs

-- ==
-- entry: rows largest
-- random input { [0][7]i32 } auto output
-- random input { [5][0]i32 } auto output
-- random input { [5][1]i32 } auto output
-- random input { [1000][3]i32 } auto output
-- random input { [1000][100]i32 } auto output
-- random input { [7][20000]i32 } auto output
-- random input { [100000][3]i32 } auto output
entry rows [m][n] (xss: [m][n]i32) : [m][n]i32 = map (scan (+) 0) xss
entry largest [m][n] (xss: [m][n]i32) : [m][n](i16, bool) =
  map (\xs -> zip (scan i16.max i16.lowest (map i16.i32 xs)) (scan (||) false (map (> 0) xs))) xss

-- ==
-- entry: picked
-- input { [1i32, 2i32, 3i32] [0i64, 2i64, 1i64] } output { [1i32, 4i32, 6i32] }
-- input { [1i32, 2i32, 3i32] [0i64, 7i64, 1i64] } error: Index \[7\] out of bounds
entry picked [n][k] (xs: [n]i32) (at: [k]i64) : [k]i32 = scan (+) 0 (map (\i -> xs[i]) at)

-- Of two numbers that are scanned together one is read.
-- ==
-- entry: totals
-- random input { [31]i32 } auto output
-- random input { [5000]i32 } auto output
entry totals [n] (xs: [n]i32) : [n]i32 =
  map (.1) (scan (\(f, x) (g, y) -> (f || g, if g then y else x + y)) (false, 0) (map (\x -> (x % 7 == 0, x)) xs))
