-- Scans that count: places of what is kept, ranks that are results, a step of a sort by digits of two bits.
-- ==
-- entry: kept
-- random input { [3]i32 } auto output
-- random input { [1283]i32 } auto output
-- random input { [50001]i32 } auto output

-- ==
-- entry: kept_records
-- random input { [50001]f64 [50001]i8 [50001]bool } auto output

-- ==
-- entry: ranks
-- random input { [5]i32 } auto output
-- random input { [50001]i32 } auto output

-- ==
-- entry: narrow
-- random input { [5001]i32 } auto output

-- ==
-- entry: sorted
-- random input { [1]i32 } auto output
-- random input { [1000]i32 } auto output
-- random input { [20001]i32 } auto output

entry kept [n] (xs: [n]i32): []i32 = filter (\x -> x % 3 != 0) xs

-- Three arrays are written where one is kept.
entry kept_records [n] (xs: [n]f64) (ys: [n]i8) (cs: [n]bool) =
  unzip3 (filter (\(_, y, c) -> c || y > 100) (zip3 xs ys cs))

-- Counts of several types, of which an odd number goes two in a word.
entry ranks [n] (xs: [n]i32): ([n]i64, [n]i32, [n]u8) =
  unzip3 (scan (\(a, b, c) (d, e, f) -> (a + d, b + e, c + f)) (0, 0, 0)
               (map (\x -> (i64.bool (x > 5), i32.bool (x % 3 == 0), u8.bool (x % 7 == 1))) xs))

-- Counts that wrap around.
entry narrow [n] (xs: [n]i32): [n]i8 = scan (+) 0 (map (\x -> i8.bool (x > 5)) xs)

entry sorted [n] (xs: [n]i32): [n]i32 =
  let by_digit [n] (xs: [n]u32) (bit: i32): [n]u32 =
    let digits = map (\x -> i8.u32 ((x >> u32.i32 bit) & 3)) xs
    let flags = map (\d -> (i32.bool (d == 0), i32.bool (d == 1), i32.bool (d == 2), i32.bool (d == 3))) digits
    let places = scan (\(a, b, c, d) (e, f, g, h) -> (a + e, b + f, c + g, d + h)) (0, 0, 0, 0) flags
    let (na, nb, nc) = reduce_comm (\(a, b, c) (e, f, g) -> (a + e, b + f, c + g)) (0, 0, 0)
                                   (map (\(a, b, c, _) -> (a, b, c)) flags)
    let is = map2 (\k (a, b, c, d) ->
                     i64.i32 (if k == 0 then a - 1 else if k == 1 then na + b - 1
                              else if k == 2 then na + nb + c - 1 else na + nb + nc + d - 1)) digits places
    in scatter (#[scratch] copy xs) is xs
  let ys = loop ys = map (\x -> u32.i32 x ^ 0x80000000) xs for b < 16 do by_digit ys (2 * b)
  in map (\y -> i32.u32 (y ^ 0x80000000)) ys
