-- Nothing is reduced.
-- ARGS: --size n=1000000
-- SHOWS: map +one thread an element
entry main [n] (xs: [n]f32) : [n]f32 = map (\x -> f32.exp x + 1) xs
