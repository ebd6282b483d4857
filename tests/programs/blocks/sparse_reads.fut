-- Sparse operands that are read at two places, behind a guard, as a whole, or at single elements: what comes out is what
-- comes out without the attribute.

def mm [n][m][k] (P: [n][m]i32) (Q: [m][k]i32): [n][k]i32 =
  map (\r -> map (\c -> i32.sum (map2 (*) r c)) (transpose Q)) P

-- Products of a matrix with itself, in all turns.
#[sparse(A)]
entry square [n] (A: [n][n]i32): [n][n]i32 = mm A A

#[sparse(A)]
entry squares_of_turned [n][m] (A: [n][m]i32): ([n][n]i32, [m][m]i32) = (mm A (transpose A), mm (transpose A) A)

#[sparse(A)]
entry turned_square [n] (A: [n][n]i32): [n][n]i32 = mm (transpose A) (transpose A)

#[sparse(A)]
entry twice [n][b] (A: [n][n]i32) (X: [n][b]i32): [n][b]i32 = mm (mm A A) X

#[sparse(A)] #[sparse(B)]
entry of_two [n][m][k] (A: [n][m]i32) (B: [m][k]i32): [n][k]i32 = mm A B

#[sparse(A)]
entry scaled_between [n][m] (A: [n][m]i32) (d: [n]i32): [m][m]i32 = mm (transpose A) (map2 (\r x -> map (* x) r) A d)

#[sparse(A)]
entry triangles [n] (A: [n][n]i32): i32 = i32.sum (flatten (map2 (map2 (*)) A (mm A A)))

#[sparse(A)]
entry symmetric_part [n] (A: [n][n]i32): [n][n]i32 = map2 (map2 (*)) A (transpose A)

-- An absent element is no way; the shortest of two steps.
#[sparse(A)]
entry two_steps [n] (A: [n][n]i32): [n][n]i32 =
  let plus a b = if a == 0 || b == 0 then i32.highest else a + b
  in map (\r -> map (\c -> i32.minimum (map2 plus r c)) (transpose A)) A

-- Nothing is known of absent elements of the second operand.
#[sparse(A)]
entry not_of_both [n] (A: [n][n]i32): [n][n]i32 =
  map (\r -> map (\c -> i32.sum (map2 (\a b -> a * (b + 1)) r c)) (transpose A)) A

#[sparse(A)]
entry square_and_itself [n] (A: [n][n]i32): [n][n]i32 = map2 (map2 (+)) A (mm A A)

-- 0 divided by a number that is not 0.
#[sparse(A)]
entry mean [n][m][k] (A: [n][m]f32) (X: [m][k]f32): [n][k]f32 =
  let d = map f32.sum A
  let W = map2 (\r d -> map (\a -> if d == 0 then 0 else a / d) r) A d
  in map (\r -> map (\c -> f32.sum (map2 (*) r c)) (transpose X)) W

#[sparse(A)]
entry mean_of_integers [n][m] (A: [n][m]i32) (x: [m]i32): [n]i32 =
  map (\r -> let d = i32.sum r in if d > 0 then i32.sum (map2 (\a x -> a / d * x) r x) else 0) A

#[sparse(A)]
entry guards [n][m] (A: [n][m]f32) (x: [n]f32): [n]f32 =
  map2 (\r d -> let not_zero = if d == 0 then 1 else d
                in f32.sum (map (\a -> a / f32.max d 1) r)
                   + (if d < 0 || d > 0 then f32.sum (map (/ d) r) else 0)
                   + f32.sum (map (/ not_zero) r)) A x

-- Without a guard 0 / 0 is not 0.
#[sparse(A)]
entry without_guard [n][m] (A: [n][m]f32) (x: [n]f32): [n]bool =
  map2 (\r d -> f32.isnan (f32.sum (map (/ d) r))) A x

-- All elements, those of the diagonal, and single ones.
#[sparse(A)]
entry norms [n][m] (A: [n][m]i32): (i32, i32, i32, i64) =
  (i32.sum (map (\a -> a * a) (flatten A)), i32.maximum (map i32.abs (flatten A)), i32.minimum (flatten A),
   i64.sum (map (\a -> i64.bool (a != 0)) (flatten A)))

#[sparse(A)]
entry rows_and_columns [n][m] (A: [n][m]i32): ([n]i32, [m]i32, [n]i32, [m]i32) =
  (map i32.maximum A, map i32.minimum (transpose A), map i32.sum A, map i32.sum (transpose A))

-- The first one of several, the last one, and where elements are negative.
def larger (x: i32, i: i64) (y: i32, j: i64) = if x > y || (x == y && i < j) then (x, i) else (y, j)
def larger_or_later (x: i32, i: i64) (y: i32, j: i64) = if x > y || (x == y && i > j) then (x, i) else (y, j)
#[sparse(A)]
entry largest_at [n][m] (A: [n][m]i32): (i32, i64, i32, i64) =
  let (x, i) = reduce_comm larger (i32.lowest, -1) (zip (flatten A) (iota (n * m)))
  let (y, j) = reduce_comm larger_or_later (i32.lowest, -1) (zip (flatten A) (iota (n * m)))
  in (x, i, y, j)

#[sparse(A)]
entry rows_largest_at [n][m] (A: [n][m]i32): ([n]i32, [n]i64) =
  unzip (map (\r -> reduce larger (i32.lowest, -1) (zip r (iota m))) A)

-- Terms that are no neutral element and cannot be one for many: a dense copy.
#[sparse(A)]
entry sum_of_next [n][m] (A: [n][m]i32): i32 = i32.sum (map (+ 1) (flatten A))

#[sparse(A)]
entry diagonal [n] (A: [n][n]i32): ([n]i32, i32) = (map (\i -> A[i, i]) (iota n), i32.sum (map (\i -> A[i, i]) (iota n)))

#[sparse(A)]
entry picked [n][m][q] (A: [n][m]i32) (is: [q]i64) (js: [q]i64): [q]i32 = map2 (\i j -> A[i, j]) is js

#[sparse(A)]
entry one_of_them [n][m] (A: [n][m]i32) (i: i64) (j: i64): i32 = A[i, j]

#[sparse(A)]
entry row_by_number [n][m] (A: [n][m]i32) (i: i64): [m]i32 = map (+ 1) A[i]

#[sparse(A)]
entry neighbours [n] (A: [n][n]i32): [n]i32 =
  tabulate n (\i -> if i + 1 < n then i32.sum (map2 (*) A[i] A[i + 1]) else i32.sum A[i])

#[sparse(A)]
entry batches [n][m][h] (A: [n][m]i32) (B: [h][n][m]i32): [h]i32 = map (\B -> i32.sum (map2 (*) (flatten A) (flatten B))) B

#[sparse(A)]
entry columns_of_rows [n][m] (A: [n][m]i32) (x: [n][m]i32): i32 =
  i32.sum (map2 (\c y -> i32.maximum (map2 (*) c y)) (transpose A) (transpose x))

-- ==
-- entry: square
-- input { [[1i32, -1i32, 0i32], [0i32, 2i32, 1i32], [0i32, -2i32, 0i32]] }
-- output { [[1i32, -3i32, -1i32], [0i32, 2i32, 2i32], [0i32, -4i32, -2i32]] }
-- input { [[-1i32, 2i32, 0i32, 3i32, 1i32], [0i32, -1i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 3i32, 3i32, 0i32]] }
-- output { [[1i32, -4i32, 3i32, 0i32, -1i32], [0i32, 1i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32]] }
-- input { [[0i32]] }
-- output { [[0i32]] }
-- input { empty([0][0]i32) }
-- output { empty([0][0]i32) }
-- input { [[-2i32, -1i32, -2i32, 2i32], [3i32, 3i32, -2i32, -1i32], [-2i32, -1i32, -2i32, 1i32], [-1i32, 2i32, -1i32, -1i32]] }
-- output { [[3i32, 5i32, 8i32, -7i32], [8i32, 6i32, -7i32, 2i32], [4i32, 3i32, 9i32, -6i32], [11i32, 6i32, 1i32, -4i32]] }

-- ==
-- entry: squares_of_turned
-- input { [[0i32, 3i32, -2i32, 2i32], [0i32, -1i32, 0i32, 0i32], [-2i32, 0i32, 2i32, 2i32]] }
-- output { [[17i32, -3i32, 0i32], [-3i32, 1i32, 0i32], [0i32, 0i32, 12i32]] [[4i32, 0i32, -4i32, -4i32], [0i32, 10i32, -6i32, 6i32], [-4i32, -6i32, 8i32, 0i32], [-4i32, 6i32, 0i32, 8i32]] }
-- input { [[0i32, 0i32, 0i32], [0i32, -2i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32]] }
-- output { [[0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 4i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32]] [[0i32, 0i32, 0i32], [0i32, 4i32, 0i32], [0i32, 0i32, 0i32]] }
-- input { [[0i32]] }
-- output { [[0i32]] [[0i32]] }
-- input { empty([0][3]i32) }
-- output { empty([0][0]i32) [[0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32]] }
-- input { [[-2i32, 2i32], [-2i32, -2i32], [2i32, -1i32], [1i32, -1i32]] }
-- output { [[8i32, 0i32, -6i32, -4i32], [0i32, 8i32, -2i32, 0i32], [-6i32, -2i32, 5i32, 3i32], [-4i32, 0i32, 3i32, 2i32]] [[13i32, -3i32], [-3i32, 10i32]] }

-- ==
-- entry: turned_square
-- input { [[0i32, 0i32, -2i32], [0i32, 0i32, 0i32], [-2i32, 0i32, 0i32]] }
-- output { [[4i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 4i32]] }
-- input { [[0i32, 2i32, 0i32, 0i32, 1i32], [0i32, 0i32, 0i32, 1i32, 1i32], [0i32, 0i32, 3i32, -2i32, 3i32], [2i32, 2i32, 0i32, 0i32, 3i32], [0i32, 3i32, 0i32, 0i32, 1i32]] }
-- output { [[0i32, 2i32, -4i32, 0i32, 0i32], [3i32, 5i32, 5i32, 13i32, 3i32], [0i32, 0i32, 9i32, 0i32, 0i32], [2i32, 0i32, -6i32, 2i32, 3i32], [3i32, 4i32, 6i32, 7i32, 4i32]] }
-- input { [[0i32]] }
-- output { [[0i32]] }
-- input { empty([0][0]i32) }
-- output { empty([0][0]i32) }
-- input { [[-2i32, 2i32, -2i32, -1i32], [1i32, 2i32, 1i32, -1i32], [2i32, 1i32, 2i32, -1i32], [-2i32, -1i32, -2i32, 2i32]] }
-- output { [[4i32, 4i32, 3i32, -5i32], [-1i32, 8i32, 9i32, -10i32], [4i32, 4i32, 3i32, -5i32], [0i32, -6i32, -7i32, 9i32]] }

-- ==
-- entry: twice
-- input { [[0i32, 0i32, 0i32], [0i32, 0i32, -2i32], [0i32, 0i32, 0i32]] [[2i32, 1i32, 1i32], [3i32, -1i32, 2i32], [1i32, 2i32, -2i32]] }
-- output { [[0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32]] }
-- input { [[0i32, 0i32, 0i32, 0i32, 0i32], [2i32, 0i32, -1i32, 0i32, 0i32], [0i32, 0i32, 0i32, -2i32, 0i32], [0i32, 2i32, 0i32, 0i32, 0i32], [-1i32, 1i32, 0i32, 0i32, 0i32]] [[-2i32, -2i32, 1i32], [2i32, -2i32, 3i32], [3i32, 3i32, 2i32], [-2i32, -1i32, -2i32], [3i32, 1i32, 2i32]] }
-- output { [[0i32, 0i32, 0i32], [-4i32, -2i32, -4i32], [-8i32, 8i32, -12i32], [-14i32, -14i32, 0i32], [-7i32, -7i32, 0i32]] }
-- input { [[0i32]] [[-2i32, -1i32, -2i32]] }
-- output { [[0i32, 0i32, 0i32]] }
-- input { empty([0][0]i32) empty([0][3]i32) }
-- output { empty([0][3]i32) }
-- input { [[2i32, -2i32, 1i32, 3i32], [3i32, 3i32, -2i32, -2i32], [1i32, -1i32, 3i32, 1i32], [1i32, 3i32, 1i32, -2i32]] [[1i32, 1i32, -2i32], [1i32, 2i32, 1i32], [-1i32, -2i32, 3i32], [-1i32, 2i32, 1i32]] }
-- output { [[-17i32, -16i32, 35i32], [16i32, 41i32, -51i32], [-21i32, -21i32, 34i32], [12i32, 22i32, -30i32]] }

-- ==
-- entry: of_two
-- input { [[3i32, 0i32, -1i32, 1i32], [3i32, 0i32, 0i32, 2i32], [0i32, 0i32, 0i32, 0i32]] [[0i32, 2i32, 0i32, 2i32], [3i32, -1i32, -2i32, 0i32], [0i32, 3i32, 2i32, -2i32], [0i32, 3i32, -2i32, 0i32]] }
-- output { [[0i32, 6i32, -4i32, 8i32], [0i32, 12i32, -4i32, 6i32], [0i32, 0i32, 0i32, 0i32]] }
-- input { [[0i32, 1i32, 0i32], [0i32, 1i32, 0i32], [1i32, 3i32, 0i32], [0i32, -2i32, 0i32], [0i32, 0i32, 0i32]] [[2i32, 0i32, 0i32, 0i32], [-2i32, 0i32, 0i32, 2i32], [1i32, 0i32, 0i32, 0i32]] }
-- output { [[-2i32, 0i32, 0i32, 2i32], [-2i32, 0i32, 0i32, 2i32], [-4i32, 0i32, 0i32, 6i32], [4i32, 0i32, 0i32, -4i32], [0i32, 0i32, 0i32, 0i32]] }
-- input { [[0i32]] [[0i32, 0i32, 0i32, 0i32]] }
-- output { [[0i32, 0i32, 0i32, 0i32]] }
-- input { empty([0][3]i32) [[0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32]] }
-- output { empty([0][4]i32) }
-- input { [[1i32, -1i32], [3i32, 2i32], [3i32, -1i32], [1i32, -1i32]] [[-2i32, 1i32, 1i32, 3i32], [-2i32, 2i32, -2i32, 2i32]] }
-- output { [[0i32, -1i32, 3i32, 1i32], [-10i32, 7i32, -1i32, 13i32], [-4i32, 1i32, 5i32, 7i32], [0i32, -1i32, 3i32, 1i32]] }

-- ==
-- entry: scaled_between
-- input { [[3i32, -1i32, 1i32, 1i32], [3i32, 0i32, 0i32, 0i32], [0i32, 0i32, -1i32, 0i32]] [0i32, 2i32, 1i32] }
-- output { [[18i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 1i32, 0i32], [0i32, 0i32, 0i32, 0i32]] }
-- input { [[0i32, 0i32, 0i32], [0i32, 0i32, 1i32], [0i32, 0i32, 0i32], [0i32, 0i32, 3i32], [0i32, 0i32, 0i32]] [2i32, 2i32, 2i32, 1i32, 2i32] }
-- output { [[0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 11i32]] }
-- input { [[0i32]] [0i32] }
-- output { [[0i32]] }
-- input { empty([0][3]i32) empty([0]i32) }
-- output { [[0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32]] }
-- input { [[-2i32, -2i32], [-2i32, -1i32], [2i32, 2i32], [3i32, -1i32]] [0i32, 2i32, 2i32, 0i32] }
-- output { [[16i32, 12i32], [12i32, 10i32]] }

-- ==
-- entry: triangles
-- input { [[0i32, 3i32, 2i32], [0i32, 0i32, 0i32], [3i32, 0i32, 1i32]] }
-- output { 20i32 }
-- input { [[0i32, -2i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 3i32, 0i32, 0i32, 0i32], [-1i32, 0i32, 0i32, 3i32, -1i32], [0i32, 2i32, 0i32, 0i32, -2i32]] }
-- output { 15i32 }
-- input { [[0i32]] }
-- output { 0i32 }
-- input { empty([0][0]i32) }
-- output { 0i32 }
-- input { [[3i32, 2i32, 2i32, 3i32], [2i32, -2i32, 2i32, 3i32], [3i32, -2i32, 3i32, -1i32], [2i32, -2i32, 3i32, -1i32]] }
-- output { 263i32 }

-- ==
-- entry: symmetric_part
-- input { [[0i32, 2i32, 0i32], [3i32, 0i32, 0i32], [-2i32, 0i32, 0i32]] }
-- output { [[0i32, 6i32, 0i32], [6i32, 0i32, 0i32], [0i32, 0i32, 0i32]] }
-- input { [[0i32, 0i32, 0i32, -2i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [-1i32, 0i32, 0i32, 0i32, 0i32], [0i32, -1i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, -1i32]] }
-- output { [[0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 1i32]] }
-- input { [[0i32]] }
-- output { [[0i32]] }
-- input { empty([0][0]i32) }
-- output { empty([0][0]i32) }
-- input { [[-2i32, -1i32, 3i32, 2i32], [-1i32, -2i32, -2i32, 2i32], [3i32, -2i32, 1i32, -1i32], [-2i32, -1i32, -1i32, 3i32]] }
-- output { [[4i32, 1i32, 9i32, -4i32], [1i32, 4i32, 4i32, -2i32], [9i32, 4i32, 1i32, 1i32], [-4i32, -2i32, 1i32, 9i32]] }

-- ==
-- entry: two_steps
-- input { [[0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32]] }
-- output { [[2147483647i32, 2147483647i32, 2147483647i32], [2147483647i32, 2147483647i32, 2147483647i32], [2147483647i32, 2147483647i32, 2147483647i32]] }
-- input { [[0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, -1i32, 0i32, 0i32, 3i32], [0i32, 0i32, -2i32, -2i32, 0i32], [0i32, 0i32, -2i32, 0i32, 1i32]] }
-- output { [[2147483647i32, 2147483647i32, 2147483647i32, 2147483647i32, 2147483647i32], [2147483647i32, 2147483647i32, 2147483647i32, 2147483647i32, 2147483647i32], [2147483647i32, 2147483647i32, 1i32, 2147483647i32, 4i32], [2147483647i32, -3i32, -4i32, -4i32, 1i32], [2147483647i32, -3i32, -1i32, 2147483647i32, 1i32]] }
-- input { [[0i32]] }
-- output { [[2147483647i32]] }
-- input { empty([0][0]i32) }
-- output { empty([0][0]i32) }
-- input { [[3i32, -2i32, 3i32, 2i32], [-2i32, 2i32, 2i32, 3i32], [3i32, 1i32, 1i32, -2i32], [3i32, -1i32, -2i32, -2i32]] }
-- output { [[-4i32, 0i32, 0i32, 0i32], [0i32, -4i32, 1i32, 0i32], [-1i32, -3i32, -4i32, -4i32], [-3i32, -3i32, -4i32, -4i32]] }

-- ==
-- entry: not_of_both
-- input { [[0i32, -2i32, -2i32], [0i32, -1i32, 3i32], [0i32, 2i32, -2i32]] }
-- output { [[-4i32, -6i32, -6i32], [2i32, 9i32, -7i32], [0i32, -6i32, 10i32]] }
-- input { [[0i32, 0i32, -2i32, 0i32, 0i32], [0i32, 3i32, 2i32, 0i32, 0i32], [0i32, 0i32, 3i32, 0i32, 2i32], [0i32, 0i32, 0i32, 0i32, 2i32], [0i32, 0i32, -1i32, 0i32, 0i32]] }
-- output { [[-2i32, -2i32, -8i32, -2i32, -6i32], [5i32, 14i32, 17i32, 5i32, 9i32], [5i32, 5i32, 12i32, 5i32, 11i32], [2i32, 2i32, 0i32, 2i32, 2i32], [-1i32, -1i32, -4i32, -1i32, -3i32]] }
-- input { [[0i32]] }
-- output { [[0i32]] }
-- input { empty([0][0]i32) }
-- output { empty([0][0]i32) }
-- input { [[1i32, 1i32, -2i32, 1i32], [2i32, 1i32, -1i32, -2i32], [-2i32, -1i32, 3i32, 3i32], [1i32, -2i32, 2i32, 1i32]] }
-- output { [[9i32, 3i32, -6i32, -5i32], [4i32, 8i32, -12i32, -5i32], [-4i32, -9i32, 23i32, 15i32], [-4i32, -3i32, 10i32, 14i32]] }

-- ==
-- entry: square_and_itself
-- input { [[2i32, 0i32, 2i32], [0i32, 3i32, 0i32], [0i32, 3i32, -2i32]] }
-- output { [[6i32, 6i32, 2i32], [0i32, 12i32, 0i32], [0i32, 6i32, 2i32]] }
-- input { [[2i32, 0i32, 1i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 1i32, 2i32, 0i32, 0i32], [0i32, 1i32, 0i32, 0i32, 0i32], [1i32, 0i32, 3i32, 0i32, 0i32]] }
-- output { [[6i32, 1i32, 5i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [0i32, 3i32, 6i32, 0i32, 0i32], [0i32, 1i32, 0i32, 0i32, 0i32], [3i32, 3i32, 10i32, 0i32, 0i32]] }
-- input { [[0i32]] }
-- output { [[0i32]] }
-- input { empty([0][0]i32) }
-- output { empty([0][0]i32) }
-- input { [[-1i32, 2i32, 3i32, 2i32], [-1i32, -1i32, 3i32, 3i32], [3i32, 2i32, 2i32, 1i32], [-2i32, -2i32, 2i32, 3i32]] }
-- output { [[3i32, 0i32, 16i32, 15i32], [4i32, -2i32, 9i32, 10i32], [2i32, 8i32, 23i32, 18i32], [2i32, -6i32, 0i32, 4i32]] }

-- ==
-- entry: mean
-- input { [[0.0f32, 0.0f32, 0.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32, 0.0f32], [0.0f32, 0.0f32, 3.0f32, 0.0f32]] [[1.0f32, 1.0f32], [2.0f32, 1.0f32], [1.0f32, -2.0f32], [3.0f32, 3.0f32]] }
-- output { [[0.0f32, 0.0f32], [0.0f32, 0.0f32], [1.0f32, -2.0f32]] }
-- input { [[-2.0f32, 2.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32], [0.0f32, 3.0f32, 0.0f32], [1.0f32, 0.0f32, 3.0f32], [0.0f32, -1.0f32, 0.0f32]] [[3.0f32, 2.0f32], [2.0f32, 3.0f32], [-1.0f32, -2.0f32]] }
-- output { [[0.0f32, 0.0f32], [0.0f32, 0.0f32], [2.0f32, 3.0f32], [0.0f32, -1.0f32], [2.0f32, 3.0f32]] }
-- input { [[0.0f32]] [[-1.0f32, -2.0f32]] }
-- output { [[0.0f32, 0.0f32]] }
-- input { empty([0][3]f32) [[-2.0f32, -2.0f32], [3.0f32, 2.0f32], [-2.0f32, -1.0f32]] }
-- output { empty([0][2]f32) }
-- input { [[3.0f32, 2.0f32], [-2.0f32, 1.0f32], [1.0f32, 3.0f32], [-2.0f32, 3.0f32]] [[3.0f32, 3.0f32], [-2.0f32, -2.0f32]] }
-- output { [[1.0f32, 1.0f32], [8.0f32, 8.0f32], [-0.75f32, -0.75f32], [-12.0f32, -12.0f32]] }

-- ==
-- entry: mean_of_integers
-- input { [[3i32, 0i32, 3i32, 0i32], [0i32, -1i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32]] [1i32, 1i32, 1i32, -3i32] }
-- output { [0i32, 0i32, 0i32] }
-- input { [[0i32, 0i32, 2i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [2i32, 2i32, 0i32]] [1i32, 1i32, 2i32] }
-- output { [2i32, 0i32, 0i32, 0i32, 0i32] }
-- input { [[0i32]] [-3i32] }
-- output { [0i32] }
-- input { empty([0][3]i32) [1i32, 1i32, -3i32] }
-- output { empty([0]i32) }
-- input { [[3i32, 1i32], [2i32, 3i32], [1i32, -2i32], [-2i32, 1i32]] [1i32, 1i32] }
-- output { [0i32, 0i32, 0i32, 0i32] }

-- ==
-- entry: guards
-- input { [[0.0f32, -1.0f32, 3.0f32, 0.0f32], [0.0f32, 0.0f32, 2.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32, 0.0f32]] [4.0f32, 1.0f32, -2.0f32] }
-- output { [1.5f32, 6.0f32, 0.0f32] }
-- input { [[0.0f32, 0.0f32, 0.0f32], [2.0f32, -2.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32], [-1.0f32, 3.0f32, 0.0f32]] [0.0f32, 4.0f32, 0.0f32, 2.0f32, 4.0f32] }
-- output { [0.0f32, 0.0f32, 0.0f32, 0.0f32, 1.5f32] }
-- input { [[0.0f32]] [2.0f32] }
-- output { [0.0f32] }
-- input { empty([0][3]f32) empty([0]f32) }
-- output { empty([0]f32) }
-- input { [[-2.0f32, -2.0f32], [-2.0f32, 3.0f32], [-2.0f32, -1.0f32], [-2.0f32, -2.0f32]] [-2.0f32, 4.0f32, 4.0f32, 2.0f32] }
-- output { [0.0f32, 0.75f32, -2.25f32, -6.0f32] }

-- ==
-- entry: without_guard
-- input { [[0.0f32, -1.0f32, 0.0f32, 0.0f32], [0.0f32, 1.0f32, 0.0f32, 0.0f32], [0.0f32, -1.0f32, 1.0f32, 0.0f32]] [0.0f32, 0.0f32, 1.0f32] }
-- output { [true, true, false] }
-- input { [[3.0f32, 0.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32], [0.0f32, 3.0f32, 2.0f32], [2.0f32, 0.0f32, 0.0f32], [3.0f32, 0.0f32, 0.0f32]] [1.0f32, 1.0f32, 1.0f32, 1.0f32, 1.0f32] }
-- output { [false, false, false, false, false] }
-- input { [[0.0f32]] [1.0f32] }
-- output { [false] }
-- input { empty([0][3]f32) empty([0]f32) }
-- output { empty([0]bool) }
-- input { [[2.0f32, -1.0f32], [-1.0f32, -1.0f32], [1.0f32, 1.0f32], [2.0f32, 2.0f32]] [0.0f32, 0.0f32, 0.0f32, 0.0f32] }
-- output { [true, false, false, false] }

-- ==
-- entry: norms
-- input { [[-1i32, 0i32, 2i32, 0i32], [-2i32, 0i32, 2i32, 0i32], [1i32, 0i32, 0i32, 0i32]] }
-- output { 14i32 2i32 -2i32 5i64 }
-- input { [[0i32, 0i32, 0i32], [1i32, 0i32, 0i32], [-1i32, -1i32, -2i32], [0i32, 0i32, 0i32], [0i32, -2i32, 0i32]] }
-- output { 11i32 2i32 -2i32 5i64 }
-- input { [[0i32]] }
-- output { 0i32 0i32 0i32 0i64 }
-- input { empty([0][3]i32) }
-- output { 0i32 -2147483648i32 2147483647i32 0i64 }
-- input { [[-2i32, 3i32], [-1i32, -2i32], [3i32, -1i32], [-2i32, 2i32]] }
-- output { 36i32 3i32 -2i32 8i64 }

-- ==
-- entry: rows_and_columns
-- input { [[0i32, 0i32, 0i32, 3i32], [0i32, 0i32, -2i32, 0i32], [1i32, 3i32, 2i32, 0i32]] }
-- output { [3i32, 0i32, 3i32] [0i32, 0i32, -2i32, 0i32] [3i32, -2i32, 6i32] [1i32, 3i32, 0i32, 3i32] }
-- input { [[2i32, 0i32, 0i32], [0i32, -2i32, 0i32], [0i32, -1i32, 0i32], [2i32, 0i32, 0i32], [2i32, 0i32, -2i32]] }
-- output { [2i32, 0i32, 0i32, 2i32, 2i32] [0i32, -2i32, -2i32] [2i32, -2i32, -1i32, 2i32, 0i32] [6i32, -3i32, -2i32] }
-- input { [[0i32]] }
-- output { [0i32] [0i32] [0i32] [0i32] }
-- input { empty([0][3]i32) }
-- output { empty([0]i32) [2147483647i32, 2147483647i32, 2147483647i32] empty([0]i32) [0i32, 0i32, 0i32] }
-- input { [[-2i32, 2i32], [1i32, -2i32], [3i32, -2i32], [2i32, 2i32]] }
-- output { [2i32, 1i32, 3i32, 2i32] [-2i32, -2i32] [0i32, -1i32, 1i32, 4i32] [4i32, 0i32] }

-- ==
-- entry: largest_at
-- input { [[-1i32, 0i32, 2i32, 0i32], [-2i32, 0i32, 2i32, 0i32], [2i32, 0i32, 0i32, 3i32]] }
-- output { 3i32 11i64 3i32 11i64 }
-- input { [[1i32, 0i32, 0i32], [2i32, 3i32, -2i32], [0i32, 3i32, 3i32], [0i32, -2i32, 1i32], [1i32, 2i32, 1i32]] }
-- output { 3i32 4i64 3i32 8i64 }
-- input { [[0i32]] }
-- output { 0i32 0i64 0i32 0i64 }
-- input { empty([0][3]i32) }
-- output { -2147483648i32 -1i64 -2147483648i32 -1i64 }
-- input { [[1i32, 2i32], [-1i32, 3i32], [2i32, 1i32], [3i32, 3i32]] }
-- output { 3i32 3i64 3i32 7i64 }

-- ==
-- entry: rows_largest_at
-- input { [[3i32, 0i32, 2i32, 0i32], [0i32, 0i32, 0i32, 0i32], [0i32, 0i32, 0i32, 2i32]] }
-- output { [3i32, 0i32, 2i32] [0i64, 0i64, 3i64] }
-- input { [[0i32, 0i32, -2i32], [2i32, -1i32, 1i32], [3i32, 0i32, 2i32], [0i32, 3i32, -2i32], [0i32, 0i32, 0i32]] }
-- output { [0i32, 2i32, 3i32, 3i32, 0i32] [0i64, 0i64, 0i64, 1i64, 0i64] }
-- input { [[0i32]] }
-- output { [0i32] [0i64] }
-- input { empty([0][3]i32) }
-- output { empty([0]i32) empty([0]i64) }
-- input { [[-2i32, 1i32], [-2i32, 3i32], [-1i32, 2i32], [2i32, 1i32]] }
-- output { [1i32, 3i32, 2i32, 2i32] [1i64, 1i64, 1i64, 0i64] }

-- ==
-- entry: sum_of_next
-- input { [[0i32, 2i32, 0i32, 0i32], [0i32, 3i32, -1i32, 0i32], [0i32, 0i32, 3i32, 0i32]] }
-- output { 19i32 }
-- input { [[0i32, 0i32, 1i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32]] }
-- output { 16i32 }
-- input { [[0i32]] }
-- output { 1i32 }
-- input { empty([0][3]i32) }
-- output { 0i32 }
-- input { [[-1i32, 1i32], [1i32, 1i32], [1i32, -2i32], [2i32, -2i32]] }
-- output { 9i32 }

-- ==
-- entry: diagonal
-- input { [[0i32, 3i32, 0i32], [0i32, 0i32, -1i32], [0i32, -2i32, -2i32]] }
-- output { [0i32, 0i32, -2i32] -2i32 }
-- input { [[0i32, 0i32, 1i32, 0i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32], [-1i32, 0i32, 0i32, 0i32, 0i32], [0i32, -2i32, 0i32, 1i32, 0i32], [-1i32, 0i32, 0i32, -2i32, 2i32]] }
-- output { [0i32, 0i32, 0i32, 1i32, 2i32] 3i32 }
-- input { [[0i32]] }
-- output { [0i32] 0i32 }
-- input { empty([0][0]i32) }
-- output { empty([0]i32) 0i32 }
-- input { [[2i32, -1i32, 2i32, 1i32], [2i32, 3i32, 3i32, 2i32], [-1i32, -1i32, 3i32, -1i32], [2i32, -1i32, -1i32, -1i32]] }
-- output { [2i32, 3i32, 3i32, -1i32] 7i32 }

-- ==
-- entry: picked
-- input { [[0i32, 0i32, 0i32, 0i32], [-1i32, 0i32, 0i32, 0i32], [0i32, 0i32, -2i32, 0i32]] [1i64, 0i64, 0i64, 2i64, 0i64] [2i64, 0i64, 3i64, 3i64, 1i64] }
-- output { [0i32, 0i32, 0i32, 0i32, 0i32] }
-- input { [[0i32, 0i32, 2i32], [0i32, 0i32, 0i32], [0i32, -2i32, 0i32], [0i32, -2i32, 2i32], [0i32, 0i32, 0i32]] [1i64, 4i64, 4i64, 4i64, 0i64] [0i64, 1i64, 1i64, 0i64, 2i64] }
-- output { [0i32, 0i32, 0i32, 0i32, 2i32] }
-- input { [[0i32]] [0i64, 0i64, 0i64, 0i64, 0i64] [0i64, 0i64, 0i64, 0i64, 0i64] }
-- output { [0i32, 0i32, 0i32, 0i32, 0i32] }
-- input { [[3i32, -1i32], [2i32, -2i32], [2i32, -2i32], [3i32, -2i32]] [3i64, 3i64, 1i64, 3i64, 3i64] [0i64, 1i64, 1i64, 1i64, 0i64] }
-- output { [3i32, -2i32, -2i32, -2i32, 3i32] }

-- ==
-- entry: one_of_them
-- input { [[3i32, 0i32, 0i32, 0i32], [0i32, 2i32, 3i32, 3i32], [0i32, 2i32, 0i32, 1i32]] 2i64 1i64 }
-- output { 2i32 }
-- input { [[0i32, 0i32, 2i32], [0i32, 0i32, 1i32], [1i32, -1i32, 0i32], [0i32, 0i32, -2i32], [0i32, 0i32, 0i32]] 1i64 1i64 }
-- output { 0i32 }
-- input { [[0i32]] 0i64 0i64 }
-- output { 0i32 }
-- input { [[2i32, 2i32], [3i32, 2i32], [3i32, -1i32], [-2i32, 3i32]] 0i64 1i64 }
-- output { 2i32 }

-- ==
-- entry: row_by_number
-- input { [[-1i32, -2i32, 0i32, 0i32], [0i32, 1i32, 3i32, 2i32], [0i32, 0i32, -1i32, 0i32]] 0i64 }
-- output { [0i32, -1i32, 1i32, 1i32] }
-- input { [[0i32, 0i32, 0i32], [0i32, 0i32, -1i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32], [0i32, 0i32, 0i32]] 3i64 }
-- output { [1i32, 1i32, 1i32] }
-- input { [[0i32]] 0i64 }
-- output { [1i32] }
-- input { [[3i32, 1i32], [2i32, -2i32], [-2i32, 2i32], [-1i32, 3i32]] 3i64 }
-- output { [0i32, 4i32] }

-- ==
-- entry: neighbours
-- input { [[-1i32, 2i32, 1i32], [0i32, 2i32, -2i32], [0i32, 2i32, 1i32]] }
-- output { [2i32, 2i32, 3i32] }
-- input { [[0i32, 0i32, 2i32, 0i32, -2i32], [0i32, 0i32, -2i32, 0i32, 0i32], [1i32, 0i32, 0i32, 2i32, 0i32], [0i32, 0i32, 0i32, -2i32, 0i32], [0i32, 0i32, 0i32, 0i32, 0i32]] }
-- output { [-4i32, 0i32, -4i32, 0i32, 0i32] }
-- input { [[0i32]] }
-- output { [0i32] }
-- input { empty([0][0]i32) }
-- output { empty([0]i32) }
-- input { [[-1i32, 1i32, -2i32, -1i32], [1i32, -1i32, 3i32, -2i32], [3i32, 2i32, -2i32, -2i32], [-2i32, 3i32, 1i32, -2i32]] }
-- output { [-6i32, -1i32, 2i32, 0i32] }

-- ==
-- entry: batches
-- input { [[0i32, 0i32, 0i32, 0i32], [0i32, 0i32, -2i32, 0i32], [3i32, 3i32, 0i32, 3i32]] [[[-1i32, 0i32, -2i32, -2i32], [0i32, 2i32, 0i32, 2i32], [0i32, 1i32, -2i32, 3i32]], [[0i32, 0i32, 1i32, 2i32], [0i32, -1i32, -2i32, 1i32], [2i32, 0i32, 0i32, 2i32]], [[3i32, 1i32, -1i32, -2i32], [2i32, 0i32, 3i32, 3i32], [0i32, -1i32, 0i32, 1i32]]] }
-- output { [12i32, 16i32, -6i32] }
-- input { [[3i32, 0i32, -2i32], [-2i32, 0i32, 0i32], [0i32, 2i32, -2i32], [-2i32, 0i32, 0i32], [0i32, 0i32, 0i32]] [[[-2i32, 2i32, 0i32], [1i32, 0i32, 3i32], [0i32, 2i32, 1i32], [2i32, -2i32, -1i32], [-1i32, 3i32, 1i32]], [[2i32, -2i32, -2i32], [-1i32, -1i32, 1i32], [-2i32, -1i32, 0i32], [3i32, -1i32, -2i32], [0i32, 0i32, 0i32]], [[-2i32, 0i32, 0i32], [-2i32, 0i32, -2i32], [3i32, -2i32, -1i32], [3i32, 1i32, 1i32], [-1i32, 0i32, -1i32]]] }
-- output { [-10i32, 4i32, -10i32] }
-- input { [[0i32]] [[[3i32]], [[2i32]], [[-1i32]]] }
-- output { [0i32, 0i32, 0i32] }
-- input { [[1i32, 1i32], [3i32, 1i32], [3i32, -2i32], [1i32, 3i32]] [[[3i32, -2i32], [0i32, 0i32], [1i32, 1i32], [3i32, 0i32]], [[2i32, 2i32], [-2i32, 3i32], [-1i32, -2i32], [0i32, 0i32]], [[0i32, 0i32], [2i32, -2i32], [2i32, -1i32], [-2i32, 3i32]]] }
-- output { [5i32, 2i32, 19i32] }

-- ==
-- entry: columns_of_rows
-- input { [[0i32, 0i32, 3i32, 0i32], [2i32, 3i32, 0i32, -2i32], [0i32, 0i32, 3i32, 0i32]] [[-1i32, 3i32, -1i32, 2i32], [3i32, 2i32, -2i32, -2i32], [3i32, 0i32, 0i32, 1i32]] }
-- output { 16i32 }
-- input { [[0i32, 0i32, 0i32], [1i32, -2i32, 0i32], [0i32, 0i32, 0i32], [0i32, -2i32, 0i32], [2i32, -1i32, 0i32]] [[-2i32, 1i32, -1i32], [-2i32, 1i32, 2i32], [3i32, 0i32, 3i32], [2i32, -1i32, 1i32], [3i32, 1i32, 2i32]] }
-- output { 8i32 }
-- input { [[0i32]] [[2i32]] }
-- output { 0i32 }
-- input { empty([0][3]i32) empty([0][3]i32) }
-- output { -2147483648i32 }
-- input { [[1i32, 1i32], [1i32, 2i32], [3i32, 3i32], [-2i32, -1i32]] [[1i32, 2i32], [3i32, -2i32], [-1i32, 2i32], [-1i32, 2i32]] }
-- output { 9i32 }

