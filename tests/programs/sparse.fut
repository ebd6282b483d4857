-- Operands that are sparse: what comes out is what comes out without the attribute.

#[sparse(A)]
entry spmm [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A

-- The other operand with its rows as columns, and a result that is transposed.
#[sparse(A)]
entry spmm_layouts [n][m][b] (A: [n][m]f32) (Bt: [b][m]f32): [b][n]f32 =
  transpose (map (\row -> map (\col -> f32.sum (map2 (*) row col)) Bt) A)

#[sparse(A)]
entry from_the_right [n][m][b] (B: [b][n]i64) (A: [n][m]i64): [b][m]i64 =
  map (\row -> map (\col -> i64.sum (map2 (*) row col)) (transpose A)) B

#[sparse(A)]
entry bias_and_activation [n][m][b] (A: [n][m]f32) (B: [m][b]f32) (bias: [b]f32): [n][b]f32 =
  map (\row -> map2 (\col c -> f32.max 0 (f32.sum (map2 (*) row col) + c)) (transpose B) bias) A

-- An absent element is no way.
#[sparse(A)]
entry shortest [n][m][b] (A: [n][m]i32) (B: [m][b]i32): [n][b]i32 =
  map (\row -> map (\col -> i32.minimum (map2 (\a x -> if a == 0 then i32.highest else a + x) row col))
                   (transpose B)) A

#[sparse(A, result)]
entry sampled [n][m][k] (A: [n][m]f64) (X: [n][k]f64) (Y: [k][m]f64): [n][m]f64 =
  map2 (\row x -> map2 (\a y -> a * f64.sum (map2 (*) x y)) row (transpose Y)) A X

-- Both: the sampled product is the sparse operand of the next.
#[sparse(A)]
entry attention [n][m][k][b] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32) (V: [m][b]f32): [n][b]f32 =
  let S = map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X
  in map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose V)) S

-- Two layers with one matrix.
#[sparse(A)]
entry layers [n][b][d] (A: [n][n]f32) (X: [n][b]f32) (W: [b][d]f32): [n][d]f32 =
  let mm [p][q][r] (P: [p][q]f32) (Q: [q][r]f32): [p][r]f32 =
    map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose Q)) P
  in mm A (map (map (f32.max 0)) (mm (mm A X) W))

#[sparse(A)]
entry largest [n][m] (A: [n][m]i32): i32 = i32.maximum (flatten A)

#[sparse(A)]
entry updated [n][m] (A: *[n][m]i32) (x: i32): [n][m]i32 =
  if n > 0 && m > 0 then A with [0, 0] = x else A

-- A sum over rows and columns at once, and a part of the matrix.
#[sparse(A)]
entry everything [n][m][b] (A: [n][m]i32) (B: [b][n][m]i32): [b]i32 =
  map (\Bk -> i32.sum (map2 (\x y -> x * y) (flatten A) (flatten Bk))) B

#[sparse(A)]
entry in_a_loop [n][b] (A: [n][n]i32) (X: [n][b]i32): [n][b]i32 =
  loop X for _i < 3 do map (\row -> map (\col -> i32.sum (map2 (*) row col) & 7) (transpose X)) A
