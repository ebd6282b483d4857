-- Numbers of 64 bits wrap before they are divided or compared.

-- ==
-- entry: divided
-- input { 9223372036854775807i64 } output { 2i64 -2i64 3i64 }
-- input { 1152921504606846976i64 } output { 48i64 92233720368547758i64 5i64 }
-- input { 7i64 } output { 36i64 14i64 3i64 }
entry divided (x: i64) = ((-2 * x) % 50, (100 * x) / 50, (50 * x + 3) % 50)

-- ==
-- entry: compared
-- input { 9223372036854775807i64 } output { -9223372036854775806i64 9223372036854775807i64 }
-- input { 1i64 } output { 1i64 4i64 }
entry compared (x: i64) = (i64.min x (x + 3), i64.max x (x + 3))

-- A division of what came by another name.
-- ==
-- entry: named
-- input { [9223372036854775807i64, 3i64] } output { [2i64, 44i64] }
entry named (xs: []i64) = map (\y -> y % 50) (map (\x -> x * -2) xs)

-- Of sizes and indices the laws of polynomials hold.
-- ==
-- entry: sizes
-- input { [1i64, 2i64, 3i64, 4i64] } output { [1i64, 2i64, 3i64, 4i64] }
entry sizes [n] (xs: [n]i64): []i64 = map (\i -> xs[(2 * i + 1) / 2]) (iota ((2 * n) / 2))

-- Sizes and indices times large numbers wrap, too.
-- ==
-- entry: hashes
-- input { 5i64 } output { [407i64, 412i64, 801i64, 806i64, 811i64] [0i64, 1i64, -2i64, -1i64, 0i64] }
entry hashes (n: i64) =
  (map (\i -> (i * 6364136223846793005 + 1442695040888963407) % 1000) (iota n),
   map (\i -> (i * 4611686018427387904) / 4611686018427387904) (iota n))

-- ==
-- entry: of_sizes
-- input { [1i32, 2i32, 3i32, 4i32, 5i32] } output { 1i64 798i64 }
entry of_sizes [n] (_: [n]i32) =
  ((n * 4611686018427387904) / 4611686018427387904, (n * 6364136223846793005 + 5) % 1000)

-- That a number is not negative says nothing of how large it is.
-- ==
-- entry: checked
-- input { 9223372036854775807i64 5i64 } output { 9223372036854775807i64 9223372036854775807i64 2i32 }
-- input { 3i64 5i64 } output { 8i64 6i64 1i32 }
entry checked (x: i64) (y: i64) =
  (if x >= 0 && y >= 0 then (if x + y < 0 then i64.highest else x + y) else 0,
   if x >= 0 then i64.max x (x + 3) else 0,
   if x >= 0 then (let z = x + x in if z >= 0 then 1i32 else 2) else 3)

-- ==
-- entry: short_ones
-- input { [4294967295u32, 3u32] [1u8, 2u8, 3u8] } output { [true, false] [1i64, -2i64, -1i64] }
entry short_ones (xs: []u32) (ys: []u8) =
  (map (\x -> i64.u32 x * i64.u32 x < 0) xs, map (\y -> (i64.u8 y * 4611686018427387904) / 4611686018427387904) ys)
