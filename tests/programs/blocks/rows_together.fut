-- Maps, reductions and scans over the same rows: on GPUs one kernel, whose teams hold the rows in registers, up to 4096
-- elements; longer rows, and such of a program that asks for less, are done by kernels for each.
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (/ s) es

def normalised [n] (scale: [n]f32) (offset: [n]f32) (xs: [n]f32) : [n]f32 =
  let mean = f32.sum xs / f32.i64 n
  let variance = f32.sum (map (\x -> (x - mean) * (x - mean)) xs) / f32.i64 n
  let r = 1 / f32.sqrt (variance + 1e-5)
  in map3 (\x s o -> (x - mean) * r * s + o) xs scale offset

-- ==
-- entry: softmaxes lengths scanned
-- random input { [0][5]f32 } auto output
-- random input { [3][0]f32 } auto output
-- random input { [1][1]f32 } auto output
-- random input { [300][2]f32 } auto output
-- random input { [70][31]f32 } auto output
-- random input { [9][33]f32 } auto output
-- random input { [5][1000]f32 } auto output
-- random input { [2][4096]f32 } auto output
-- random input { [2][4097]f32 } auto output
entry softmaxes [m][n] (xss: [m][n]f32) : [m][n]f32 = map softmax xss
entry lengths [m][n] (xss: [m][n]f32) : ([m][n]f32, [m]f32) =
  unzip (map (\xs -> let l = f32.sqrt (f32.sum (map (\x -> x * x) xs)) in (map (/ l) xs, l)) xss)
entry scanned [m][n] (xss: [m][n]f32) : [m][n]f32 =
  map (\xs -> let ys = scan f32.max f32.lowest xs in map2 (\x y -> y - x * 2) xs ys) xss

-- ==
-- entry: layers
-- random input { [40][64]f32 [64]f32 [64]f32 } auto output
-- random input { [3][600]f32 [600]f32 [600]f32 } auto output
entry layers [m][n] (xss: [m][n]f32) (scale: [n]f32) (offset: [n]f32) : [m][n]f32 =
  map (normalised scale offset) xss

-- Operators that need the order, of several values; rows of other types; the index of an element.
-- ==
-- entry: composed places counted
-- random input { [3][0]i32 } auto output
-- random input { [4][1]i32 } auto output
-- random input { [70][3]i32 } auto output
-- random input { [9][40]i32 } auto output
-- random input { [5][700]i32 } auto output
-- random input { [2][4095]i32 } auto output
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

-- Two maps around rows, and arrays whose rows are views.
-- ==
-- entry: cubes windows
-- random input { [3][5][70]f64 } auto output
-- random input { [2][1][40]f64 } auto output
entry cubes [k][m][n] (xsss: [k][m][n]f64) : [k][m][n]f64 =
  map (map (\xs -> let s = f64.sum xs in let p = f64.maximum (map (\x -> x * s) xs) in map (\x -> x * s + p) xs)) xsss
entry windows [k][m][n] (xsss: [k][m][n]f64) : [k][m][]f64 =
  map (map (\xs -> let ys = drop 1 xs
                   let s = f64.sum ys in map2 (\x y -> x * s - y) ys (take (n - 1) xs))) xsss

-- Rows of a number of elements that the program knows.
-- ==
-- entry: eights
-- random input { [100][8]f32 } auto output
entry eights [m] (xss: [m][8]f32) : [m][8]f32 = map softmax xss
-- ==
-- entry: hundreds
-- random input { [7][100]f32 } auto output
entry hundreds [m] (xss: [m][100]f32) : [m][100]f32 = map softmax xss
