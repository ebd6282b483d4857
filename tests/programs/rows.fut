-- Maps, reductions and scans over the same rows, with operators that need the order, of several values, and rows of
-- several types.
-- ==
-- entry: composed places counted
-- random input { [3][0]i32 } auto output
-- random input { [4][1]i32 } auto output
-- random input { [70][3]i32 } auto output
-- random input { [9][40]i32 } auto output
-- random input { [5][700]i32 } auto output
-- random input { [2][4095]i32 } auto output
-- random input { [3000][100]i32 } auto output
entry composed [m][n] (xss: [m][n]i32) : ([m][n]i32, [m]i32) =
  unzip (map (\xs ->
    let op (a: i32, b: i32) (c: i32, d: i32) = (a * c, b * c + d)
    let (p, q) = reduce op (1, 0) (zip xs (map (2 *) xs))
    let (_, ys) = unzip (scan op (1, 0) (map (\x -> (x | 1, x ^ p)) xs))
    in (map2 (\x y -> x + y * q) xs ys, q)) xss)
entry places [m][n] (xss: [m][n]i32) : ([m]i64, [m][n]bool) =
  unzip (map (\xs ->
    let larger (x: i32, i: i64) (y: i32, j: i64) = if x > y || (x == y && i <= j) then (x, i) else (y, j)
    let (most, at) = reduce_comm larger (i32.lowest, 0) (zip xs (iota n))
    in (at, map (== most) xs)) xss)
entry counted [m][n] (xss: [m][n]i32) : [m][n](i64, u8) =
  map (\xs ->
    let before = scan (+) 0 (map (\x -> i64.bool (x > 0)) xs)
    let all = i64.sum (map i64.i32 xs)
    in map3 (\x b i -> (b - all + i, u8.i32 x)) xs before (iota n)) xss
