-- Reductions, scans and filters of whole arrays; bench/reductions_gpu.py runs them beside torch.
entry sum [n] (xs: [n]f32): f32 = f32.sum xs
entry sum_i32 [n] (xs: [n]i32): i32 = i32.sum xs
entry argmax [n] (xs: [n]f32): i64 =
  let later (a, i) (b, j) = if a > b || (a == b && i < j) then (a, i) else (b, j)
  in (reduce_comm later (-f32.inf, i64.highest) (zip xs (iota n))).1
-- Functions a x + b, one after the other: the order matters.
def after ((a, b): (i32, i32)) ((c, d): (i32, i32)) = (a * c, b * c + d)
entry composed [n] (as: [n]i32) (bs: [n]i32): (i32, i32) = reduce after (1, 0) (zip as bs)
entry prefix_sums [n] (xs: [n]f32): [n]f32 = scan (+) 0 xs
entry prefix_sums_i32 [n] (xs: [n]i32): [n]i32 = scan (+) 0 xs
entry prefixes [n] (as: [n]i32) (bs: [n]i32): ([n]i32, [n]i32) = unzip (scan after (1, 0) (zip as bs))
entry positive [n] (xs: [n]i32): []i32 = filter (> 0) xs
entry row_sums [n][m] (xss: [n][m]f32): [n]f32 = map f32.sum xss
