-- A product of matrices.
-- ARGS: --size m=1024 --size n=1024 --size q=1024
-- SHOWS: mq,qn->mn +tiled [0-9]+ x [0-9]+ x [0-9]+
-- SHOWS: most would help: .*nothing that is known
entry main [m][n][q] (A: [m][q]f32) (B: [q][n]f32) : [m][n]f32 =
  map (\a -> map (\b -> f32.sum (map2 (*) a b)) (transpose B)) A
