-- Long sums: in their own type, and one term after the other, they are far from what they are in any other order.

-- ==
-- entry: dot
-- no_emulate random input { [10000000]f32 [10000000]f32 }
-- random input { [1000]f32 [1000]f32 } auto output
entry dot [n] (xs: [n]f32) (ys: [n]f32): f32 = reduce (+) 0 (map2 (*) xs ys)

-- ==
-- entry: histogram
-- random input { [100000]i64 [100000]f16 } auto output
entry histogram [n] (is: [n]i64) (xs: [n]f16): [10]f16 = hist (+) 0 10 (map (% 10) is) xs

-- ==
-- entry: columns
-- random input { [20000][4]f16 } auto output
entry columns [n][m] (xs: [n][m]f16): [m]f16 = reduce (map2 (+)) (replicate m 0) xs

-- ==
-- entry: looped scanned
-- random input { [100000]f16 } auto output
entry looped [n] (xs: [n]f16): f16 = loop s = 0 for x in xs do s + x
entry scanned [n] (xs: [n]f16): f16 = last (scan (+) 0 xs)

-- Where a sum decides, the program's own may be meant.
-- ==
-- entry: decided
-- random input { [100000]f16 } auto output
entry decided [n] (xs: [n]f16): (bool, i32) = let s = f16.sum xs in (s > 0, if n > 100 then 1 else i32.f16 s)
