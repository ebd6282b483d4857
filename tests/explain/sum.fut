-- One sum.
-- ARGS: --size n=1000000
-- SHOWS: reduction +one kernel, shared by 488 blocks
-- SHOWS: most would help: .*larger sizes
entry main [n] (xs: [n]f32) : f32 = f32.sum xs
