-- What of the prelude is written in the language itself.
-- ==
-- entry: segments
-- input { [2i64, 0i64, 3i64] }
-- output { [2i64, 0i64, 3i64] [true, false, true, false, false] [0i64, 2i64, 2i64] [0i64, 1i64, 0i64, 1i64, 2i64]
--          [4i64, 0i64, 6i64] }
-- input { empty([0]i64) } output { empty([0]i64) empty([0]bool) empty([0]i64) empty([0]i64) empty([0]i64) }
entry segments (ks: []i64) = flatmap (\k -> (iota k, 2 * k)) ks

-- ==
-- entry: elements
-- input { [1i64, 2i64] } output { [0i64, 0i64, 1i64] }
entry elements (ks: []i64) : []i64 = (flatmap' iota ks).3

-- ==
-- entry: columns
-- input { [1i32, 2i32, 3i32, 4i32, 5i32, 6i32] 0i64 } output { [[1i32, 3i32, 5i32], [2i32, 4i32, 6i32]] }
-- input { [1i32, 2i32, 3i32, 4i32, 5i32, 6i32] 1i64 } error: out of bounds
entry columns (xs: []i32) (offset: i64) : [][]i32 = intrinsics.flat_index_2d xs offset 2 1 3 2

-- ==
-- entry: updated
-- input { [1i32, 2i32, 3i32, 4i32, 5i32, 6i32] 0i64 } output { [7i32, 2i32, 8i32, 9i32, 5i32, 0i32] }
-- input { [1i32, 2i32, 3i32, 4i32, 5i32, 6i32] 1i64 } error: out of bounds
entry updated (xs: *[]i32) (offset: i64) : []i32 = intrinsics.flat_update_2d xs offset 3 2 [[7, 8], [9, 0]]
