-- Both operands by rows.
-- ARGS: --size m=1024 --size n=1024 --size q=1024
-- SHOWS: mq,nq->mn +tiled [0-9]+ x
entry main [m][n][q] (A: [m][q]f32) (B: [n][q]f32) : [m][n]f32 =
  map (\a -> map (\b -> f32.sum (map2 (*) a b)) B) A
