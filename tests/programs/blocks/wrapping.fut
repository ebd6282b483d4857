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
