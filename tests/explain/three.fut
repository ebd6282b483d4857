-- Three operands.
-- ARGS: --size m=512 --size n=512 --size q=512
-- SHOWS: mq,nq,q->mn +tiled
entry main [m][n][q] (A: [m][q]f32) (B: [n][q]f32) (w: [q]f32) : [m][n]f32 =
  map (\a -> map (\b -> f32.sum (map3 (\x y z -> x * y * z) a b w)) B) A
