-- Products of matrices and vectors of elements of one and two bytes: four columns a thread, eight neighbours of a row.
-- ==
-- entry: columns rows
-- random input { [1000][64]f16 [1000]f16 [64]f16 } auto output
-- random input { [37][1028]f16 [37]f16 [1028]f16 } auto output
-- random input { [5][63]f16 [5]f16 [63]f16 } auto output
-- random input { [0][8]f16 [0]f16 [8]f16 } auto output

entry columns [n][m] (A: [n][m]f16) (x: [n]f16) (_: [m]f16) : [m]f32 =
  tabulate m (\j -> f32.sum (tabulate n (\i -> f32.f16 A[i, j] * f32.f16 x[i])))

entry rows [n][m] (A: [n][m]f16) (_: [n]f16) (y: [m]f16) : [n]f32 =
  tabulate n (\i -> f32.sum (tabulate m (\j -> f32.f16 A[i, j] * f32.f16 y[j])))

-- Of bytes; of the second there are two results, one of which is worked on behind the reduction.
-- ==
-- entry: column_bytes largest_columns
-- random input { [300][68]i8 [300]i8 } auto output
-- random input { [9][66]i8 [9]i8 } auto output

entry column_bytes [n][m] (A: [n][m]i8) (x: [n]i8) : [m]i32 =
  map (\as -> i32.sum (map2 (\a b -> i32.i8 a * i32.i8 b) as x)) (transpose A)

entry largest_columns [n][m] (A: [n][m]i8) (x: [n]i8) : ([m]i8, [m]i32) =
  unzip (tabulate m (\j ->
    let (a, at) = reduce (\(a, i) (b, k) -> if a > b || (a == b && i <= k) then (a, i) else (b, k)) (i8.lowest, n)
                         (tabulate n (\i -> (A[i, j], i)))
    in (a, i32.i64 at * 2 + i32.i64 (length x))))
