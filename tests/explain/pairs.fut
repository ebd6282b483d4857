-- Sums of distances take as long as the contraction inside: three operations for each of 2^32 differences.
-- ARGS: --size n=8192 --size m=8192 --size d=64
-- SHOWS: [345][0-9][0-9] us +100% .*reduction of pairs +tiled, with the contraction inside
entry main [n][m][d] (xs: [n][d]f32) (ys: [m][d]f32): [n]f32 =
  map (\x -> f32.sum (map (\y -> f32.sqrt (f32.sum (map2 (\a b -> (a - b) * (a - b)) x y))) ys)) xs
