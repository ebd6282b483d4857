-- Array programs that are no contractions, on CPUs; bench/programs_cpu.py runs them beside peers.
entry sum [n] (xs: [n]f32): f32 = f32.sum xs
entry dot [n] (xs: [n]f32) (ys: [n]f32): f32 = f32.sum (map2 (*) xs ys)
entry argmax [n] (xs: [n]f32): i64 =
  let later (a, i) (b, j) = if a > b || (a == b && i < j) then (a, i) else (b, j)
  in (reduce_comm later (-f32.inf, i64.highest) (zip xs (iota n))).1
entry prefix_sums [n] (xs: [n]f32): [n]f32 = scan (+) 0 xs
entry chain [n] (xs: [n]f32): [n]f32 = map f32.exp (map (\x -> x * 0.5 - 1) (map f32.sqrt xs))
entry even [n] (xs: [n]i32): []i32 = filter (\x -> x % 2 == 0) xs
entry counts [n] (k: i64) (is: [n]i32): [k]i32 = hist (+) 0 k (map i64.i32 is) (replicate n 1)
entry rows [n][m] (xss: [n][m]f32): [n]f32 = map f32.sum xss
entry columns [n][m] (xss: [n][m]f32): [m]f32 = map f32.sum (transpose xss)
entry turned [n][m] (xss: [n][m]f32): [m][n]f32 = transpose xss
entry reversed [a][b][c] (xsss: [a][b][c]f32): [c][b][a]f32 = map transpose (transpose (map transpose xsss))
entry softmax [n][m] (xss: [n][m]f32): [n][m]f32 =
  map (\xs ->
         let most = f32.maximum xs
         let es = map (\x -> f32.exp (x - most)) xs
         let sum = f32.sum es
         in map (/ sum) es) xss
entry layernorm [n][m] (xss: [n][m]f32): [n][m]f32 =
  map (\xs ->
         let mean = f32.sum xs / f32.i64 m
         let variance = f32.sum (map (\x -> (x - mean) * (x - mean)) xs) / f32.i64 m
         let scale = 1 / f32.sqrt (variance + 1e-5)
         in map (\x -> (x - mean) * scale) xs) xss
entry black_scholes [n] (prices: [n]f32) (strikes: [n]f32) (years: [n]f32): ([n]f32, [n]f32) =
  let distribution (d: f32) =
    let k = 1 / (1 + 0.2316419 * f32.abs d)
    let polynomial = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    let tail = 0.39894228 * f32.exp (-0.5 * d * d) * polynomial
    in if d > 0 then 1 - tail else tail
  let value (s: f32) (x: f32) (t: f32) =
    let (r, v) = (0.02, 0.3)
    let d1 = (f32.log (s / x) + (r + 0.5 * v * v) * t) / (v * f32.sqrt t)
    let (c1, c2) = (distribution d1, distribution (d1 - v * f32.sqrt t))
    let discounted = x * f32.exp (-r * t)
    in (s * c1 - discounted * c2, discounted * (1 - c2) - s * (1 - c1))
  in unzip (map3 value prices strikes years)
entry bodies [n] (xs: [n]f32) (ys: [n]f32) (zs: [n]f32) (ms: [n]f32): ([n]f32, [n]f32, [n]f32) =
  let force (x: f32) (y: f32) (z: f32) =
    let one (x2: f32) (y2: f32) (z2: f32) (m: f32) =
      let (dx, dy, dz) = (x2 - x, y2 - y, z2 - z)
      let inverse = 1 / f32.sqrt (dx * dx + dy * dy + dz * dz + 0.01)
      let s = m * inverse * inverse * inverse
      in (s * dx, s * dy, s * dz)
    in reduce_comm (\(a, b, c) (d, e, f) -> (a + d, b + e, c + f)) (0, 0, 0) (map4 one xs ys zs ms)
  in unzip3 (map3 force xs ys zs)
entry heat [n][m] (steps: i32) (start: [n][m]f32): [n][m]f32 =
  loop u = start for _step < steps do
    tabulate_2d n m (\i j -> #[unsafe]
      (if i == 0 || j == 0 || i == n - 1 || j == m - 1 then u[i, j]
       else u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])))
entry window_3 [n][m] (xss: [n][m]f32) (w: [3][3]f32): [][]f32 =
  tabulate_2d (n - 2) (m - 2) (\i j -> f32.sum (flatten (tabulate_2d 3 3 (\a b -> xss[i + a, j + b] * w[a, b]))))
entry window_7 [n][m] (xss: [n][m]f32) (w: [7][7]f32): [][]f32 =
  tabulate_2d (n - 6) (m - 6) (\i j -> f32.sum (flatten (tabulate_2d 7 7 (\a b -> xss[i + a, j + b] * w[a, b]))))
entry paths [n] (edges: [n][n]f32): [n][n]f32 =
  loop d = edges for k < n do tabulate_2d n n (\i j -> f32.min d[i, j] (d[i, k] + d[k, j]))
entry mandelbrot (side: i64) (limit: i32): [side][side]i32 =
  tabulate_2d side side (\i j ->
    let (x, y) = (f32.i64 j / f32.i64 side * 3 - 2, f32.i64 i / f32.i64 side * 3 - 1.5)
    let (_, _, steps) =
      loop (a, b, steps) = (0, 0, 0) while steps < limit && a * a + b * b < 4 do (a * a - b * b + x, 2 * a * b + y, steps + 1)
    in steps)
entry kmeans [n][d][k] (points: [n][d]f32) (centres: [k][d]f32): [k][d]f32 =
  let nearest (p: [d]f32) =
    let distances = map (\c -> f32.sum (map2 (\a b -> (a - b) * (a - b)) p c)) centres
    let closer (a, i) (b, j) = if a < b || (a == b && i < j) then (a, i) else (b, j)
    in (reduce_comm closer (f32.inf, i64.highest) (zip distances (iota k))).1
  let which = map nearest points
  let sizes = hist (+) 0 k which (replicate n 1i32)
  let sums = hist (map2 (+)) (replicate d 0) k which points
  in map2 (\s c -> map (/ f32.i32 (i32.max 1 c)) s) sums sizes
entry small_products [e] (xs: [e][4][4]f32) (ys: [e][4][4]f32): [e][4][4]f32 =
  map2 (\x y -> map (\r -> map (\c -> f32.sum (map2 (*) r c)) (transpose y)) x) xs ys
entry lu [n] (matrix: [n][n]f32): [n][n]f32 =
  loop a = matrix for k < n - 1 do
    tabulate_2d n n (\i j ->
      if i <= k then a[i, j]
      else let factor = a[i, k] / a[k, k] in if j == k then factor else if j < k then a[i, j] else a[i, j] - factor * a[k, j])
entry sorted [n] (xs: [n]i32): [n]i32 =
  let by_digit [n] (xs: [n]u32) (bit: i32): [n]u32 =
    let digit (x: u32) = i32.u32 ((x >> u32.i32 bit) & 3)
    let flags = map (\x -> let d = digit x in (i32.bool (d == 0), i32.bool (d == 1), i32.bool (d == 2), i32.bool (d == 3))) xs
    let places = scan (\(a, b, c, d) (e, f, g, h) -> (a + e, b + f, c + g, d + h)) (0, 0, 0, 0) flags
    let (na, nb, nc, _) = if n == 0 then (0, 0, 0, 0) else places[n - 1]
    let is = map2 (\x (a, b, c, d) ->
                     let k = digit x
                     in i64.i32 (if k == 0 then a - 1 else if k == 1 then na + b - 1
                                 else if k == 2 then na + nb + c - 1 else na + nb + nc + d - 1)) xs places
    in scatter (replicate n 0) is xs
  let ys = loop ys = map (\x -> u32.i32 x ^ 0x80000000) xs for b < 16 do by_digit ys (2 * b)
  in map (\y -> i32.u32 (y ^ 0x80000000)) ys
-- Stockham's fast Fourier transform of 2^bits values.
entry fft [n] (bits: i32) (re: [n]f32) (im: [n]f32): ([n]f32, [n]f32) =
  let (re, im, _) =
    loop (re, im, stride) = (re, im, 1) for _pass < bits do
      let one (i: i64) =
        let (q, r) = (i / (2 * stride), i % (2 * stride))
        let (p, upper) = (q * stride + r % stride, r >= stride)
        let (a, b) = (re[p], im[p])
        let (c, d) = (re[p + n / 2], im[p + n / 2])
        let angle = -f32.pi * f32.i64 (q * stride) / f32.i64 (n / 2)
        in if upper
           then let (x, y) = (a - c, b - d)
                let (s, t) = (f32.cos angle, f32.sin angle)
                in (x * s - y * t, x * t + y * s)
           else (a + c, b + d)
      let (re, im) = unzip (tabulate n one)
      in (re, im, stride * 2)
  in (re, im)
entry attention [h][n][d] (Q: [h][n][d]f32) (K: [h][n][d]f32) (V: [h][n][d]f32): [h][n][d]f32 =
  map3 (\q k v ->
          let scores = map (\x -> map (\y -> f32.sum (map2 (*) x y) / f32.sqrt (f32.i64 d)) k) q
          let shares = map (\xs ->
                              let most = f32.maximum xs
                              let es = map (\x -> f32.exp (x - most)) xs
                              let total = f32.sum es
                              in map (/ total) es) scores
          in map (\r -> map (\c -> f32.sum (map2 (*) r c)) (transpose v)) shares) Q K V
