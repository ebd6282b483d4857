-- Sizes that no array can have: negative ones, products that no i64 holds, and those of arrays that are never made.
-- ==
-- entry: rows
-- input { 4611686018427387904i64 4i64 } error: an array of shape \[4611686018427387904\]\[4\] has too many elements\.
-- input { -1i64 2i64 } error: replicate of size -1\.
-- input { 2i64 0i64 } output { empty([2][0]i32) }

-- ==
-- entry: flat_length
-- input { 4611686018427387904i64 4i64 } error: an array of shape \[4611686018427387904\]\[4\] has too many elements\.
-- input { -3i64 -2i64 } error: a map of size -3\.
-- input { 0i64 -2i64 } error: a map of size -2\.
-- input { 3i64 2i64 } output { 6i64 }

-- ==
-- entry: squares
-- input { 4294967296i64 4294967296i64 empty([0]i32) } error: an array of shape \[4294967296\]\[4294967296\] has too many
-- input { -2i64 -1i64 [7, 8] } error: Cannot unflatten array of shape \[2\] to array of shape \[-2\]\[-1\]\.
-- input { 2i64 1i64 [7, 8] } output { [[7], [8]] }
-- input { 4611686018427387904i64 0i64 empty([0]i32) } output { empty([4611686018427387904][0]i32) }

-- ==
-- entry: squares_in_kernel
-- input { [1i64, 4294967296i64] } error: \[4294967296\]
-- input { [1i64, 3i64] } output { [1i64, 9i64] }

-- A kernel, in the sense of images, that is larger than the image.
-- ==
-- entry: convolve
-- input { [[1, 2]] [[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 2, 3]] } error: a map of size -2\.
-- input { [[1, 2], [3, 4]] [[1, 1], [1, 1]] } output { [[10]] }

-- ==
-- entry: sum_below
-- input { -3i64 } error: a map of size -3\.
-- input { 3i64 } output { 3i64 }

-- ==
-- entry: sum_if
-- input { -3i64 } output { 1i64 }
-- input { 3i64 } output { 3i64 }

-- ==
-- entry: histogram
-- input { -3i64 } error: replicate of size -3\.
-- input { 3i64 } output { [1, 1, 0] }

-- ==
-- entry: sums sums_by_function
-- input { -3i64 [1i64, 2i64] } error: replicate of size -3\.
-- input { -3i64 empty([0]i64) } output { empty([0]i64) }
-- input { 2i64 [1i64, 2i64] } output { [2i64, 4i64] }

-- ==
-- entry: positive_sums
-- input { -3i64 [-1i64, 2i64] } error: replicate of size -3\.
-- input { -3i64 [-1i64, -2i64] } output { [0i64, 0i64] }

-- ==
-- entry: sums_in_loop
-- input { -3i64 1i64 [1i64] } error: replicate of size -3\.
-- input { -3i64 0i64 [1i64] } output { [1i64] }
-- input { 2i64 2i64 [1i64] } output { [9i64] }

-- ==
-- entry: lengths
-- input { [1i64, -2i64] } error: a map of size -2\.

-- An array of no index, and one that no thread makes.
-- ==
-- entry: last_but_one
-- input { empty([3][0]i64) } output { [0i64, 0i64, 0i64] }
-- input { [[5i64], [6i64]] } output { [0i64, 0i64] }
-- input { [[5i64, 7i64], [6i64, 8i64]] } output { [7i64, 8i64] }

-- ==
-- entry: first_of_large
-- input { 4611686018427387904i64 [1i64, 2i64] } output { [0i64, 0i64] }
-- input { -5i64 [1i64, 2i64] } output { [0i64, 0i64] }
-- input { 2i64 [1i64, 6i64] } output { [0i64, 12i64] }

-- ==
-- entry: row_slices
-- input { 2i64 1i64 [[1i64, 2i64, 3i64]] } error: Index \[2:1\] out of bounds for array of shape \[3\]\.
-- input { 2i64 1i64 empty([0][3]i64) } output { empty([0]i64) }

-- ==
-- entry: strided
-- input { -9223372036854775808i64 [1, 2, 3] } output { [3] }
-- input { 9223372036854775807i64 [1, 2, 3] } output { [1] }
-- input { -2i64 [1, 2, 3] } output { [3, 1] }
-- input { 0i64 [1, 2, 3] } error: Index \[0:3:0\] out of bounds for array of shape \[3\]\.

-- ==
-- entry: range
-- input { 0i64 -9223372036854775808i64 -5i64 } output { [0i64] }

entry rows (n: i64) (m: i64) = replicate n (replicate m 1i32)

entry flat_length (n: i64) (m: i64) = length (flatten (tabulate_2d n m (\i j -> i + j)))

entry squares [k] (n: i64) (m: i64) (xs: [k]i32) : [n][m]i32 = unflatten (xs :> [n * m]i32)

entry squares_in_kernel [k] (ns: [k]i64) : [k]i64 =
  map (\n -> if n < 1 then 0 else length (flatten (tabulate_2d n n (\i j -> i8.i64 (i + j))))) ns

entry convolve [h] [w] [kh] [kw] (xs: [h][w]i32) (ks: [kh][kw]i32) : [][]i32 =
  tabulate_2d (h - kh + 1) (w - kw + 1) (\i j ->
    i32.sum (flatten (tabulate_2d kh kw (\a b -> xs[i + a, j + b] * ks[a, b]))))

entry sum_below (n: i64) = i64.sum (tabulate n id)

-- What the branch knows of its size is not known after it.
entry sum_if (n: i64) : i64 =
  let a = if n > 0 then i64.sum (tabulate n id) else 0
  in if n < 0 then 1 else a

entry histogram (n: i64) = hist (+) 0i32 n [0, 1] [1, 1]

entry sums (n: i64) (xs: []i64) = map (\x -> i64.sum (replicate n x)) xs

def sum_of (n: i64) (x: i64) : i64 = i64.sum (replicate n x)

entry sums_by_function (n: i64) (xs: []i64) = map (sum_of n) xs

entry positive_sums (n: i64) (xs: []i64) = map (\x -> if x > 0 then i64.sum (replicate n x) else 0) xs

entry sums_in_loop (n: i64) (k: i64) (xs: []i64) =
  map (\x -> loop a = x for _i < k do a + i64.sum (replicate n a)) xs

entry lengths (ns: []i64) = map (\n -> length (tabulate n id)) ns

entry last_but_one [m] (xss: [][m]i64) =
  map (\xs -> if m < 2 then 0 else let ys = copy (reverse (tail xs)) in ys[0]) xss

entry first_of_large (n: i64) (xs: []i64) =
  map (\x -> if x < 5 then 0 else let ys = scan (+) 0 (replicate n x) in ys[n - 1]) xs

entry row_slices (i: i64) (j: i64) (xss: [][]i64) =
  map (\xs -> let ys = scan (+) 0 xs[i:j] in i64.sum (map (* 2) ys)) xss

entry strided (s: i64) (xs: []i32) = xs[::s]

entry range (a: i64) (b: i64) (c: i64) = a..b...c

-- A coercion that a call's sizes make impossible, in a branch that is not taken.
-- ==
-- entry: padded
-- input { [1, 2] } output { [1, 2, 0] }
entry padded (xs: [2]i32) : [3]i32 =
  let pad [n] (m: i64) (x: [n]i32) : [m]i32 = if n == m then x :> [m]i32 else x ++ replicate (m - n) 0 :> [m]i32
  in pad 3 xs
