-- Histograms in two levels: bins that fit a block's memory or take rounds, indices out of bounds, segments, operators
-- with and without an atomic instruction. Sizes and numbers are such that both branches of the host are taken.

entry bins_as_many [n] [k] (like: [k]i32) (is: [n]i64): [k]i32 =
  hist (+) 0 k is (replicate n 1) |> map2 (+) like

entry outside [n] (is: [n]i64): [6]i64 = hist (+) 0 6 (map (\i -> 3 * i - 4) is) (replicate n 1)

entry onto_others [n] [k] (h: *[k]i32) (is: [n]i64) (xs: [n]i32): [k]i32 =
  reduce_by_index h i32.max i32.lowest is xs

-- One, two and eight bytes; what no instruction folds.
entry narrow [n] (is: [n]i64) (xs: [n]i8): ([7]i8, [1]i16, [3]i64) =
  (hist (*) 1 7 is xs, hist i16.min i16.highest 1 (map (* 0) is) (map i16.i8 xs), hist (\a b -> a * b) 1 3 is (map i64.i8 xs))

entry sums_and_counts [n] [k] (like: [k]i32) (is: [n]i64) (xs: [n]f32): ([k]f32, [k]i32) =
  let add (a: f32, b: i32) (c, d) = (a + c, b + d)
  in unzip (hist add (0, 0) k is (zip xs (replicate n (1 + i32.i64 (length like) - i32.i64 k))))

entry all_or_none [n] (is: [n]i64) (bs: [n]bool): ([4]bool, [4]bool) =
  (hist (&&) true 4 is bs, hist (||) false 4 is bs)

-- Both dims of the indices, and of the bins.
entry two_dims [m][n] (is: [m][n]i64): [3][2]i32 =
  let at = flatten (map (map (\i -> (i % 5 - 1, i % 3))) is)
  in reduce_by_index_2d (replicate 3 (replicate 2 0)) (+) 0 at (replicate (m * n) 1)

entry each_row [m][n][k] (like: [k]i32) (iss: [m][n]i64): [m][k]i32 =
  map (\is -> map2 (+) like (hist (+) 0 k is (map i32.i64 is))) iss

-- What is counted can fail: a map of its own.
entry quotients [n] (is: [n]i64) (ds: [n]i64): [4]i32 =
  hist (+) 0 4 (map2 (\i d -> i / (1 + d * d)) is ds) (replicate n 1)

entry rounds_of_a_loop [n] (is: [n]i64): [4]i32 =
  loop h = replicate 4 0 for r < 3 do reduce_by_index h (+) 0 (map (\i -> (i + r) % 4) is) (replicate n 1)

-- Several updates by a thread.
entry in_a_thread [m][n] (iss: [m][n]i64): [m]i32 =
  map (\is -> let h = loop h = replicate 5 0 for i in is do
                        let h = h with [i64.abs i % 5] = h[i64.abs i % 5] + 1
                        in reduce_by_index h (+) 0 [i % 5, 1, 1] [1, 2, 3]
              in i32.sum (map2 (*) h [1, 2, 3, 4, 5])) iss
