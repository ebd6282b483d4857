-- Filters: on GPUs one kernel of several blocks, tuples, nested in loops and branches, and what is no filter of that kind.

-- ==
-- entry: kept
-- input { empty([0]i32) } output { empty([0]i32) }
-- input { [1, -2, 3, 0] } output { [1, 3] }
-- random input { [1000]i32 } auto output
-- random input { [4100]i32 } auto output
-- random input { [9001]i32 } auto output
entry kept [n] (xs: [n]i32) : []i32 = filter (> 0) xs

-- ==
-- entry: pairs
-- random input { [1]i32 [1]f64 } auto output
-- random input { [5003]i32 [5003]f64 } auto output
entry pairs [n] (xs: [n]i32) (ys: [n]f64) : ([]i32, []f64) = unzip (filter (\(x, y) -> x > 0 || y < 0.25) (zip xs ys))

-- ==
-- entry: bytes
-- random input { [5003]u8 } auto output
entry bytes [n] (xs: [n]u8) : []u8 = filter (\x -> x % 3 == 0) (map (* 2) xs)

-- ==
-- entry: all none
-- random input { [3000]i32 } auto output
entry all [n] (xs: [n]i32) : []i32 = filter (\_ -> n > 0) xs
entry none [n] (xs: [n]i32) : []i32 = filter (\_ -> n == 0) xs

-- ==
-- entry: total
-- random input { [3000]i32 } auto output
entry total [n] (xs: [n]i32) : i32 = let ys = filter (> 0) xs in i32.sum (map (>> 12) ys) + i32.i64 (length ys)

-- ==
-- entry: in_loop
-- random input { [3000]i32 } auto output
entry in_loop [n] (xs: [n]i32) : []i32 =
  loop ys = xs for i < 4 do filter (\y -> (y >> i) & 3 != 1) ys

-- ==
-- entry: twice
-- random input { true [3000]i32 } auto output
-- random input { false [3000]i32 } auto output
entry twice [n] (which: bool) (xs: [n]i32) : ([]i32, []i32) =
  let ys = if which then filter (> 0) xs else filter (< 10) xs
  in (ys, filter (\y -> y & 1 == 0) ys)

-- The order of what is left is kept, too: it lies behind all that is kept.
-- ==
-- entry: parted
-- random input { [3000]i32 } auto output
entry parted [n] (xs: [n]i32) : ([]i32, []i32) = partition (> 0) xs

-- ==
-- entry: places
-- random input { [3000]i32 } auto output
entry places [n] (xs: [n]i32) : ([]i64, [n]i64) =
  let flags = map (> 0) xs
  let places = scan (+) 0 (map i64.bool flags)
  let count = if n == 0 then 0 else places[n - 1]
  in (scatter (replicate count 7) (map2 (\f p -> if f then p - 1 else -1) flags places) (iota n), places)
