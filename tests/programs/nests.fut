-- Nests that are not perfect: what extract-kernels takes apart.

entry rows_by_their_sum [m] [n] (xss: [m][n]f32): [m][n]f32 =
  map (\xs -> let s = reduce (+) 0 xs in map (\x -> x / (s * s + 1)) xs) xss

entry row_sums [m] [n] (xss: [m][n]i32): [m]i32 = map (reduce (+) 0) xss

-- An operator that does not commute.
entry row_last [m] [n] (xss: [m][n]i32): [m]i32 = map (reduce (\a b -> if b == 0 then a else b) 0) xss

entry row_scans [m] [n] (xss: [m][n]i32): [m][n]i32 = map (scan (+) 0) xss

entry plane_scans [l] [m] [n] (xsss: [l][m][n]i32): ([l][m][n]i32, [l][n]i32) =
  unzip (map (\xss -> (scan (map2 (+)) (replicate n 0) xss, reduce (map2 i32.max) (replicate n i32.lowest) xss)) xsss)

entry rounds [m] [n] (k: i64) (xss: [m][n]i32): [m][n]i32 =
  map (\xs -> loop ys = xs for i < k % 5 do map (\y -> y * 2 + i32.i64 i) ys) xss

entry rounds_and_sums [m] [n] (k: i64) (xss: [m][n]i32): ([m][n]i32, [m]i32) =
  unzip (map (\xs -> loop (ys, s) = (xs, 0) for i < k % 5 do
                let zs = map (+ i32.i64 i) (scan (+) 0 ys)
                in (map (% 7) zs, s + i32.sum zs)) xss)

entry either [m] [n] (c: bool) (xss: [m][n]i32): [m][n]i32 =
  map (\xs -> if c then map (+ 1) xs else scan (+) 0 xs) xss

entry counts [m] [n] (xss: [m][n]i64): [m][40]i32 =
  map (\xs -> hist (+) 0 40 (map (% 40) xs) (map (const 1) xs)) xss

entry places [m] [n] (xss: [m][n]i64): [m][50]i64 =
  map (\xs -> scatter (replicate 50 0) (iota n) xs) xss

entry sums_and_rows [m] [n] (xss: [m][n]f32): ([m]f32, [m][n]f32, [m]i64) =
  unzip3 (tabulate m (\i ->
            let xs = xss[i]
            let s = f32.abs (f32.sum xs)
            let t = s * s + 1
            in (t, map (/ t) xs, i)))

-- Shapes that depend on the index stay with what uses them.
entry triangles [m] (xs: [m]i64): ([m]i64, [m][m]i64) =
  unzip (map (\x -> let n = i64.abs x % 9
                    in (reduce (+) 0 (scan (+) 0 (map (* 2) (iota n))), map (+ x) xs)) xs)

-- A row that an inner map reads and a later loop overwrites.
entry read_then_overwritten [m] [n] (xss: [m][n]i32): ([m][n]i32, [m][n]i32) =
  unzip (map (\xs ->
           let ys = map (+ 1) xs
           let zs = map (* 2) ys
           in (loop ys' = copy ys for i < n do ys' with [i] = ys'[i] + zs[n - 1 - i], zs)) xss)

-- Three levels, with work at each.
entry deep [l] [m] [n] (xsss: [l][m][n]i32): [l][m][n]i32 =
  map (\xss ->
         let t = reduce (+) 0 (map (reduce i32.max i32.lowest) xss)
         in map (\xs -> let s = t + reduce (+) 0 xs in map (\x -> x * s + t) xs) xss) xsss

-- A histogram into reversed rows that nobody else needs lies reversed; its columns are then read in tiles.
entry reversed_columns [k] [m] [n] (xs: [n]i32) (is: [k]i64) (yss: [k][n]i32) (_: [m]i32): [n]i32 =
  reduce_by_index (copy (reverse (replicate m xs))) (map2 i32.min) (replicate n i32.highest) is yss
  |> reduce (map2 i32.max) (replicate n i32.lowest)

-- A loop of rows whose result is overwritten: the argument stays as it is.
entry overwritten [m] [n] (k: i64) (xss: [m][n]i32): ([m][n]i32, i32) =
  let r = map (\xs -> loop a = xs for i < k % 3 do map2 (\x y -> x + 2 * y + i32.i64 i) a (rotate 1 a)) xss
  let r = if m > 0 && n > 0 then r with [0, 0] = 7 else r
  in (r, i32.sum (map i32.sum xss))
