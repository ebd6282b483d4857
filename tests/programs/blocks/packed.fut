-- Contractions that fill several panels and blocks of the depth, beside the same sums one element after the other.

def equal [n][m] (C: [n][m]i32) (D: [n][m]i32): bool =
  and (flatten (map2 (map2 (==)) C D))

def one_by_one (m: i64) (n: i64) (depth: i64) (f: i64 -> i64 -> i64 -> i32): [m][n]i32 =
  let C = replicate m (replicate n 0i32)
  in loop C for i < m do
       loop C for j < n do
         let s = loop s = 0 for k < depth do s + f i j k
         in C with [i, j] = s

def number (x: i64) (y: i64) (z: i64): i32 = i32.i64 ((x * 37 + y * 11 + z * 5) % 23 - 11)

-- Each operand is contiguous along a contracted dim of its own.
-- ==
-- entry: two_depths
-- input { 37i64 45i64 33i64 29i64 } output { true }
-- input { 3i64 70i64 16i64 48i64 } output { true }
-- input { 50i64 5i64 100i64 7i64 } output { true }
entry two_depths (m: i64) (n: i64) (p: i64) (q: i64): bool =
  let A = tabulate_3d p m q number
  let B = tabulate_3d n q p (\j l k -> number k j l - 1)
  let C = tabulate_2d m n (\i j -> i32.sum (tabulate p (\k -> i32.sum (tabulate q (\l -> A[k, i, l] * B[j, l, k])))))
  in equal C (one_by_one m n (p * q) (\i j kl -> A[kl / q, i, kl % q] * B[j, kl % q, kl / q]))

-- Contiguous along the depth: panels are transposed.
-- ==
-- entry: transposed
-- input { 37i64 45i64 333i64 } output { true }
-- input { 15i64 33i64 18i64 } output { true }
-- input { 64i64 31i64 3i64 } output { true }
entry transposed (m: i64) (n: i64) (q: i64): bool =
  let A = tabulate_2d m q (\i k -> number i k 1)
  let B = tabulate_2d n q (\j k -> number k j 2)
  let C = map (\row -> map (\col -> i32.sum (map2 (*) row col)) B) A
  in equal C (one_by_one m n q (\i j k -> A[i, k] * B[j, k]))

-- Two operands on a side, of which one has no neighbours along the depth.
-- ==
-- entry: mixed
-- input { 37i64 45i64 77i64 } output { true }
-- input { 16i64 16i64 40i64 } output { true }
entry mixed (m: i64) (n: i64) (q: i64): bool =
  let A = tabulate_2d m q (\i k -> number i k 1)
  let D = tabulate_2d q m (\k i -> number k 3 i)
  let B = tabulate_2d n q (\j k -> number k j 2)
  let C = tabulate_2d m n (\i j -> i32.sum (tabulate q (\k -> (A[i, k] + D[k, i]) * B[j, k])))
  in equal C (one_by_one m n q (\i j k -> (A[i, k] + D[k, i]) * B[j, k]))

-- Few columns or rows, and many batches of small matrices: M is read where it lies, through tiles of all widths.
