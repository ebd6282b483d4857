-- Maps, where neighbouring elements are read and written at once on GPUs: types of all widths, beginnings and rows that are
-- multiples of what an access has and others, elements that are not neighbours, conditions, results in place.

-- ==
-- entry: fives
-- random input { 1027i64 } auto output
-- random input { 1024i64 } auto output
entry fives (n: i64): [n]f32 = replicate n 5

-- ==
-- entry: mixed
-- random input { [1027]f64 [1027]u8 } auto output
-- random input { [3]f64 [3]u8 } auto output
-- random input { [1024]f64 [1024]u8 } auto output
entry mixed [n] (xs: [n]f64) (ys: [n]u8): ([n]f32, [n]u8, [n]bool) =
  unzip3 (map2 (\x y -> (f32.f64 x + f32.u8 y, y + 1, y > 100)) xs ys)

-- ==
-- entry: bytes
-- random input { [1027]u8 } auto output
-- random input { [2049]u8 } auto output
entry bytes [n] (xs: [n]u8): [n]u8 = map (\x -> x * 3) xs

-- ==
-- entry: bools
-- random input { [1027]bool } auto output
entry bools [n] (xs: [n]bool): [n]bool = map (\x -> !x) xs

-- ==
-- entry: halves
-- random input { [1027]f16 } auto output
entry halves [n] (xs: [n]f16): [n]f16 = map (\x -> x * 3) xs

-- ==
-- entry: rows
-- random input { [31][64]f32 [64]f32 [31]f32} auto output
-- random input { [31][63]f32 [63]f32 [31]f32} auto output
entry rows [n][m] (xs: [n][m]f32) (ys: [m]f32) (zs: [n]f32): [n][m]f32 = map2 (\x z -> map2 (\a b -> a * b + z) x ys) xs zs

-- ==
-- entry: cut
-- random input { [31][64]f32 } auto output
-- random input { [31][66]f32 } auto output
entry cut [n][m] (xs: [n][m]f32) : [][]f32 = tabulate_2d (n - 2) (m - 2) (\i j -> xs[i+1, j] + xs[i, j+1] + xs[i + 2, j + 2])

-- ==
-- entry: sliced
-- random input { [31][64]f32 } auto output
-- random input { [31][67]f32 } auto output
-- random input { [31][68]f32 } auto output
entry sliced [n][m] (xs: [n][m]f32) : [][]f32 = map (map (+ 1)) xs[:, 4:]

-- ==
-- entry: odd
-- random input { [1027]f32 } auto output
entry odd [n] (xs: [n]f32) : []f32 = map (+ 1) xs[1:]

-- ==
-- entry: life
-- random input { [16][24]u8 } auto output
-- random input { [17][25]u8 } auto output
entry life [n][m] (u: [n][m]u8): [n][m]u8 =
    tabulate_2d n m (\i j ->
      let at (a: i64) (b: i64) = u[(i + a) % n, (j + b) % m]
      let around = at (-1) (-1) + at (-1) 0 + at (-1) 1 + at 0 (-1) + at 0 1 + at 1 (-1) + at 1 0 + at 1 1
      in u8.bool (around == 3 || (around == 2 && u[i, j] == 1)))

-- ==
-- entry: turned
-- random input { [33][64]f32 } auto output
-- random input { [64][31]f32 } auto output
entry turned [n][m] (xs: [n][m]f32) : [m][n]f32 = map (map (+ 1)) (transpose xs)

-- ==
-- entry: joined
-- random input { [33]f32 [100]f32 } auto output
-- random input { [36]f32 [100]f32 } auto output
entry joined [n][m] (xs: [n]f32) (ys: [m]f32) : []f32 = map (+ 1) xs ++ map (* 2) ys

-- ==
-- entry: placed
-- random input { [100]f32 } auto output
entry placed [n] (xs: *[n]f32) : [n]f32 = let xs = map (+ 1) xs in let xs[0:4] = map (+2) xs[4:8] in xs

-- ==
-- entry: picked
-- random input { [128]f32 } auto output
-- random input { [127]f32 } auto output
entry picked [n] (xs: [n]f32) : [n]f32 = tabulate n (\i -> if i % 3 == 0 then xs[i] else xs[n - 1 - i])

-- ==
-- entry: shifted
-- random input { 3i64 [1027]f32 } auto output
-- random input { 4i64 [1024]f32 } auto output
-- random input { 8i64 [1027]f32 } auto output
entry shifted [n] (k: i64) (xs: [n]f32) : []f32 = map (+ 1) xs[k:]

-- ==
-- entry: into
-- random input { 3i64 [1027]f32 } auto output
-- random input { 4i64 [1024]f32 } auto output
-- random input { 8i64 [1027]f32 } auto output
entry into [n] (k: i64) (xs: *[n]f32) : [n]f32 = xs with [k:] = map (\i -> f32.i64 i) (k..<n)

-- ==
-- entry: scanned
-- random input { 3i64 [1027]f32 } auto output
-- random input { 4i64 [1024]f32 } auto output
-- random input { 8i64 [1027]f32 } auto output
entry scanned [n] (k: i64) (xs: [n]f32) : []f32 = scan (+) 0 (map (+ 1) xs ++ map (+ 2) (copy xs[k:]))

-- Windows whose size is known only when the program runs.
-- ==
-- entry: windows
-- random input { [40][50]f32 [3][3]f32 } auto output
-- random input { [30][38]f32 [5][2]f32 } auto output
-- random input { [9][9]f32 [9][8]f32 } auto output
entry windows [n][m][k][l] (xss: [n][m]f32) (w: [k][l]f32) : [][]f32 =
  tabulate_2d (n - k + 1) (m - l + 1) (\i j -> f32.sum (flatten (tabulate_2d k l (\a b -> xss[i + a, j + b] * w[a, b]))))

-- ==
-- entry: roots
-- random input { [1000]f32 [1000]f64 [1000]f16 } auto output
entry roots [n] (xs: [n]f32) (ys: [n]f64) (zs: [n]f16) : [n](f32, f64, f16) =
  map3 (\x y z -> (f32.rsqrt (f32.abs x + 0.1), f64.rsqrt (f64.abs y + 0.1), f16.rsqrt (f16.abs z + 0.1))) xs ys zs
