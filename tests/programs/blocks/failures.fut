-- What fails says the same on every backend, on the host and in kernels: the whole index, and the whole shape.
-- ==
-- entry: slice
-- input { [[1, 2, 3], [4, 5, 6]] 1i64 0i64 } error: Index \[0:2, 1:0\] out of bounds for array of shape \[2\]\[3\]\.
-- input { [[1, 2, 3], [4, 5, 6]] 1i64 4i64 } error: Index \[0:2, 1:4\] out of bounds for array of shape \[2\]\[3\]\.
-- input { [[1, 2, 3], [4, 5, 6]] 1i64 3i64 } output { [[2, 3], [5, 6]] }

-- ==
-- entry: row
-- input { [[1, 2, 3], [4, 5, 6]] 2i64 } error: Index \[2\] out of bounds for array of shape \[2\]\[3\]\.

-- ==
-- entry: slices_in_kernel
-- input { [[1, 2, 3], [4, 5, 6]] [0i64, 2i64] } error: Index \[1, 2:4\] out of bounds for array of shape \[2\]\[3\]\.
-- input { [[1, 2, 3], [4, 5, 6]] [0i64, 1i64] } output { [3, 11] }

-- ==
-- entry: every_second
-- input { [1, 2, 3] 5i64 } error: Index \[0:6:2\] out of bounds for array of shape \[3\]\.

-- ==
-- entry: divide divide_in_kernel
-- input { [7, 0] [2, 0] } error: division by zero
-- input { [7, 0] [2, 1] } output { [3, 0] }

-- Nothing goes on with what a kernel that failed has not written.
-- ==
-- entry: unchecked_after_failure
-- input { [0i64, 100i64] [1099511627776i64, 0i64] } error: Index \[100\] out of bounds for array of shape \[2\]\.
-- input { [1i64, 1i64] [1099511627776i64, 0i64] } output { 2199023255552i64 }

-- Nor with it where a kernel may fail itself, or as a number of rounds that never ends.
-- ==
-- entry: fails_behind_failure
-- input { [0i64, 100i64] [1i64, 0i64] } error: Index \[100\] out of bounds for array of shape \[2\]\.
-- input { [0i64, 1i64] [1i64, 0i64] } output { 5i64 }

-- ==
-- entry: rounds_after_failure
-- input { [0i64, 100i64] [1i64, 0i64] } error: Index \[100\] out of bounds for array of shape \[2\]\.
-- input { [0i64, 1i64] [1i64, 0i64] } output { 2i64 }

entry slice [n] [m] (as: [n][m]i32) (i: i64) (j: i64) : [n][]i32 = as[0:n, i:j]

entry row [n] [m] (as: [n][m]i32) (i: i64) : [m]i32 = as[i]

entry slices_in_kernel [n] [m] (as: [n][m]i32) (starts: [n]i64) : [n]i32 =
  map2 (\i s -> i32.sum as[i, s:s + 2]) (iota n) starts

entry every_second [n] (as: [n]i32) (k: i64) : []i32 = as[0:k:2]

entry divide [n] (xs: [n]i32) (ys: [n]i32) : [n]i32 =
  loop zs = replicate n 0 for i < n do zs with [i] = xs[i] / ys[i]

entry divide_in_kernel [n] (xs: [n]i32) (ys: [n]i32) : [n]i32 = map2 (/) xs ys

-- An assert whose value is not used is not checked; one whose value is, is.
-- ==
-- entry: unused_assert
-- input { 3 } output { 4 }
-- input { 0 } output { 1 }
-- input { -1 } error: Assertion is false: x >= 0
entry unused_assert (x: i32) : i32 =
  let _ = if x == 3 then () else assert (x > 0) ()
  let y = assert (x >= 0) (x + 1)
  in y

entry unchecked_after_failure [n] [m] (is: [n]i64) (xs: [m]i64) : i64 =
  let js = scan (+) 0 (map (\i -> xs[i]) is)
  in i64.sum (map (\j -> #[unsafe] xs[j]) js)

entry fails_behind_failure [n] [m] (is: [n]i64) (xs: [m]i64) : i64 =
  let js = scan (+) 0 (map (\i -> xs[i]) is)
  in i64.sum (map2 (\i j -> (#[unsafe] xs[1 - j]) + xs[i * j] + 1) is js)

entry rounds_after_failure [n] [m] (is: [n]i64) (xs: [m]i64) : i64 =
  let js = scan (+) 0 (map (\i -> xs[i]) is)
  in i64.sum (map (\j -> loop k = j while k != 1 do if k < 0 then k else k / 2) js)
