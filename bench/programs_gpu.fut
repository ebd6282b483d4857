-- Array programs on GPUs; bench/programs_gpu.py runs them beside torch, JAX, CUB and plain CUDA loops.
entry sum [n] (xs: [n]f32): f32 = f32.sum xs
entry argmax [n] (xs: [n]f32): i64 =
  let later (a, i) (b, j) = if a > b || (a == b && i < j) then (a, i) else (b, j)
  in (reduce_comm later (-f32.inf, i64.highest) (zip xs (iota n))).1
entry dot [n] (xs: [n]f32) (ys: [n]f32): f32 = f32.sum (map2 (*) xs ys)
entry scan_f32 [n] (xs: [n]f32): [n]f32 = scan (+) 0 xs
entry scan_i32 [n] (xs: [n]i32): [n]i32 = scan (+) 0 xs
-- The composition of functions x -> max (x + a) b, which is not commutative.
entry scan_pairs [n] (as: [n]f32) (bs: [n]f32): ([n]f32, [n]f32) =
  unzip (scan (\(a, b) (c, d) -> (a + c, f32.max (b + c) d)) (0, -f32.inf) (zip as bs))
entry rows [m][n] (xss: [m][n]f32): [m]f32 = map f32.sum xss
entry columns [m][n] (xss: [m][n]f32): [n]f32 = map f32.sum (transpose xss)
entry row_scan [m][n] (xss: [m][n]f32): [m][n]f32 = map (scan (+) 0) xss
entry counts [n] (k: i64) (is: [n]i32): [k]i32 = hist (+) 0 k (map i64.i32 is) (replicate n 1)
entry weights [n] (k: i64) (is: [n]i32) (vs: [n]f32): [k]f32 = hist (+) 0 k (map i64.i32 is) vs
entry kept [n] (xs: [n]f32): []f32 = filter (> 0.5) xs
entry scattered [n] (is: [n]i32) (vs: [n]f32): [n]f32 = scatter (replicate n 0) (map i64.i32 is) vs
entry gathered [n] (is: [n]i32) (vs: [n]f32): [n]f32 = map (\i -> vs[i]) is
entry transposed [n][m] (xss: [n][m]f32): [m][n]f32 = transpose xss
entry cab [a][b][c] (x: [a][b][c]f32): [c][a][b]f32 = transpose (map transpose x)
entry cba [a][b][c] (x: [a][b][c]f32): [c][b][a]f32 = tabulate_3d c b a (\k j i -> x[i, j, k])
entry chain [n] (xs: [n]f32): [n]f32 = xs |> map (\x -> x * 2 + 1) |> map f32.sqrt |> map (\x -> f32.exp (-x))
entry ones (n: i64): [n]f32 = replicate n 1
entry heat_2d [n][m] (steps: i32) (start: [n][m]f32): [n][m]f32 =
  loop u = start for _step < steps do
    tabulate_2d n m (\i j ->
      if i == 0 || j == 0 || i == n - 1 || j == m - 1 then u[i, j]
      else u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]))
entry heat_3d [n][m][k] (steps: i32) (start: [n][m][k]f32): [n][m][k]f32 =
  loop u = start for _step < steps do
    tabulate_3d n m k (\x y z ->
      if x == 0 || y == 0 || z == 0 || x == n - 1 || y == m - 1 || z == k - 1 then u[x, y, z]
      else u[x, y, z] + 0.1 * (u[x - 1, y, z] + u[x + 1, y, z] + u[x, y - 1, z] + u[x, y + 1, z] +
                               u[x, y, z - 1] + u[x, y, z + 1] - 6 * u[x, y, z]))
entry life [n][m] (steps: i32) (start: [n][m]u8): [n][m]u8 =
  loop u = start for _step < steps do
    tabulate_2d n m (\i j ->
      let at (a: i64) (b: i64) = u[(i + a) % n, (j + b) % m]
      let around = at (-1) (-1) + at (-1) 0 + at (-1) 1 + at 0 (-1) + at 0 1 + at 1 (-1) + at 1 0 + at 1 1
      in u8.bool (around == 3 || (around == 2 && u[i, j] == 1)))
entry softmax [m][n] (xss: [m][n]f32): [m][n]f32 =
  map (\xs ->
         let most = f32.maximum xs
         let es = map (\x -> f32.exp (x - most)) xs
         let total = f32.sum es
         in map (/ total) es) xss
entry layernorm [m][n] (xss: [m][n]f32): [m][n]f32 =
  map (\xs ->
         let mean = f32.sum xs / f32.i64 n
         let variance = f32.sum (map (\x -> (x - mean) * (x - mean)) xs) / f32.i64 n
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
      let inverse = f32.rsqrt (dx * dx + dy * dy + dz * dz + 0.01)
      let s = m * inverse * inverse * inverse
      in (s * dx, s * dy, s * dz)
    in reduce_comm (\(a, b, c) (d, e, f) -> (a + d, b + e, c + f)) (0, 0, 0) (map4 one xs ys zs ms)
  in unzip3 (map3 force xs ys zs)
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
entry window [n][m][k] (xss: [n][m]f32) (w: [k][k]f32): [][]f32 =
  tabulate_2d (n - k + 1) (m - k + 1) (\i j -> f32.sum (flatten (tabulate_2d k k (\a b -> xss[i + a, j + b] * w[a, b]))))
entry window_3 [n][m] (xss: [n][m]f32) (w: [3][3]f32): [][]f32 =
  tabulate_2d (n - 2) (m - 2) (\i j -> f32.sum (flatten (tabulate_2d 3 3 (\a b -> xss[i + a, j + b] * w[a, b]))))
entry window_7 [n][m] (xss: [n][m]f32) (w: [7][7]f32): [][]f32 =
  tabulate_2d (n - 6) (m - 6) (\i j -> f32.sum (flatten (tabulate_2d 7 7 (\a b -> xss[i + a, j + b] * w[a, b]))))
entry small_products [e] (xs: [e][4][4]f32) (ys: [e][4][4]f32): [e][4][4]f32 =
  map2 (\x y -> map (\r -> map (\c -> f32.sum (map2 (*) r c)) (transpose y)) x) xs ys
entry distances [n][m][d] (xs: [n][d]f32) (ys: [m][d]f32): [n]f32 =
  map (\x -> f32.sum (map (\y -> f32.sqrt (f32.sum (map2 (\a b -> (a - b) * (a - b)) x y))) ys)) xs
entry paths [n] (edges: [n][n]f32): [n][n]f32 =
  loop d = edges for k < n do tabulate_2d n n (\i j -> f32.min d[i, j] (d[i, k] + d[k, j]))
entry lu [n] (matrix: [n][n]f32): [n][n]f32 =
  loop a = matrix for k < n - 1 do
    tabulate_2d n n (\i j ->
      if i <= k then a[i, j]
      else let factor = a[i, k] / a[k, k] in if j == k then factor else if j < k then a[i, j] else a[i, j] - factor * a[k, j])
-- In the manner of diku-dk's package of sorts: digits of two bits.
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
