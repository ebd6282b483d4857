-- Squared distances: another map function.
-- ARGS: --size m=1024 --size n=1024 --size q=256
-- SHOWS: mq,nq->mn +tiled
entry main [m][n][q] (A: [m][q]f32) (B: [n][q]f32) : [m][n]f32 =
  map (\a -> map (\b -> f32.sum (map2 (\x y -> (x - y) * (x - y)) a b)) B) A
