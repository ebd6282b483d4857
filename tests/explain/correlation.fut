-- One array as both operands.
-- ARGS: --size n=1024 --size q=1024
-- SHOWS: nq,aq->na +tiled
entry main [n][q] (A: [n][q]f32) : [n][n]f32 =
  map (\a -> map (\b -> f32.sum (map2 (*) a b)) A) A
