-- Scalar code after the sum.
-- ARGS: --size m=1024 --size n=1024 --size q=1024
-- SHOWS: mq,nq->mn +tiled
entry main [m][n][q] (A: [m][q]f32) (B: [n][q]f32) (bias: [n]f32) : [m][n]f32 =
  map (\a -> map2 (\b c -> f32.max 0 (c + f32.sum (map2 (*) a b))) B bias) A
