-- Heads are merged once, by a copy that all threads share, and the product is tiled.
-- ARGS: --size b=8 --size h=16 --size n=256 --size e=64 --size m=1024
-- SHOWS: bni,mi->bnm +tiled
-- SHOWS: [0-9.]+ us +[1-9]% +6 let cat = .* map +one thread an element
entry main [b][h][n][e][m] (a: [b][h][n][e]f32) (w: [m][h*e]f32): [b][n][m]f32 =
  let cat = map (\as -> map flatten (transpose as)) a
  in map (\xr -> map (\r -> map (\v -> f32.sum (map2 (*) r v)) w) xr) cat
