-- A scan.
-- ARGS: --size n=1000000
-- SHOWS: scan +in chunks
entry main [n] (xs: [n]i32) : [n]i32 = scan (+) 0 xs
