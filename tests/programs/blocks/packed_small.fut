-- Contractions of few or mixed sizes and of narrow integers, beside the same sums one element after the other.

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
-- entry: small
-- input { 5i64 4i64 4i64 4i64 } output { true }
-- input { 7i64 3i64 5i64 2i64 } output { true }
-- input { 3i64 17i64 20i64 9i64 } output { true }
-- input { 2i64 1i64 37i64 11i64 } output { true }
-- input { 2i64 29i64 1i64 11i64 } output { true }
-- input { 1i64 3i64 300i64 40i64 } output { true }
-- input { 1i64 600i64 3i64 40i64 } output { true }
-- input { 1i64 20i64 33i64 5000i64 } output { true }
-- input { 4i64 2i64 2i64 0i64 } output { true }
-- input { 0i64 2i64 2i64 3i64 } output { true }
entry small (b: i64) (m: i64) (n: i64) (q: i64): bool =
  let A = tabulate_3d b m q number
  let B = tabulate_3d b q n (\i j k -> number j k i)
  let C = map2 (\x y -> map (\row -> map (\col -> i32.sum (map2 (*) row col)) (transpose y)) x) A B
  in all id (tabulate b (\l -> equal C[l] (one_by_one m n q (\i j k -> A[l, i, k] * B[l, k, j]))))

-- Sums of widened integers, which dot instructions compute for two steps at once; depths may be odd.
-- ==
-- entry: widened
-- input { 4i64 3i64 1i64 } output { true }
-- input { 37i64 45i64 33i64 } output { true }
-- input { 2i64 5i64 0i64 } output { true }
-- no_emulate input { 37i64 45i64 333i64 } output { true }
-- no_emulate input { 70i64 300i64 64i64 } output { true }
-- no_emulate input { 90i64 600i64 35i64 } output { true }
entry widened (m: i64) (n: i64) (q: i64): bool =
  let A = tabulate_2d m q (\i k -> i8.i32 (number i k 1 * 11))
  let U = tabulate_2d m q (\i k -> u8.i32 (number i k 1 * 11))
  let S = tabulate_2d n q (\j k -> i16.i32 (number k j 2 * 2900))
  let B = tabulate_2d q n (\k j -> i8.i32 (number k j 2 * 11))
  let bytes = map (\row -> map (\col -> i32.sum (map2 (\x y -> i32.i8 x * i32.i8 y) row col)) (transpose B)) A
  let mixed = map (\row -> map (\col -> i32.sum (map2 (\x y -> i32.u8 x * i32.i16 y) row col)) S) U
  in equal bytes (one_by_one m n q (\i j k -> i32.i8 A[i, k] * i32.i8 B[k, j]))
     && equal mixed (one_by_one m n q (\i j k -> i32.u8 U[i, k] * i32.i16 S[j, k]))

-- Floats' min and max heed NaN: a number is taken before it.
-- ==
-- entry: limits
-- input { 33i64 40i64 20i64 } output { true }
entry limits (m: i64) (n: i64) (q: i64): bool =
  let A = tabulate_2d m q (\i k -> if (i + k) % 5 == 0 then f32.nan else f32.i32 (number i k 1))
  let B = tabulate_2d n q (\j k -> if (j * k) % 7 == 6 then f32.nan else f32.i32 (number k j 2))
  let C = map (\row -> map (\col -> f32.minimum (map2 (+) row col)) B) A
  let D = map (\row -> map (\col -> f32.maximum (map2 (+) row col)) B) A
  let least f (x: f32) (y: f32) = if f32.isnan x then y else if f32.isnan y then x else f x y
  let by f ne = tabulate_2d m n (\i j -> loop s = ne for k < q do least f s (A[i, k] + B[j, k]))
  let same X Y = and (flatten (map2 (map2 (==)) X Y))
  in same C (by (\x y -> if x < y then x else y) f32.inf) && same D (by (\x y -> if x > y then x else y) (-f32.inf))
