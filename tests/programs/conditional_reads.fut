-- Contractions whose operands are read under conditions, where arrays of indices say, or once for all steps.
entry convolution [c][h][w][o] (I: [c][h][w]f32) (W: [o][c][3][3]f32): [o][h][w]f32 =
  tabulate_3d o h w (\f i j ->
    f32.sum (flatten_3d (tabulate_3d c 3 3 (\k di dj ->
      let y = i + di - 1
      let x = j + dj - 1
      in (if y >= 0 && y < h && x >= 0 && x < w then I[k, y, x] else 0) * W[f, k, di, dj]))))

-- Channels innermost: the condition is the same along them. Half as many results, and another value outside.
entry channels_last [b][h][w][c][o] (I: [b][h][w][c]f16) (W: [o][3][3][c]f16): [b][o][h][w]f32 =
  tabulate b (\n -> tabulate_3d o h w (\f i j ->
    f32.sum (map (\di -> f32.sum (map (\dj -> f32.sum (map (\k ->
      let y = 2 * i + di - 1
      let x = 2 * j + dj - 1
      let outside = y < 0 || y >= h || x < 0 || x >= w
      in (if outside then 0 else f32.f16 I[n, y, x, k]) * f32.f16 W[f, di, dj, k]) (iota c))) (iota 3))) (iota 3))))

entry dilated_max [h][w][o] (I: [h][w]i32) (W: [o][3][3]i32): [o][h][w]i32 =
  tabulate_3d o h w (\f i j ->
    i32.maximum (flatten (tabulate_2d 3 3 (\di dj ->
      let y = i + 2 * (di - 1)
      let x = j + 2 * (dj - 1)
      in (if 0 <= y && y < h && 0 <= x && x < w then I[y, x] else i32.lowest) `i32.max` W[f, di, dj]))))

entry triangle [n][m] (A: [n][n]f64) (B: [n][m]f64): [n][m]f64 =
  tabulate_2d n m (\i j -> f64.sum (tabulate n (\k -> (if k <= i then A[i, k] else 0) * B[k, j])))

-- A branch that does more than to read.
entry shifted [n][m][q] (A: [n][q]i64) (B: [m][q]i64): [n][m]i64 =
  tabulate_2d n m (\i j -> i64.sum (tabulate q (\k ->
    A[i, k] * (if k + 2 < q then B[j, k + 2] - B[j, k] else 3 * B[j, k]))))

entry embedding [n][m][q] (v: i64) (A: [v + 1][q]f32) (B: [m][q]f32) (I: [n]i64): [n][m]f32 =
  let I = map (\i -> i % (v + 1)) I
  in map (\i -> map (\b -> f32.sum (map2 (*) A[i] b)) B) I

-- Indices of 32 bits, which are not checked.
entry narrow [n][m][q] (v: i64) (A: [v + 1][q]f32) (B: [m][q]f32) (I: [n]i32): [n][m]f32 =
  let I = map (\i -> i % i32.i64 (v + 1)) I
  in map (\i -> map (\b -> f32.sum (map2 (*) (#[unsafe] A[i]) b)) B) I

-- Both operands, one along the depth.
entry gathered [n][m][q] (v: i64) (A: [v + 1][q]f64) (B: [q][m]f64) (I: [n]i32) (J: [q]i64): [n][m]f64 =
  let I = map (\i -> i % i32.i64 (v + 1)) I
  let J = map (\j -> if q == 0 then j else j % q) J
  in tabulate_2d n m (\i j -> f64.sum (tabulate q (\k -> A[i64.i32 I[i], k] * B[J[k], j])))

entry once [n][m][q] (A: [n][q]f32) (B: [m][q]f32) (S: [n][m]f32): [n][m]f32 =
  map2 (\a ss -> map2 (\b s -> f32.sum (map2 (\x y -> f32.max (x * y) s) a b)) B ss) A S

-- Rows of S where I says, and nothing where it says nothing: read once, too.
entry once_of_rows [n][m][q] (A: [n][q]i32) (B: [m][q]i32) (S: [n]i32) (I: [m]i64): [n][m]i32 =
  let I = map (\i -> if n == 0 then i else i % n) I
  in tabulate_2d n m (\i j -> i32.sum (tabulate q (\k ->
       i32.max (A[i, k] * B[j, k]) (if i > 0 then S[i - 1] else 5) + S[I[j]])))
