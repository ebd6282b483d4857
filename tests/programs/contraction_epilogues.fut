-- Code behind tiled contractions, which reads along the rows alone, along the columns alone and along both.

-- ==
-- entry: mm
-- random input { [70][33]f32 [33][90]f32 [90]f32 } auto output
-- random input { [1][5]f32 [5][300]f32 [300]f32 } auto output
-- random input { [300][64]f32 [64][3]f32 [3]f32 } auto output

-- ==
-- entry: mm2
-- random input { [70][33]f32 [33][90]f32 [90]f32 [70]f32 [70][90]f32 } auto output
-- random input { [129][16]f32 [16][257]f32 [257]f32 [129]f32 [129][257]f32 } auto output

-- ==
-- entry: mmh
-- random input { [70][40]f16 [40][96]f16 [96]f16 } auto output
-- random input { [130][33]f16 [33][65]f16 [65]f16 } auto output

-- ==
-- entry: mmd
-- random input { [70][40]f64 [40][96]f64 [96]f64 [70]f64 } auto output
entry mm [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (bias: [m]f32) : [n][m]f32 =
  map (\a -> map2 (\b s -> s + f32.sum (map2 (*) a b)) (transpose B) bias) A
entry mm2 [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (bias: [m]f32) (r: [n]f32) (C: [n][m]f32) : [n][m]f32 =
  map3 (\a r c -> map3 (\b s c -> f32.max 0 (r * (s + f32.sum (map2 (*) a b))) + c) (transpose B) bias c) A r C
entry mmh [n][k][m] (A: [n][k]f16) (B: [k][m]f16) (bias: [m]f16) : [n][m]f16 =
  map (\a -> map2 (\b s -> s + f16.sum (map2 (*) a b)) (transpose B) bias) A
entry mmd [n][k][m] (A: [n][k]f64) (B: [k][m]f64) (bias: [m]f64) (r: [n]f64): [n][m]f64 =
  map2 (\a r -> map2 (\b s -> r * (s + f64.sum (map2 (*) a b))) (transpose B) bias) A r
