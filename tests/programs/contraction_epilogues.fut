-- Code behind tiled contractions, which reads along the rows alone, along the columns alone and along both.

-- ==
-- entry: mm
-- random input { [70][33]f32 [33][90]f32 [90]f32 } auto output
-- random input { [1][5]f32 [5][300]f32 [300]f32 } auto output
-- random input { [300][64]f32 [64][3]f32 [3]f32 } auto output

-- ==
-- entry: mm2
-- random input { [70][33]f32 [33][90]f32 [90]f32 [70]f32 [70][90]f32 } auto output
-- random input { [129][16]f32 [16][257]f32 [257]f32 [129]f32 [129][257]f32 } auto output

-- ==
-- entry: mmh
-- random input { [70][40]f16 [40][96]f16 [96]f16 } auto output
-- random input { [130][33]f16 [33][65]f16 [65]f16 } auto output

-- ==
-- entry: mmd
-- random input { [70][40]f64 [40][96]f64 [96]f64 [70]f64 } auto output

-- ==
-- entry: added
-- random input { 2f32 3f32 [70][33]f32 [33][90]f32 [70][90]f32 } auto output
-- random input { 2f32 3f32 [131][20]f32 [20][64]f32 [131][64]f32 } auto output

-- ==
-- entry: added_across
-- random input { [70][33]f32 [33][90]f32 [90][70]f32 [70][90]f32 } auto output
-- random input { [64][16]f32 [16][128]f32 [128][64]f32 [64][128]f32 } auto output

-- ==
-- entry: added_half
-- random input { [70][40]f16 [40][96]f16 [70][96]f16 [96]f16 } auto output
-- random input { [130][33]f16 [33][65]f16 [130][65]f16 [65]f16 } auto output

-- ==
-- entry: added_half_across
-- random input { [70][40]f16 [96][40]f16 [70][96]f16 } auto output
-- random input { [130][33]f16 [65][33]f16 [130][65]f16 } auto output

-- ==
-- entry: added_double
-- random input { [70][40]f64 [40][96]f64 [70][96]f64 [70]f64 } auto output
-- random input { [33][5]f64 [5][130]f64 [33][130]f64 [33]f64 } auto output

-- ==
-- entry: added_batches
-- random input { [3][20][33]f32 [3][33][70]f32 [3][20][70]f32 [20][70]f32 } auto output

-- ==
-- entry: added_ranks
-- random input { [9][7][20]f32 [20][6][8]f32 [9][6][7][8]f32 [8]f32 } auto output

-- ==
-- entry: two_results
-- random input { [70][33]f32 [33][90]f32 [70][90]f32 } auto output

entry mm [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (bias: [m]f32) : [n][m]f32 =
  map (\a -> map2 (\b s -> s + f32.sum (map2 (*) a b)) (transpose B) bias) A
entry mm2 [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (bias: [m]f32) (r: [n]f32) (C: [n][m]f32) : [n][m]f32 =
  map3 (\a r c -> map3 (\b s c -> f32.max 0 (r * (s + f32.sum (map2 (*) a b))) + c) (transpose B) bias c) A r C
entry mmh [n][k][m] (A: [n][k]f16) (B: [k][m]f16) (bias: [m]f16) : [n][m]f16 =
  map (\a -> map2 (\b s -> s + f16.sum (map2 (*) a b)) (transpose B) bias) A
entry mmd [n][k][m] (A: [n][k]f64) (B: [k][m]f64) (bias: [m]f64) (r: [n]f64): [n][m]f64 =
  map2 (\a r -> map2 (\b s -> r * (s + f64.sum (map2 (*) a b))) (transpose B) bias) A r
entry added [n][k][m] (alpha: f32) (beta: f32) (A: [n][k]f32) (B: [k][m]f32) (C: [n][m]f32) : [n][m]f32 =
  map2 (\a c -> map2 (\b c -> alpha * f32.sum (map2 (*) a b) + beta * c) (transpose B) c) A C
entry added_across [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (C: [m][n]f32) (D: [n][m]f32) : [n][m]f32 =
  map3 (\a c d -> map3 (\b c d -> d * f32.sum (map2 (*) a b) + c) (transpose B) c d) A (transpose C) D
entry added_half [n][k][m] (A: [n][k]f16) (B: [k][m]f16) (C: [n][m]f16) (bias: [m]f16) : [n][m]f16 =
  map2 (\a c -> map3 (\b c s -> f16.max 0 (s + f16.sum (map2 (*) a b)) + c) (transpose B) c bias) A C
entry added_half_across [n][k][m] (A: [n][k]f16) (B: [m][k]f16) (C: [n][m]f16) : [m][n]f32 =
  transpose (map2 (\a c -> map2 (\b c -> f32.sum (map2 (\x y -> f32.f16 x * f32.f16 y) a b) + f32.f16 c) B c) A C)
entry added_double [n][k][m] (A: [n][k]f64) (B: [k][m]f64) (C: [n][m]f64) (r: [n]f64) : [n][m]f64 =
  map3 (\a c r -> map2 (\b c -> if c > 0.5 then r * f64.sum (map2 (*) a b) else c) (transpose B) c) A C r
entry added_batches [t][n][k][m] (A: [t][n][k]f32) (B: [t][k][m]f32) (C: [t][n][m]f32) (D: [n][m]f32) : [t][n][m]f32 =
  map3 (\A B C -> map3 (\a c d -> map3 (\b c d -> f32.sum (map2 (*) a b) + c * d) (transpose B) c d) A C D) A B C
entry added_ranks [p][q][k][r][s] (A: [p][q][k]f32) (B: [k][r][s]f32) (C: [p][r][q][s]f32) (b: [s]f32) : [p][r][q][s]f32 =
  tabulate p (\i -> tabulate r (\x -> tabulate q (\j -> tabulate s (\y ->
    f32.sum (tabulate k (\l -> A[i, j, l] * B[l, x, y])) + b[y] * C[i, x, j, y]))))
entry two_results [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (C: [n][m]f32) : ([n][m]f32, [n][m]bool) =
  map2 (\a c -> map2 (\b c -> let s = c + f32.sum (map2 (*) a b) in (s, s > c)) (transpose B) c |> unzip) A C |> unzip

-- Of sizes that are known.
-- ==
-- entry: known_sizes
-- random input { [70][33]f32 [33][90]f32 [70][90]f32 [90]f32 } auto output
entry known_sizes (A: [70][33]f32) (B: [33][90]f32) (C: [70][90]f32) (d: [90]f32): [70][90]f32 =
  tabulate_2d 70 90 (\i j -> d[j] + 2 * C[i, j] + 3 * f32.sum (tabulate 33 (\q -> A[i, q] * B[q, j])))

-- ==
-- entry: known_sizes_of_halves
-- random input { [70][33]f16 [33][90]f16 [90]f32 } auto output
entry known_sizes_of_halves (A: [70][33]f16) (B: [33][90]f16) (d: [90]f32): [70][90]f32 =
  tabulate_2d 70 90 (\i j ->
    (if j + 1 < 90 then d[j + 1] else d[0]) + d[j] + f32.sum (tabulate 33 (\q -> f32.f16 A[i, q] * f32.f16 B[q, j])))
