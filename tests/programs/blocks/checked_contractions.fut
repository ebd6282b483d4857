-- Contractions whose threads check what they read: the checks are made for all of them before.

-- Columns from a place on.
-- ==
-- entry: columns
-- input { [[1, 2, 3], [4, 5, 6]] [[1, 0], [0, 2]] 1i64 } output { [[2, 6], [5, 12]] }
-- input { [[1, 2, 3], [4, 5, 6]] [[1, 0], [0, 2]] 0i64 } output { [[1, 4], [4, 10]] }
-- input { [[1, 2, 3], [4, 5, 6]] [[1, 0], [0, 2]] 2i64 } error: out of bounds
-- input { [[1, 2, 3], [4, 5, 6]] [[1, 0], [0, 2]] -1i64 } error: out of bounds
-- input { [[1, 2, 3], [4, 5, 6]] empty([2][0]i32) 7i64 } output { empty([2][0]i32) }
entry columns [m][n][p][q] (A: [m][p]i32) (B: [q][n]i32) (s: i64): [m][n]i32 =
  tabulate_2d m n (\i j -> i32.sum (tabulate q (\k -> A[i,k+s] * B[k,j])))

-- A loop that runs as far as it is told.
-- ==
-- entry: so_far
-- input { [[1, 2], [3, 4]] [[1, 0], [0, 2]] 2i64 } output { [[1, 4], [3, 8]] }
-- input { [[1, 2], [3, 4]] [[1, 0], [0, 2]] 1i64 } output { [[1, 0], [3, 0]] }
-- input { [[1, 2], [3, 4]] [[1, 0], [0, 2]] 0i64 } output { [[0, 0], [0, 0]] }
-- input { [[1, 2], [3, 4]] [[1, 0], [0, 2]] -3i64 } output { [[0, 0], [0, 0]] }
-- input { [[1, 2], [3, 4]] [[1, 0], [0, 2]] 3i64 } error: out of bounds
entry so_far [m][n][q] (A: [m][q]i32) (B: [q][n]i32) (l: i64): [m][n]i32 =
  tabulate_2d m n (\i j -> loop acc = 0 for k < l do acc + A[i,k] * B[k,j])

-- A condition of one operand, and one of the result.
-- ==
-- entry: weighted
-- input { [[1, 2], [3, 4]] [[1, 0], [0, 2]] } output { [[1, 4], [3, 8]] }
-- input { [[1, 2], [3, 4]] [[1, 0], [-1, 2]] } error: y >= 0
-- input { empty([0][2]i32) [[1, 0], [-1, 2]] } output { empty([0][2]i32) }
entry weighted [m][n][q] (A: [m][q]i32) (B: [q][n]i32): [m][n]i32 =
  map (\row -> map (\col -> i32.sum (map2 (\x y -> x * (assert (y >= 0) y)) row col)) (transpose B)) A

-- ==
-- entry: positive
-- input { [[1, 2], [3, 4]] [[1, 0], [0, 2]] } output { [[1, 4], [3, 8]] }
-- input { [[1, 2], [3, 4]] [[1, 0], [0, -2]] } error: r >= 0
entry positive [m][n][q] (A: [m][q]i32) (B: [q][n]i32): [m][n]i32 =
  tabulate_2d m n (\i j -> let r = i32.sum (tabulate q (\k -> A[i,k] * B[k,j])) in assert (r >= 0) r)
