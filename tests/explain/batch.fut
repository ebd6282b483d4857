-- A batch of products.
-- ARGS: --size k=8 --size m=512 --size n=512 --size q=512
-- SHOWS: kmq,knq->kmn +tiled
entry main [k][m][n][q] (A: [k][m][q]f32) (B: [k][n][q]f32) : [k][m][n]f32 =
  map2 (\a b -> map (\x -> map (\y -> f32.sum (map2 (*) x y)) b) a) A B
