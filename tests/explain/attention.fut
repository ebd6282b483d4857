-- Attention in one kernel: the contractions of its parts are not run, and not shown.
-- ARGS: --size h=16 --size n=8192 --size m=8192 --size d=64 --size e=64
-- SHOWS: .* attention +one kernel, without scores in memory
entry main [h][n][m][d][e] (Q: [h][n][d]f32) (K: [h][m][d]f32) (V: [h][m][e]f32) : [h][n][e]f32 =
  map3 (\q k v -> map (\x -> let s = map (\y -> f32.sum (map2 (*) x y)) k
                             let most = f32.maximum s
                             let w = map (\s -> f32.exp (s - most)) s
                             let t = f32.sum w
                             in map (\c -> f32.sum (map2 (*) w c) / t) (transpose v)) q) Q K V
