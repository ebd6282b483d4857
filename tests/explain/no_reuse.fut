-- An operand that varies along everything.
-- ARGS: --size m=512 --size n=512 --size q=512
-- SHOWS: not tiled: no dim along which a tile is used again
entry main [m][n][q] (A: [m][n][q]f32) (B: [q]f32) : [m][n]f32 =
  map (map (\a -> f32.sum (map2 (*) a B))) A
