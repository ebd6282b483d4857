-- A matrix by a vector.
-- ARGS: --size m=4096 --size q=4096
-- SHOWS: not tiled: no dim along which a tile is used again
-- SHOWS: most would help: .*map over one more dim
entry main [m][q] (A: [m][q]f32) (x: [q]f32) : [m]f32 =
  map (\a -> f32.sum (map2 (*) a x)) A
