-- Slices with a stride: (distance + stride - 1) / stride elements, rounded towards zero, so that an end less than two
-- steps before the start makes an empty slice.

-- ==
-- entry: up
-- input { [1, 2, 3, 4] 1i64 4i64 } output { [2, 4] }
-- input { [1, 2, 3, 4] 4i64 2i64 } output { empty([0]i32) }
-- input { [1, 2] 4i64 2i64 } output { empty([0]i32) }
-- input { [1, 2, 3, 4] 4i64 1i64 } error: out of bounds
-- input { [1, 2, 3, 4] 0i64 5i64 } error: out of bounds
entry up [n] (xs: [n]i32) (i: i64) (j: i64): []i32 = xs[i:j:2]

-- ==
-- entry: down
-- input { [1, 2, 3] 2i64 -1i64 } output { [3] }
-- input { [1, 2, 3] 1i64 5i64 } output { empty([0]i32) }
-- input { [1, 2, 3] 1i64 6i64 } error: out of bounds
entry down [n] (xs: [n]i32) (i: i64) (j: i64): []i32 = xs[i:j:-3]

-- ==
-- entry: by
-- input { [1, 2, 3] 3i64 1i64 2i64 } output { empty([0]i32) }
-- input { [1, 2, 3] 2i64 -1i64 -2i64 } output { [3, 1] }
-- input { [1, 2, 3] 0i64 2i64 -3i64 } output { empty([0]i32) }
-- input { [1, 2, 3] 0i64 2i64 -1i64 } error: out of bounds
-- input { [1, 2, 3] 3i64 0i64 2i64 } error: out of bounds
-- input { [1, 2, 3] 0i64 3i64 0i64 } error: out of bounds
entry by [n] (xs: [n]i32) (i: i64) (j: i64) (s: i64): []i32 = xs[i:j:s]

-- Rows and what they are backwards: a branch that reads an array from its end, in a loop of two steps.
-- ==
-- entry: rows_and_backwards
-- random input { [8][2]i64 } auto output

entry rows_and_backwards [n] (rows: [n][2]i64) = rows ++ map reverse rows

-- ==
-- entry: triples_and_backwards
-- random input { [33][3]f32 } auto output

entry triples_and_backwards [n] (rows: [n][3]f32) = rows ++ map reverse rows
