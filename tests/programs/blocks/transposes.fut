-- Arrays that are returned with their dims in another order, of all ranks and element sizes.
-- ==
-- entry: t2 twice
-- random input { [0][7]i32 } auto output
-- random input { [5][1]i32 } auto output
-- random input { [100][3]i32 } auto output
-- random input { [37][50]i32 } auto output
entry t2 [n][m] (xss: [n][m]i32) : [m][n]i32 = transpose xss
entry twice [n][m] (xss: [n][m]i32) : ([m][n]i32, [m][n]i32) = (transpose xss, transpose (map (map (+ 1)) xss))

-- ==
-- entry: t3 t3_outer t3_batch t3_reversed indices
-- random input { [3][4][5]f64 } auto output
-- random input { [1][20][33]f64 } auto output
-- random input { [17][18][35]f64 } auto output
-- random input { [0][18][35]f64 } auto output
entry t3 [a][b][c] (x: [a][b][c]f64) : [c][a][b]f64 = transpose (map transpose x)
entry t3_outer [a][b][c] (x: [a][b][c]f64) : [b][a][c]f64 = transpose x
entry t3_batch [a][b][c] (x: [a][b][c]f64) : [a][c][b]f64 = map transpose x
entry t3_reversed [a][b][c] (x: [a][b][c]f64) : [c][b][a]f64 = map transpose (transpose (map transpose x))
entry indices [a][b][c] (x: [a][b][c]f64) : [c][b][a]f64 =
  #[unsafe] tabulate_3d c b a (\k j i -> x[i, j, k])

-- ==
-- entry: bytes
-- random input { [17][40]u8 } auto output
entry bytes [n][m] (xss: [n][m]u8) : *[m][n]u8 = copy (transpose xss)

-- Elements that lie in the result's order beside those that do not, and both results of one map.
-- ==
-- entry: beside
-- random input { [37][65]f32 [65][37]f32 } auto output
-- random input { [64][32]f32 [32][64]f32 } auto output
-- random input { [1][0]f32 [0][1]f32 } auto output
entry beside [n][m] (xss: [n][m]f32) (yss: [m][n]f32) : ([m][n]f32, [m][n]bool) =
  unzip (map unzip (map2 (map2 (\x y -> (x * 2 + y, x < y))) (transpose xss) yss)) |> (\(a, b) -> (a, b))
