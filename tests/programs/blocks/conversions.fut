-- Conversions of floats to integers: towards zero, NaN and infinities to 0, negative numbers to unsigned types by way of
-- the signed type of the width, what is out of range to the nearest integer.

-- There and back: no zero is negative.
-- ==
-- entry: back16
-- input { [-0.5f16, -0.0f16, 0.5f16, -1.5f16, 2.9f16] } output { [0u16, 0u16, 0u16, 48128u16, 16384u16] }
entry back16 (xs: []f16): []u16 = map (\x -> f16.to_bits (f16.i16 (i16.f16 x))) xs

-- ==
-- entry: back32 trunc32
-- input { [-0.5f32, -0.0f32, 0.5f32, -1.5f32, 2.9f32] } output { [0u32, 0u32, 0u32, 3212836864u32, 1073741824u32] }
-- input { [f32.nan, f32.inf, -f32.inf] } output { [0u32, 0u32, 0u32] }
entry back32 (xs: []f32): []u32 = map (\x -> f32.to_bits (f32.i32 (i32.f32 x))) xs
entry trunc32 (xs: []f32): []u32 = map (\x -> f32.to_bits (f32.trunc x)) xs

-- ==
-- entry: back64 trunc64
-- input { [-0.5f64, -0.0f64, 0.5f64, -1.5f64, -1e-300f64] } output { [0u64, 0u64, 0u64, 13830554455654793216u64, 0u64] }
entry back64 (xs: []f64): []u64 = map (\x -> f64.to_bits (f64.i64 (i64.f64 x))) xs
entry trunc64 (xs: []f64): []u64 = map (\x -> f64.to_bits (f64.trunc x)) xs

-- ==
-- entry: one
-- input { -0.5 } output { 0u64 0u32 }
-- input { -1.0 } output { 13830554455654793216u64 3212836864u32 }
entry one (x: f64): (u64, u32) = (f64.to_bits (f64.i64 (i64.f64 x)), f32.to_bits (f32.trunc (f32.f64 x)))

-- ==
-- entry: to_u8
-- input { [-1.0, -1.9, -0.9, 255.9, 256.0, -128.0, -300.0, 1e30, -1e30, f64.nan, f64.inf, -f64.inf] }
-- output { [255u8, 255u8, 0u8, 255u8, 255u8, 128u8, 128u8, 255u8, 128u8, 0u8, 0u8, 0u8] }
entry to_u8 (xs: []f64): []u8 = map u8.f64 xs

-- ==
-- entry: to_u16
-- input { [-1.0f16, -3.5f16, -0.9f16, 65504f16, -65504f16, f16.nan, f16.inf, -f16.inf] }
-- output { [65535u16, 65533u16, 0u16, 65504u16, 32768u16, 0u16, 0u16, 0u16] }
entry to_u16 (xs: []f16): []u16 = map u16.f16 xs

-- ==
-- entry: to_u32
-- input { [-1f32, -3.5f32, -0.9f32, 3e9f32, 5e9f32, -2147483648f32, -3e9f32, f32.nan, f32.inf, -f32.inf] }
-- output { [4294967295u32, 4294967293u32, 0u32, 3000000000u32, 4294967295u32, 2147483648u32, 2147483648u32, 0u32, 0u32,
--           0u32] }
entry to_u32 (xs: []f32): []u32 = map u32.f32 xs

-- ==
-- entry: to_u64
-- input { [-1.0, -3.5, -0.9, 1e19, 2e19, -9223372036854775808.0, -1e19, f64.nan, f64.inf, -f64.inf] }
-- output { [18446744073709551615u64, 18446744073709551613u64, 0u64, 10000000000000000000u64, 18446744073709551615u64,
--           9223372036854775808u64, 9223372036854775808u64, 0u64, 0u64, 0u64] }
entry to_u64 (xs: []f64): []u64 = map u64.f64 xs

-- Constants are folded.
-- ==
-- entry: folded
-- input {} output { 4294967295u32 128u8 18446744073709551614u64 0u64 }
entry folded: (u32, u8, u64, u64) = (u32.f32 (-1), u8.f64 (-300), u64.f16 (-2.9), f64.to_bits (f64.trunc (-0.5)))
