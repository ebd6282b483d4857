-- Loops inside of maps that scatter into what they carry: for all rows at once, or in each thread.

def places (m: i64) (i: i64) = map (\j -> (j + i) % (m + 1)) (iota m)

-- Two arrays in turns, as in Stockham's FFT.
entry turns [n][m] (xss: [n][m]i32) : ([n][m]i32, [n][m]i32) =
  unzip (map (\xs -> loop (a, b) = (copy xs, replicate m 7) for i < 5 do
                       (scatter b (places m i) (map (* 3) a), a)) xss)

-- One array, which its values are made of before.
entry one [n][m] (xss: [n][m]i32) : [n][m]i32 =
  map (\xs -> loop a = copy xs for i < 3 do
                let made = map2 (\x j -> x + a[m - 1 - j]) a (iota m)
                in scatter a (places m i) made) xss

-- An element that is read before and used behind the scatter.
entry first [n][m] (xss: [n][m]i32) : [n][m]i32 =
  map (\xs -> loop a = copy xs for i < 3 do
                let s = if m > 0 then a[0] else 0
                let b = scatter a (places m i) (map (+ i32.i64 i) (indices xs |> map i32.i64))
                in map (+ s) b) xss

-- What is yielded twice is no longer one array.
entry twice [n][m] (xss: [n][m]i32) : [n][m]i32 =
  map (\xs -> let (a, b, c) = loop (a, b, c) = (copy xs, replicate m 1, replicate m 2) for i < 3 do
                                (scatter (copy c) (places m i) (map (+ 1) b), map (+ 2) a, b)
              in map3 (\x y z -> x + 10 * y + 100 * z) a b c) xss

-- Histograms.
entry counted [n][m] (xss: [n][m]i32) : [n][m]i32 =
  map (\xs -> loop a = copy xs for i < 3 do
                reduce_by_index a (+) 0 (places m i) (map (\j -> i32.i64 (j + i)) (iota m))) xss

-- Two dims around it, and a branch inside.
entry planes [n][k][m] (xsss: [n][k][m]i32) : [n][k][m]i32 =
  map (map (\xs -> (loop (a, b) = (copy xs, copy xs) for i < 4 do
                      if i % 2 == 0 then (scatter b (places m i) (map (+ 1) a), a) else (b, map (+ 5) a)).0)) xsss

-- Single elements are overwritten, too.
entry single [n][m] (xss: [n][m]i32) : [n][m]i32 =
  map (\xs -> loop a = copy xs for i < 3 do
                let b = scatter a (places m i) (map i32.i64 (iota m))
                in if m > 0 then b with [0] = 9 else b) xss
