-- Rows that an array of indices names: an index out of bounds is an error where it is read, if it is.
-- ==
-- entry: rows
-- input { [[1f32, 2f32], [3f32, 4f32]] [[5f32, 6f32], [7f32, 8f32], [1f32, 0f32]] [1i64, 0i64, 1i64] } output { [[39f32, 53f32, 3f32], [17f32, 23f32, 1f32], [39f32, 53f32, 3f32]] }
-- input { [[1f32, 2f32], [3f32, 4f32]] [[5f32, 6f32], [7f32, 8f32], [1f32, 0f32]] [1i64, 0i64, 2i64] } error: gathers.fut:9:.*Index \[2\] out of bounds
-- input { [[1f32, 2f32], [3f32, 4f32]] [[5f32, 6f32], [7f32, 8f32], [1f32, 0f32]] [1i64, -1i64, 1i64] } error: Index \[-1\] out of bounds
-- input { [[1f32, 2f32], [3f32, 4f32]] empty([0][2]f32) [1i64, 0i64, 1i64] } output { empty([3][0]f32) }
entry rows [v][n][m][q] (A: [v][q]f32) (B: [m][q]f32) (I: [n]i64): [n][m]f32 =
  map (\i -> map (\b -> f32.sum (map2 (*) A[i] b)) B) I

-- ==
-- entry: elements
-- input { [[1f32, 2f32], [3f32, 4f32]] [[5f32, 6f32], [7f32, 8f32], [1f32, 0f32]] [1i64, 0i64, 2i64] } error: gathers.fut:16:.*Index \[2, [01]\] out of bounds
-- input { empty([2][0]f32) empty([1][0]f32) [1i64, 7i64] } output { [[0f32], [0f32]] }
entry elements [v][n][m][q] (A: [v][q]f32) (B: [m][q]f32) (I: [n]i64): [n][m]f32 =
  tabulate_2d n m (\i j -> f32.sum (tabulate q (\k -> A[I[i], k] * B[j, k])))

-- ==
-- entry: unsafe_rows
-- input { [[1f32, 2f32], [3f32, 4f32]] [[5f32, 6f32], [7f32, 8f32], [1f32, 0f32]] [1i64, 0i64, 1i64] } output { [[39f32, 53f32, 3f32], [17f32, 23f32, 1f32], [39f32, 53f32, 3f32]] }
entry unsafe_rows [v][n][m][q] (A: [v][q]f32) (B: [m][q]f32) (I: [n]i64): [n][m]f32 =
  map (\i -> map (\b -> f32.sum (map2 (*) (#[unsafe] A[i]) b)) B) I
