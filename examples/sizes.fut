-- Arrays whose sizes a branch, a loop or the entry itself decides.

-- ==
-- entry: chosen
-- input { true [1, 2, 3] [4, 5] } output { [1, 2, 3] 3i64 }
-- input { false [1, 2, 3] [4, 5] } output { [4, 5] 2i64 }
entry chosen [n] [m] (c: bool) (xs: [n]i32) (ys: [m]i32) =
  let zs = if c then xs else ys
  in (map (+ 0) zs, length zs)

-- ==
-- entry: alternating
-- input { [1, 2, 3] [4, 5] } output { [4, 5] [1, 2, 3] }
entry alternating (xs: []i32) (ys: []i32) = loop (xs, ys) for _i < 3i64 do (ys, xs)

-- ==
-- entry: grown
-- input { [[1, 2]] } output { [[1, 2], [1, 2], [1, 2], [1, 2]] }
entry grown (xss: [][]i32) : [][]i32 = loop xss for _i < 2i64 do xss ++ xss

-- ==
-- entry: turned
-- input { [[1, 2, 3], [4, 5, 6]] } output { [[1, 4], [2, 5], [3, 6]] }
entry turned (xss: [][]i32) : [][]i32 = loop xss for _i < 3i64 do transpose xss

-- ==
-- entry: positive
-- input { [1, -2, 3] } output { [1, 3] 4i32 }
entry positive (xs: []i32) =
  let ys = loop ys = [] for x in xs do (if x > 0 then ys ++ [x] else ys)
  in (ys, i32.sum ys)

-- Each thread has an array of its own size.
-- ==
-- entry: of_threads
-- input { [0, 1, 5] } output { [1i64, 3i64, 32i64] }
entry of_threads (ks: []i32) : []i64 =
  map (\k ->
         let rounds = i64.i32 (k % 6)
         let xs = if k > 3 then [1] else replicate (rounds + 1) 1
         let xs =
           loop xs for _i < rounds do
             let more = if length xs > 2 then length xs else 1
             in xs ++ replicate more 1
         in i64.sum xs + (if k > 3 then 8 else 0))
      ks

-- ==
-- entry: spread
-- input { [3, 8, 14] } output { [3i64, 6i64, 9i64, 12i64] }
entry spread (xs: [3]i32) : []i64 =
  let first = i64.i32 xs[0]
  let step = 1 + i64.abs (first - 1)
  in first..first + step...i64.abs first + 4 * step - 1
