-- Bounds and sizes are numbers of 64 bits that wrap: a size is what they come to, not what its polynomial would be over
-- the integers, and no quotient or proof takes the one for the other.

-- ==
-- entry: strided
-- input { 9223372036854775807i64 [1, 2, 3] } output { [1] [3, 1] }

-- ==
-- entry: ranges
-- input { 9223372036854775807i64 } output { [0i64, 2i64] [3i64, 1i64] [1i64, 4i64] }

-- ==
-- entry: made
-- input { 4611686018427387904i64 3i64 } output { [0i64, 1i64, 2i64] [7, 7, 7] [0i64, 2i64, 4i64] }

-- ==
-- entry: reshaped
-- input { 4611686018427387904i64 [1, 2, 3, 4, 5, 6] } output { [[1, 2, 3], [4, 5, 6]] [1, 2, 3, 4, 5, 6] }

-- 3 * p is 1.
-- ==
-- entry: coerced
-- input { -6148914691236517205i64 [7] } output { [7] }

-- ==
-- entry: halves
-- input { [1, 2, 3, 4, 5] [4611686018427387904i64, 0i64, -4611686018427387904i64] } output { [9, 9, 9] }

-- Rows of which the size may wrap: their size is known outside of the map that makes them.
-- ==
-- entry: rows
-- input { 4611686018427387904i64 2i64 } output { [[0i64, 0i64, 0i64], [0i64, 1i64, 2i64]] }

-- ==
-- entry: parameter
-- input { 4611686018427387904i64 [1, 2, 3] } output { [1, 3] }
-- input { 4611686018427387904i64 [1, 2] } error: \[2\]

-- A range ends where its end is, not so far from its start.
-- ==
-- entry: over_the_end
-- input { 9223372036854775806i64 } output { [9223372036854775806i64] }
-- input { 9223372036854775807i64 } error: is invalid

-- ==
-- entry: up_to_the_highest
-- input { 4611686018427387904i64 } output { [0i64, 4611686018427387904i64] }

-- A check of a product is made where the product may wrap.
-- ==
-- entry: product_of_sizes
-- no_interpreter input { 4294967296i64 2147483648i64 } error: is invalid
-- no_interpreter input { 4294967296i64 4294967296i64 } output { 0i64 }

-- ==
-- entry: quotient_of_sizes
-- no_interpreter input { 2147483648i64 2147483648i64 } output { 0i64 }

-- ==
-- entry: positive_multiple
-- input { 2305843009213693952i64 } error: is invalid

-- ==
-- entry: below_a_multiple
-- input { 4611686018427387904i64 } error: out of bounds

entry strided (p: i64) (xs: []i32) = (xs[0:p * 2 + 3:2], xs[p * 2 + 4:p * 2 + 1:-2])
entry ranges (p: i64) = (0..2..<(p * 2 + 5), 3..1...(p * 2 + 3), 1..(p + 5 - p - 1)...(p * 4 + 8))
entry made (h: i64) (n: i64) =
  (iota (h * 4 + n), replicate (h * h + n) 7i32, tabulate (n - h * 8) (* 2))
entry reshaped (h: i64) (xs: []i32) =
  let n = h * 4 + 2
  let rows = unflatten (xs :> [n * 3]i32)
  in (rows, flatten rows)
entry coerced (p: i64) (xs: [1]i32) = xs :> [p * 3]i32
-- In each lane of a map.
entry halves (xs: []i32) (hs: []i64) = map (\h -> i32.sum (xs[h * 4:h * 4 + 5:2])) hs
entry parameter (h: i64) (xs: [4 * h + 3]i32) = xs[::2]
entry over_the_end (p: i64) = p..<(p + 1)
entry up_to_the_highest (s: i64) = 0..s...i64.highest
entry product_of_sizes (n: i64) (m: i64) =
  let (a, b) = (iota n, iota m)
  in length (iota (length a * length b))
entry quotient_of_sizes (n: i64) (m: i64) =
  let (a, b) = (iota n, iota m)
  in (length a * length b * 4) / 2
entry positive_multiple (p: i64) = if p > 0 then length (iota (p * 6)) else 0
entry below_a_multiple (p: i64) =
  if p > 0 then i64.sum (map (\i -> (iota (4 * p))[i + p]) (iota 1)) else 0
entry rows (h: i64) (n: i64) = map (\i -> map (* i) (iota (4 * h + 3))) (iota n)
