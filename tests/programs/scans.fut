-- Scans: in chunks, in threads, over tuples, with an operator that does not commute, with what was mapped before.

entry sums [n] (xs: [n]i32): [n]i32 = scan (+) 0 xs

entry before [n] (xs: [n]i64): [n]i64 = exscan (+) 0 xs

entry largest_squares [n] (xs: [n]i32): [n]i32 = scan i32.max i32.lowest (map (\x -> x * x) xs)

-- Composition of x -> a x + b, first one first.
entry lines [n] (xs: [n]i32) (ys: [n]i32): ([n]i32, [n]i32) =
  zip xs ys |> scan (\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) |> unzip

entry rows [m][n] (xss: [m][n]i32): [m][n]i32 = map (scan (+) 0) xss

-- The operator works on rows.
entry columns [m][n] (xss: [m][n]i32): [m][n]i32 = scan (map2 (+)) (replicate n 0) xss

entry of_both [m][n] (xss: [m][n]i32): [m][n]i32 = unflatten (scan (+) 0 (flatten xss))

-- What comes before each index is read in a loop.
entry in_loop [n] (xs: [n]i32): [n]i32 = loop ys = xs for _i < 3 do scan (+) 0 ys
