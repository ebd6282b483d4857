-- An operator on rows, and what the hint says to write instead.
-- ARGS: --size m=500 --size n=500 --size d=16
-- SHOWS: not tiled: the reduction goes over rows, not elements
-- SHOWS: md,nd->mn +tiled
-- SHOWS: most would help: .*make the inner results in a line of their own
def distance [d] (a: [d]f32) (b: [d]f32) : f32 = f32.sum (map2 (\x y -> (x - y) * (x - y)) a b)
entry main [m][n][d] (A: [m][d]f32) (B: [n][d]f32) : [m]f32 =
  map (\a -> f32.minimum (map (distance a) B)) A
entry apart [m][n][d] (A: [m][d]f32) (B: [n][d]f32) : [m]f32 =
  let D = map (\a -> map (distance a) B) A
  in map f32.minimum D
