-- One sum.
-- ARGS: --size n=1000000
-- SHOWS: reduction +in chunks
-- SHOWS: most would help: .*larger sizes
entry main [n] (xs: [n]f32) : f32 = f32.sum xs
