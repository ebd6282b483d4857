-- Reductions of all lengths, of rows and columns: on GPUs a thread, a part of a warp, a warp, a block or several blocks
-- fold each of them.
-- ==
-- entry: product largest largest_in_order
-- random input { [0]i64 } auto output
-- random input { [1]i64 } auto output
-- random input { [1000]i64 } auto output
-- random input { [70001]i64 } auto output
entry product [n] (xs: [n]i64) : i64 = i64.product (map (| 1) xs)
entry largest [n] (xs: [n]i64) : (i64, i64) =
  reduce_comm (\(x, i) (y, j) -> if x > y || (x == y && i < j) then (x, i) else (y, j))
              (i64.lowest, i64.highest)
              (zip xs (iota n))
entry largest_in_order [n] (xs: [n]i64) : (i64, i64) =
  reduce (\(x, i) (y, j) -> if x >= y then (x, i) else (y, j)) (i64.lowest, -1) (zip xs (iota n))

-- Products of matrices do not commute.
def matrix (x: i32) : (i32, i32, i32, i32) = (x, 1, x + 3, 2)
def times (a: i32, b: i32, c: i32, d: i32) (e: i32, f: i32, g: i32, h: i32) =
  (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)

-- ==
-- entry: matrices cyclic
-- random input { [1]i32 } auto output
-- random input { [1000]i32 } auto output
-- random input { [70001]i32 } auto output
entry matrices [n] (xs: [n]i32) : (i32, i32, i32, i32) = reduce times (1, 0, 0, 1) (map matrix xs)
-- The index is checked.
entry cyclic [n] (xs: [n]i32) : i32 = i32.sum (map (\x -> xs[i64.i32 (x % i32.i64 n)]) xs)

-- ==
-- entry: rows columns matrices_of_rows halves
-- random input { [0][7]i32 } auto output
-- random input { [5][0]i32 } auto output
-- random input { [5][1]i32 } auto output
-- random input { [1000][3]i32 } auto output
-- random input { [1000][16]i32 } auto output
-- random input { [1000][100]i32 } auto output
-- random input { [7][20000]i32 } auto output
-- random input { [3][100000]i32 } auto output
-- random input { [100000][3]i32 } auto output
-- random input { [1][100000]i32 } auto output
-- random input { [100000][1]i32 } auto output
entry rows [m][n] (xss: [m][n]i32) : [m]i32 = map i32.sum xss
entry columns [m][n] (xss: [m][n]i32) : [n]i32 = map i32.sum (transpose xss)
entry matrices_of_rows [m][n] (xss: [m][n]i32) : [m](i32, i32, i32, i32) =
  map (\xs -> reduce times (1, 0, 0, 1) (map matrix xs)) xss
-- Two reductions of small elements, of which one is what the other's results are scaled by.
entry halves [m][n] (xss: [m][n]i32) : [m](f16, bool) =
  map (\xs -> (f16.maximum (map (\x -> f16.i32 (x % 1000)) xs), any (\x -> x % 10007 == 0) xs)) xss

-- ==
-- entry: picked
-- input { [1i32, 2i32, 3i32] [0i64, 2i64, 1i64] } output { 6i32 }
-- input { [1i32, 2i32, 3i32] [0i64, 7i64, 1i64] } error: Index \[7\] out of bounds
entry picked [n][k] (xs: [n]i32) (at: [k]i64) : i32 = i32.sum (map (\i -> xs[i]) at)

-- Minima and maxima ignore what is no number; many elements, with partial results.
-- ==
-- entry: extremes
-- input { [[1f32, f32.nan, -3f32, f32.inf], [f32.nan, f32.nan, f32.nan, f32.nan], [-f32.inf, 2f32, f32.nan, 2f32]] }
-- output { [-3f32, f32.inf, -f32.inf] [f32.inf, -f32.inf, 2f32] }
entry extremes [n][m] (xss: [n][m]f32): ([n]f32, [n]f32) = (map f32.minimum xss, map f32.maximum xss)

-- ==
-- entry: largest_place
-- random input { [0]i32 } auto output
-- random input { [127]i32 } auto output
-- random input { [128]i32 } auto output
-- random input { [100003]i32 } auto output
entry largest_place [n] (xs: [n]i32): (i32, i64) =
  let small = map (\x -> x % 1000) xs
  let later (a, i) (b, j) = if a > b || (a == b && i < j) then (a, i) else (b, j)
  in reduce_comm later (i32.lowest, i64.highest) (zip small (iota n))

-- Mathematical functions, which become vectors in C: within the tolerance of results.
-- ==
-- entry: functions
-- random input { [1003]f32 [1003]f64 } auto output
entry functions [n] (xs: [n]f32) (ys: [n]f64): ([n]f32, [n]f32, [n]f32, [n]f64, [n]f64, f64) =
  (map f32.exp xs, map (\x -> f32.log (x + 1)) xs, map2 (\x y -> f32.sin x * f32.cos (f32.f64 y)) xs ys,
   map (\y -> y ** 1.5 + f64.tanh y) ys, map f64.atan ys, f64.sum (map f64.exp ys))
