-- Arrays that entries keep as bf16: callers' f32 are rounded to even, and read as f32 wherever the program reads them.

-- Ties go to the even neighbour; what is nearer to infinity than to the largest number becomes that.
-- ==
-- entry: rounded
-- input { [257f32, 259f32, -257f32, 258.5f32] } output { [256f32, 260f32, -256f32, 258f32] }
-- input { [3.3895e38f32, 3.4e38f32, f32.inf, -f32.inf, f32.nan] }
-- output { [3.3895e38f32, f32.inf, f32.inf, -f32.inf, f32.nan] }
#[bf16(x)]
entry rounded (x: []f32): []f32 = map (\a -> a) x

-- Rows, columns, elements, and arrays that are made all the same.
-- ==
-- entry: read_everywhere
-- random input { [40][40]f32 3i64 } auto output
#[bf16(A)]
entry read_everywhere [n] (A: [n][n]f32) (k: i64): ([n]f32, f32, [n][n]f32, [n][n]f32, []f32) =
  let inside = 0 <= k && k < n
  in (map f32.sum A, if inside then A[k, 0] else 0, transpose A,
      loop A = copy A for i < i64.min 3 n do A with [i, i] = 1, if inside then concat A[0] A[k] else [])

-- An entry that calls another one hands over what it has.
-- ==
-- entry: called
-- input { [[257f32, 1f32]] } output { [258f32] }
#[bf16(A)]
entry sums [n][m] (A: [n][m]f32): [n]f32 = map f32.sum A
entry called [n][m] (A: [n][m]f32): [n]f32 = sums A

-- ==
-- entry: dot
-- random input { [100]f32 [100][30]f32 } auto output
#[bf16(x, Y)]
entry dot [m][b] (x: [m]f32) (Y: [m][b]f32): [b]f32 = map (\y -> f32.sum (map2 (*) x y)) (transpose Y)

-- ==
-- entry: product
-- random input { [70][90]f32 [90][33]f32 } auto output
#[bf16(A, B)]
entry product [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

-- One operand as it is.
-- ==
-- entry: mixed
-- random input { [20][90]f32 [90][33]f32 } auto output
#[bf16(A)]
entry mixed [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

-- ==
-- entry: sparse_product
-- random input { [40][40]f32 [40][8]f32 } auto output
#[sparse(A)] #[bf16(A, B)]
entry sparse_product [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

-- ==
-- entry: sampled
-- random input { [40][30]f32 [40][8]f32 [30][8]f32 } auto output
#[sparse(A, result)] #[bf16(A, X, Y)]
entry sampled [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X
