-- Accumulators: writes in loops, in branches, of rows, none at all, and with an operator that locks.
type~ acc 't = intrinsics.acc t

def put [n] 't (xs: *acc ([n]t)) (i: i64) (x: t) : *acc ([n]t) = intrinsics.acc_write xs i x

-- ==
-- entry: twice
-- input { [0, 0, 0, 0, 0, 0] [1i64, 0i64, 2i64] }
-- output { [0, 1, 10, 11, 20, 21] }
-- input { empty([0]i32) [1i64, 0i64] }
-- output { empty([0]i32) }
-- input { [7] empty([0]i64) }
-- output { [7] }
entry twice [n] (xs: *[n]i32) (is: []i64) : [n]i32 =
  intrinsics.scatter_stream xs
    (\(xs: *acc ([]i32)) i -> let xs = put xs (2 * i) (i32.i64 i * 10) in put xs (2 * i + 1) (i32.i64 i * 10 + 1)) is

-- Element i writes i times, where others write, too, and out of bounds.
-- ==
-- entry: triangle
-- input { 5i64 4i64 }
-- output { [3i64, 2i64, 1i64, 0i64, 0i64] }
-- input { 2i64 4i64 }
-- output { [3i64, 2i64] }
-- input { 3i64 0i64 }
-- output { [0i64, 0i64, 0i64] }
entry triangle (n: i64) (m: i64) : [n]i64 =
  intrinsics.hist_stream (replicate n 0) (+) 0
    (\(xs: *acc ([]i64)) i -> loop (xs: *acc ([]i64)) = xs for j < i do put xs j 1) (iota m)

-- ==
-- entry: evens
-- input { [5, 6, 7, 8] }
-- output { [0, 6, 0, 8] }
entry evens [n] (xs: [n]i32) : [n]i32 =
  let f (xs': *acc ([n]i32)) (i, x) = if x % 2 == 0 then put xs' i x else xs'
  in intrinsics.scatter_stream (replicate n 0) f (zip (indices xs) xs)

-- ==
-- entry: rows
-- input { [[0, 0], [0, 0], [0, 0]] [2i64, 0i64] [[1, 2], [3, 4]] }
-- output { [[3, 4], [0, 0], [1, 2]] }
entry rows [n] [m] [k] (xss: *[n][k]i32) (is: [m]i64) (yss: [m][k]i32) : [n][k]i32 =
  intrinsics.scatter_stream xss (\(xss': *acc ([n][k]i32)) (i, ys) -> put xss' i ys) (zip is yss)

-- What is written stays what it was.
-- ==
-- entry: overwritten
-- input { 3i64 }
-- output { [[0i64, 1i64], [1i64, 2i64], [2i64, 3i64]] }
entry overwritten (n: i64) : [n][2]i64 =
  intrinsics.scatter_stream (replicate n (replicate 2 0))
    (\(xss: *acc ([n][2]i64)) i -> let row = [i, i + 1]
               let xss = put xss i row
               let row[0] = 100
               in if row[0] == 3 then put xss i row else xss)
    (iota n)

-- ==
-- entry: largest
-- input { 3i64 [1f32, 5f32, 2f32, 9f32, 4f32, 2f32, 0f32] }
-- output { [9f32, 5f32, 2f32] [3i64, 1i64, 2i64] }
entry largest [m] (n: i64) (xs: [m]f32) : ([n]f32, [n]i64) =
  let larger (a, i) (b, j) = if a < b || a == b && j < i then (b, j) else (a, i)
  in unzip (intrinsics.hist_stream (replicate n (f32.lowest, i64.highest)) larger (f32.lowest, i64.highest)
              (\(best: *acc ([n](f32, i64))) (i, x) -> put best (i % n) (x, i)) (zip (iota m) xs))

-- One for each row, with numbers of writes that differ.
-- ==
-- entry: inside
-- input { [2i64, 0i64, 3i64] 4i64 }
-- output { [[1i64, 1i64, 0i64, 0i64], [0i64, 0i64, 0i64, 0i64], [1i64, 1i64, 1i64, 0i64]] }
entry inside [m] (ns: [m]i64) (k: i64) : [m][k]i64 =
  map (\n -> intrinsics.hist_stream (replicate k 0) (+) 0 (\(xs: *acc ([k]i64)) i -> put xs i 1) (iota n)) ns

-- The last of what one element writes to a place counts.
-- ==
-- entry: last
-- input { 4i64 }
-- output { [3i64, 13i64, 23i64, 33i64] }
entry last (n: i64) : [n]i64 =
  intrinsics.scatter_stream (replicate n 0)
    (\(xs: *acc ([]i64)) i -> loop (xs: *acc ([]i64)) = xs for j < n do put xs i (10 * i + j)) (iota n)
