-- Scatters that write an element more than once: the same value or row may go there often; of different values any may
-- stay, and emulation says so.

-- ==
-- entry: scalars
-- input { [1i64, 1i64, 9i64, 2i64] [5i32, 5i32, 1i32, 6i32] } output { [0i32, 5i32, 6i32, 0i32] }
-- no_c no_cuda no_interpreter input { [1i64, 1i64, 9i64, 2i64] [5i32, 4i32, 1i32, 6i32] }
-- error: scatter writes element \[1\] twice, with different values
entry scalars [n] (is: [n]i64) (xs: [n]i32): [4]i32 = scatter (replicate 4 0) is xs

-- ==
-- entry: rows
-- input { [1i64, 1i64, 2i64] [[5i32, 7i32], [5i32, 7i32], [6i32, 8i32]] }
-- output { [[0i32, 0i32], [5i32, 7i32], [6i32, 8i32], [0i32, 0i32]] }
-- no_c no_cuda no_interpreter input { [1i64, 1i64, 2i64] [[5i32, 7i32], [5i32, 9i32], [6i32, 8i32]] }
-- error: scatter writes element \[1, 1\] twice, with different values
entry rows [n][m] (is: [n]i64) (xss: [n][m]i32): [4][m]i32 = scatter (replicate 4 (replicate m 0)) is xss

-- Each row is made by one thread.
-- ==
-- entry: made_rows
-- input { 3i64 [2i64, 2i64, 0i64] [5i32, 5i32, 6i32] }
-- output { [[6i32, 12i32, 24i32], [0i32, 0i32, 0i32], [5i32, 10i32, 20i32]] }
-- no_c no_cuda no_interpreter input { 3i64 [2i64, 2i64, 0i64] [5i32, 4i32, 6i32] }
-- error: scatter writes element \[2, [0-2]\] twice, with different values
entry made_rows [n] (m: i64) (is: [n]i64) (xs: [n]i32): [3][m]i32 =
  let row x =
    #[sequential]
    (loop (ys, y) = (replicate m 0, x) for j < m do (ys with [j] = y, y * 2)).0
  in scatter (replicate 3 (replicate m 0)) is (map row xs)

-- ==
-- entry: plane
-- input { [1i64, 1i64] [0i64, 0i64] [3i32, 3i32] } output { [[0i32, 0i32], [3i32, 0i32]] }
-- no_c no_cuda no_interpreter input { [1i64, 1i64] [0i64, 0i64] [3i32, 2i32] }
-- error: scatter writes element \[1, 0\] twice, with different values
entry plane [n] (is: [n]i64) (js: [n]i64) (xs: [n]i32): [2][2]i32 =
  scatter_2d (replicate 2 (replicate 2 0)) (zip is js) xs

-- Whichever value stays is right.
-- ==
-- entry: contended
-- no_emulate input { 100000i64 }
entry contended (n: i64): [2]i64 = scatter [0, 0] (map (% 2) (iota n)) (iota n)
