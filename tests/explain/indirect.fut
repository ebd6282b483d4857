-- Rows picked by elements of an array that elements of an array pick, inside of the sum.
-- ARGS: --size m=512 --size n=512 --size q=512
-- SHOWS: not tiled: an index is read from an array
-- SHOWS: most would help: .*gather the elements
entry main [m][n][q] (A: [m][q]f32) (B: [q][n]f32) (is: [q]i64) : [m][n]f32 =
  map (\a -> tabulate n (\j -> f32.sum (map2 (\x i -> x * #[unsafe] B[is[i], j]) a is))) A
