-- 64-bit integers.
-- ARGS: --size m=1024 --size n=1024 --size q=1024
-- SHOWS: mq,nq->mn +tiled
entry main [m][n][q] (A: [m][q]i64) (B: [n][q]i64) : [m][n]i64 =
  map (\a -> map (\b -> i64.sum (map2 (*) a b)) B) A
