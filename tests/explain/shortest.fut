-- (min, +) in place of (+, *).
-- ARGS: --size n=1024
-- SHOWS: nb,ba->na +tiled
entry main [n] (D: [n][n]i32) : [n][n]i32 =
  map (\a -> map (\b -> i32.minimum (map2 (+) a b)) (transpose D)) D
