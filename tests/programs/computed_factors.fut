-- Products for matrix units whose factors are computed in each step: on GPUs while tiles are copied. Sizes are no multiples
-- of tiles, and what is computed of zeros is not zero.

-- Of one array.
-- ==
-- entry: exponentials
-- random input { [70][90]f16 [90][33]f16 } auto output
-- random input { [130][64]f16 [64][200]f16 } auto output
entry exponentials [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\x y -> f32.f16 (f16.exp x) * f32.f16 (1 - y)) row col)) (transpose B)) A

-- The larger of widened numbers, and of integers of 8 bits, are numbers that units widen.
-- ==
-- entry: larger from_bytes
-- random input { 2i8 [70][90]i8 [90][33]f16 } auto output
-- random input { -3i8 [128][64]i8 [64][136]f16 } auto output
entry larger [n][m][b] (z: i8) (A: [n][m]i8) (B: [m][b]f16): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\q y -> f32.i8 (q + z) * f32.max 0 (f32.f16 y)) row col)) (transpose B)) A
entry from_bytes [n][m][b] (z: i8) (A: [n][m]i8) (B: [m][b]f16): [n][b]f16 =
  map (\row -> map (\col -> f16.sum (map2 (\q y -> f16.i8 (q - z) * y) row col)) (transpose B)) A

-- Integers, in the layouts of either operand.
-- ==
-- entry: bytes bytes_tn
-- random input { [70][90]i8 [70][33]u8 } auto output
-- random input { [160][144]i8 [160][272]u8 } auto output
entry bytes_tn [n][m][b] (A: [m][n]i8) (B: [m][b]u8): [n][b]i32 =
  map (\row -> map (\col -> i32.sum (map2 (\x y -> i32.i8 (x - 3) * i32.u8 (y + 1)) row col)) (transpose B)) (transpose A)
entry bytes [n][m][b] (A: [m][n]i8) (B: [m][b]u8): [b][n]i32 =
  map (\col -> map (\row -> i32.sum (map2 (\x y -> i32.i8 (x * x) * i32.u8 y) row col)) (transpose A)) (transpose B)

-- Masks that are arrays.
-- ==
-- entry: masked masked_in_both
-- random input { [70][90]f16 [70][90]bool [90][33]f16 } auto output
-- random input { [136][64]f16 [136][64]bool [64][200]f16 } auto output
entry masked [n][m][b] (A: [n][m]f16) (mask: [n][m]bool) (B: [m][b]f16): [n][b]f32 =
  map2 (\row ms -> map (\col -> f32.sum (map3 (\x keep y -> (if keep then f32.f16 x else 1) * f32.f16 y) row ms col))
                       (transpose B)) A mask
entry masked_in_both [n][m][b] (A: [n][m]f16) (mask: [n][m]bool) (B: [m][b]f16): [b][n]f16 =
  tabulate b (\j -> tabulate n (\i ->
    f16.sum (tabulate m (\k -> (if mask[i, k] then A[i, k] else 2) * (if k % 2 == 0 then B[k, j] else 3)))))

-- A bias and a scale along the reduction, and a scale for each row.
-- ==
-- entry: normalised
-- random input { [70][90]f16 [90]f16 [90]f16 [70]f16 [90][33]f16 } auto output
-- random input { [136][64]f16 [64]f16 [64]f16 [136]f16 [64][200]f16 } auto output
entry normalised [n][m][b] (A: [n][m]f16) (mean: [m]f16) (scale: [m]f16) (of_row: [n]f16) (B: [m][b]f16): [n][b]f16 =
  map2 (\row r -> map (\col -> f16.sum (map4 (\x u s y -> ((x - u) * s + r) * y) row mean scale col))
                      (transpose B)) A of_row

-- Weights of 8 bits with a zero and a scale for each group of a row.
-- ==
-- entry: grouped
-- random input { [40][3][32]i8 [40][3]i8 [40][3]f16 [3][32][33]f16 } auto output
-- random input { [136][2][16]i8 [136][2]i8 [136][2]f16 [2][16][200]f16 } auto output
entry grouped [n][g][k][b] (Q: [n][g][k]i8) (zero: [n][g]i8) (scale: [n][g]f16) (B: [g][k][b]f16): [n][b]f16 =
  tabulate n (\i -> tabulate b (\j ->
    f16.sum (flatten (tabulate_2d g k (\p q -> f16.i8 (Q[i, p, q] - zero[i, p]) * scale[i, p] * B[p, q, j])))))

-- Batches, and products of f64 and of f32 as tf32.
-- ==
-- entry: batches
-- random input { [3][70][20]f16 [3][20]bool [3][20][33]f16 } auto output
entry batches [c][n][m][b] (A: [c][n][m]f16) (mask: [c][m]bool) (B: [c][m][b]f16): [c][n][b]f16 =
  map3 (\a ms bs ->
    map (\row -> map (\col -> f16.sum (map3 (\x keep y -> (if keep then x else 1) * y) row ms col)) (transpose bs)) a)
    A mask B

-- ==
-- entry: floats
-- random input { [70][90]f32 [90][70]i8 } auto output
-- random input { [130][64]f32 [64][200]i8 } auto output
#[f32_3xtf32]
entry floats [n][m][b] (A: [n][m]f32) (B: [m][b]i8): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\x y -> f32.max 0.5 x * f32.i8 y) row col)) (transpose B)) A

-- Scales for rows and columns multiply the sum.
-- ==
-- entry: scaled
-- random input { [70][90]i8 [70]f32 [90][33]f16 [33]f32 } auto output
-- random input { [136][64]i8 [136]f32 [64][200]f16 [200]f32 } auto output
entry scaled [n][m][b] (Q: [n][m]i8) (of_row: [n]f32) (B: [m][b]f16) (of_column: [b]f32): [n][b]f32 =
  tabulate n (\i -> tabulate b (\j ->
    f32.sum (tabulate m (\k -> of_row[i] * f32.i8 Q[i, k] * (of_column[j] * f32.f16 B[k, j])))))

-- What is made of a zero is infinite.
-- ==
-- entry: inverses
-- random input { [70][90]f16 [90][33]f16 } auto output
entry inverses [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\x y -> f32.f16 (1 / (x + x)) * f32.f16 y) row col)) (transpose B)) A
