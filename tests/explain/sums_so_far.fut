-- A scan.
-- ARGS: --size n=1000000
-- SHOWS: scan +one kernel, whose 256 blocks look back
entry main [n] (xs: [n]i32) : [n]i32 = scan (+) 0 xs
