-- Products of floats of 16 bits that are summed in f32: on GPUs with matrix units they are theirs.

-- ==
-- entry: wide_nn
-- random input { [70][90]f32 [90][33]f32 } auto output
-- random input { [130][64]f32 [64][200]f32 } auto output
#[bf16(A, B)]
entry wide_nn [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

-- ==
-- entry: wide_nt
-- random input { [70][90]f16 [33][90]f16 } auto output
-- random input { [130][64]f16 [200][64]f16 } auto output
entry wide_nt [n][m][b] (A: [n][m]f16) (B: [b][m]f16): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\x y -> f32.f16 x * f32.f16 y) row col)) B) A

-- ==
-- entry: wide_tn
-- random input { [90][70]f16 [90][33]f16 } auto output
-- random input { [64][136]f16 [64][200]f16 } auto output
entry wide_tn [n][m][b] (A: [m][n]f16) (B: [m][b]f16): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\x y -> f32.f16 x * f32.f16 y) row col)) (transpose B)) (transpose A)

-- ==
-- entry: wide_tensor
-- random input { [7][20][3][10]f16 [10][9][20][5]f16 } auto output
entry wide_tensor [a][c][b][d][e][f] (A: [a][c][b][d]f16) (B: [d][e][c][f]f16): [a][f][b][e]f32 =
  tabulate a (\i -> tabulate f (\l -> tabulate b (\j -> tabulate e (\k ->
    f32.sum (flatten (tabulate_2d c d (\p q -> f32.f16 A[i, p, j, q] * f32.f16 B[q, k, p, l])))))))

-- Products of f64, and sums of f16 in their own type, which are kept in f32.
-- ==
-- entry: doubles_nn doubles_nt
-- random input { [70][90]f64 [90][70]f64 } auto output
-- random input { [130][64]f64 [64][200]f64 } auto output
entry doubles_nn [n][m][b] (A: [n][m]f64) (B: [m][b]f64): [n][b]f64 =
  map (\row -> map (\col -> f64.sum (map2 (*) row col)) (transpose B)) A
entry doubles_nt [n][m][b] (A: [n][m]f64) (B: [m][b]f64): [b][n]f64 =
  map (\col -> map (\row -> f64.sum (map2 (*) row col)) A) (transpose B)

-- ==
-- entry: narrow
-- random input { [70][90]f16 [90][33]f16 [70][33]f16 } auto output
entry narrow [n][m][b] (A: [n][m]f16) (B: [m][b]f16) (C: [n][b]f16): [n][b]f16 =
  map2 (\row cs -> map2 (\col c -> 2 * f16.sum (map2 (*) row col) + c) (transpose B) cs) A C

-- Products of bytes with sums of 32 bits, in all layouts and of either sign: each bit is the same.
-- ==
-- entry: bytes_nn
-- random input { [70][90]i8 [90][33]i8 } auto output
-- random input { [160][144]i8 [144][272]i8 } auto output
entry bytes_nn [n][m][b] (A: [n][m]i8) (B: [m][b]i8): [n][b]i32 =
  map (\row -> map (\col -> i32.sum (map2 (\x y -> i32.i8 x * i32.i8 y) row col)) (transpose B)) A

-- ==
-- entry: bytes_nt
-- random input { [70][90]i8 [33][90]u8 } auto output
-- random input { [160][144]i8 [272][144]u8 } auto output
entry bytes_nt [n][m][b] (A: [n][m]i8) (B: [b][m]u8): [n][b]i32 =
  map (\row -> map (\col -> i32.sum (map2 (\x y -> i32.i8 x * i32.u8 y) row col)) B) A

-- ==
-- entry: bytes_tn
-- random input { [90][70]u8 [90][33]u8 } auto output
-- random input { [144][160]u8 [144][272]u8 } auto output
entry bytes_tn [n][m][b] (A: [m][n]u8) (B: [m][b]u8): [n][b]u32 =
  map (\row -> map (\col -> u32.sum (map2 (\x y -> u32.u8 x * u32.u8 y) row col)) (transpose B)) (transpose A)

-- With a scale and an offset of each column after the sum.
-- ==
-- entry: bytes_tensor
-- random input { [7][20][3][16]i8 [16][9][20][5]u8 [5]f32 } auto output
entry bytes_tensor [a][c][b][d][e][f] (A: [a][c][b][d]i8) (B: [d][e][c][f]u8) (s: [f]f32): [a][e][b][f]f32 =
  tabulate a (\i -> tabulate e (\k -> tabulate b (\j -> tabulate f (\l ->
    0.5 + s[l] * f32.i32 (i32.sum (flatten (tabulate_2d c d (\p q -> i32.i8 A[i, p, j, q] * i32.u8 B[q, k, p, l]))))))))

-- With a scale for each element of the result, out of an array of another shape.
-- ==
-- entry: scales_of_another_shape
-- random input { [70][40]f32 [40][24]f16 [24][70]f16 } auto output
-- random input { [2][130]f32 [130][8]f16 [8][2]f16 } auto output
entry scales_of_another_shape [n][m][k] (s: [n][m]f32) (X: [m][k]f16) (Y: [k][n]f16): [m][n]f32 =
  let t = unflatten (flatten s :> [m * n]f32)
  in map2 (\xs ts -> map2 (\ys t -> f32.sum (map2 (\x y -> t * f32.f16 x * f32.f16 y) xs ys)) (transpose Y) ts) X t

-- Without the scale of each column both factors vary along the rows alone.
-- ==
-- entry: scales_alone_vary
-- random input { [70]f32 [40][24]f16 [40][24]f16 } auto output
entry scales_alone_vary [b][a][k] (s: [b]f32) (X: [a][k]f16) (Y: [a][k]f16): [a][b]f32 =
  map2 (\xs ys -> map (\t -> f32.sum (map2 (\x y -> t * f32.f16 x * f32.f16 y) xs ys)) s) X Y

-- Products of f32 by three of tf32, and by one.
-- ==
-- entry: three_nn
-- random input { [70][90]f32 [90][33]f32 } auto output
-- random input { [130][64]f32 [64][200]f32 } auto output
#[f32_3xtf32]
entry three_nn [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

-- ==
-- entry: three_tn
-- random input { [91][70]f32 [91][33]f32 [70]f32 } auto output
-- random input { [64][136]f32 [64][200]f32 [136]f32 } auto output
#[f32_3xtf32]
entry three_tn [n][m][b] (A: [m][n]f32) (B: [m][b]f32) (s: [n]f32): [n][b]f32 =
  map2 (\row c -> map (\col -> c + f32.sum (map2 (*) row col)) (transpose B)) (transpose A) s

-- By a definition; the entry's other product stays as it is.
-- ==
-- entry: one_nt
-- random input { [70][90]f32 [33][90]f32 } auto output
-- random input { [130][64]f32 [200][64]f32 } auto output
#[tf32]
def short_product [n][m][b] (A: [n][m]f32) (B: [b][m]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) B) A
entry one_nt [n][m][b] (A: [n][m]f32) (B: [b][m]f32): ([n][b]f32, [n][b]f32) =
  (short_product A B, map (\row -> map (\col -> f32.sum (map2 (\x y -> x * y + x) row col)) B) A)

-- ==
-- entry: one_tensor
-- random input { [7][20][3][10]f32 [10][9][20][5]f32 } auto output
#[tf32]
entry one_tensor [a][c][b][d][e][f] (A: [a][c][b][d]f32) (B: [d][e][c][f]f32): [a][f][b][e]f32 =
  tabulate a (\i -> tabulate f (\l -> tabulate b (\j -> tabulate e (\k ->
    f32.sum (flatten (tabulate_2d c d (\p q -> A[i, p, j, q] * B[q, k, p, l])))))))
