-- A histogram.
-- ARGS: --size n=1000000
-- SHOWS: histogram +in shared memory where that pays
entry main [n] (is: [n]i64) : [256]i32 = hist (+) 0 256 is (replicate n 1)
