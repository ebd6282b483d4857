-- Programs with versions for different sizes (bench/thresholds_gpu.py).
entry attention [h][n][d] (Q: [h][n][d]f32) (K: [h][n][d]f32) (V: [h][n][d]f32): [h][n][d]f32 =
  map3 (\q k v ->
          let scores = map (\x -> map (\y -> f32.sum (map2 (*) x y) / f32.sqrt (f32.i64 d)) k) q
          let shares = map (\xs ->
                              let most = f32.maximum xs
                              let es = map (\x -> f32.exp (x - most)) xs
                              let total = f32.sum es
                              in map (/ total) es) scores
          in map (\r -> map (\c -> f32.sum (map2 (*) r c)) (transpose v)) shares) Q K V

entry softmax [n][m] (xss: [n][m]f32): [n][m]f32 =
  map (\xs ->
         let most = f32.maximum xs
         let es = map (\x -> f32.exp (x - most)) xs
         let total = f32.sum es
         in map (/ total) es) xss

entry counts [n] (xs: [n]i32): [256]i32 = hist (+) 0 256 (map (\x -> i64.i32 (x & 255)) xs) (replicate n 1)

entry nearest [n][m][d] (X: [n][d]f32) (C: [m][d]f32): [n]f32 =
  map (\x -> f32.minimum (map (\c -> f32.sum (map2 (\a b -> (a - b) * (a - b)) x c)) C)) X
