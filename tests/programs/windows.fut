-- Folds of small windows: of one dim, two and three, several at once, of the largest with its place; and where rows are
-- not as many as threads take at once.

entry sums_3 [n][m] (xss: [n][m]i32) (w: [3][3]i32): [][]i32 =
  tabulate_2d (i64.max 0 (n - 2)) (i64.max 0 (m - 2)) (\i j ->
    i32.sum (flatten (tabulate_2d 3 3 (\a b -> #[unsafe] xss[i + a, j + b] * w[a, b]))))

-- Every second row, and rows of windows alone.
entry strided [n][m] (xss: [n][m]i32): [][]i32 =
  tabulate_2d (i64.max 0 (n - 4)) (m / 2) (\i j -> i32.sum (tabulate 5 (\a -> #[unsafe] xss[i + a, 2 * j])))

-- A window of each of several matrices, by an operator that does not commute.
entry lines [h][n][m] (xsss: [h][n][m]i32) (w: [2][2]i32): [][][](i32, i32) =
  tabulate_3d h (i64.max 0 (n - 1)) (i64.max 0 (m - 1)) (\e i j ->
    reduce (\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0)
           (flatten (tabulate_2d 2 2 (\a b -> #[unsafe] (w[a, b], xsss[e, i + a, j + b])))))

-- Two windows of one index, and what stands at it.
entry both [n][m] (xss: [n][m]i32): [][]i32 =
  tabulate_2d (i64.max 0 (n - 2)) m (\i j ->
    let most = i32.maximum (tabulate 3 (\a -> #[unsafe] xss[i + a, j]))
    let least = i32.minimum (tabulate 3 (\a -> #[unsafe] xss[i + a, j]))
    in #[unsafe] 2 * xss[i + 1, j] - most - least)

-- Sizes that are known when the program runs, and what is made of the folds.
entry of_any_size [n][m][k] (xss: [n][m]i32) (w: [k][k]i32): [][]i32 =
  tabulate_2d (i64.max 0 (n - k)) (i64.max 0 (m - k)) (\i j ->
    let sum = i32.sum (flatten (tabulate_2d k k (\a b -> #[unsafe] xss[i + a, j + b] * w[a, b])))
    in #[unsafe] sum - xss[i, j] * i32.i64 i)

entry lines_of_any_size [h][n][m][k] (xsss: [h][n][m]i32) (w: [k]i32): [][][](i32, i32) =
  tabulate_3d h (i64.max 0 (n - k)) m (\e i j ->
    let (p, q) = reduce (\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0)
                        (tabulate k (\a -> #[unsafe] (w[a], xsss[e, i + a, j])))
    in (p + i32.i64 i, q))

-- Folds that start with what their thread computes.
entry starts [n] [m] (xss: [n][m]i32) (k: i64): [][]bool =
  let w = i64.min (k % 4) n
  in tabulate_2d (n - w) m (\i j -> reduce (||) (i == j) (tabulate w (\a -> #[unsafe] xss[i + a, j] > 3)))
entry most_from [n] [m] (xss: [n][m]i32) (k: i64): [][]i32 =
  let w = i64.min (k % 4) n
  in tabulate_2d (n - w) m (\i j -> let x = xss[i, j] + 1
                                    in reduce i32.max x (tabulate w (\a -> #[unsafe] xss[i + a, j])))
