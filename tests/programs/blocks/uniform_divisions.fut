-- Quotients and remainders by numbers that all threads have: powers of two, others, lowest numbers, zero.
-- ==
-- entry: parts
-- input { 8i64 [-9i64, -8i64, -1i64, 0i64, 7i64, 8i64, 9223372036854775807i64, -9223372036854775808i64] 8i32 3u8 } auto output
-- input { -8i64 [-9i64, -8i64, -1i64, 0i64, 7i64, 8i64, 9223372036854775807i64, -9223372036854775808i64] -8i32 128u8 } auto output
-- input { 1i64 [-9i64, -8i64, -1i64, 0i64, 7i64, 8i64, 9223372036854775807i64, -9223372036854775808i64] 1i32 1u8 } auto output
-- input { 7i64 [-9i64, -8i64, -1i64, 0i64, 7i64, 8i64, 9223372036854775807i64, -9223372036854775808i64] -1i32 4u8 } auto output
-- input { 4611686018427387904i64 [-9i64, -8i64, -1i64, 0i64, 7i64, 8i64, 9223372036854775807i64, -9223372036854775808i64] 1073741824i32 2u8 } auto output
-- input { -9223372036854775808i64 [-9i64, -8i64, -1i64, 0i64, 7i64, 8i64, 9223372036854775807i64, -9223372036854775808i64] -2147483648i32 2u8 } auto output
-- input { 0i64 [-9i64, -8i64] 1i32 2u8 } error: division by zero

entry parts (b: i64) (xs: []i64) (c: i32) (d: u8) =
  unzip3 (map (\x -> (x / b + x % b * 1000000007, i32.i64 x / c + i32.i64 x % c * 65537, u8.i64 x / d + u8.i64 x % d * 3)) xs)
