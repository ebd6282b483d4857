-- Entries with sparse operands, for sparse.c.
#[sparse(A)]
entry smooth [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

-- What callers hand over in 16 bits.
#[sparse(A)] #[bf16(A, B)]
entry smooth_bf16 [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

-- The same matrix with other arrays of it.
#[sparse(A)]
entry spread [n][m] (A: [n][m]f32) (x: [n]f32): [m]f32 =
  map (\col -> f32.sum (map2 (*) col x)) (transpose A)

#[sparse(A, result)]
entry sample [n][m][k] (X: [n][k]f32) (A: [n][m]f32) (Y: [m][k]f32): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X

#[sparse(A)]
entry paths [n][m][b] (A: [n][m]u8) (B: [m][b]u8): [n][b]u8 =
  map (\row -> map (\col -> u8.sum (map2 (*) row col)) (transpose B)) A

-- Its matrix is known by columns alone.
#[sparse(A)]
entry down [n][m] (A: [n][m]f64) (x: [n]f64): [m]f64 =
  map (\col -> f64.sum (map2 (*) col x)) (transpose A)
