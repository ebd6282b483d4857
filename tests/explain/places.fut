-- A scatter.
-- ARGS: --size n=1000000
-- SHOWS: scatter +one thread an index
-- SHOWS: most would help: .*larger sizes
entry main [n] (is: [n]i64) (xs: [n]f32) : [n]f32 = scatter (replicate n 0) is xs
