-- Arrays that a loop of the host carries and that change roles: swapped, passed on, rotated, some of them made anew, in
-- loops in loops, with what is overwritten in place beside them.

-- ==
-- entry: swapped
-- input { 0i64 } output { [1i32, 2i32, 3i32] [4i32, 5i32, 6i32] }
-- input { 1i64 } output { [4i32, 5i32, 6i32] [1i32, 2i32, 3i32] }
-- input { 6i64 } output { [1i32, 2i32, 3i32] [4i32, 5i32, 6i32] }
entry swapped (t: i64): ([]i32, []i32) =
  loop (a, b) = (map (+ 1) (map i32.i64 (iota 3)), map (+ 4) (map i32.i64 (iota 3))) for _i < t do (b, a)

-- The newer of two is made, the older one passed on: a recurrence.
-- ==
-- entry: two_steps
-- input { 0i64 } output { [1i64, 2i64, 3i64] }
-- input { 1i64 } output { [1i64, 1i64, 1i64] }
-- input { 7i64 } output { [21i64, 29i64, 37i64] }
entry two_steps (t: i64): []i64 =
  let (a, _) = loop (a, b) = (map (+ 1) (iota 3), map (\_ -> 1) (iota 3)) for _i < t do (b, map2 (+) a b) in a

-- ==
-- entry: rotated
-- input { 1i64 } output { [2i64, 3i64] [3i64, 4i64] [1i64, 2i64] }
-- input { 2i64 } output { [3i64, 4i64] [1i64, 2i64] [2i64, 3i64] }
-- input { 4i64 } output { [2i64, 3i64] [3i64, 4i64] [1i64, 2i64] }
entry rotated (t: i64): ([]i64, []i64, []i64) =
  loop (a, b, c) = (map (+ 1) (iota 2), map (+ 2) (iota 2), map (+ 3) (iota 2)) for _i < t do (b, c, a)

-- A queue of four: the oldest leaves, what comes depends on two.
-- ==
-- entry: queue
-- input { 1i64 } output { [5i64, 7i64] [1i64, 2i64] [2i64, 3i64] [3i64, 4i64] }
-- input { 3i64 } output { [13i64, 17i64] [9i64, 12i64] [5i64, 7i64] [1i64, 2i64] }
entry queue (t: i64): ([]i64, []i64, []i64, []i64) =
  let from k = map (+ k) (iota 2)
  in loop (a, b, c, d) = (from 1, from 2, from 3, from 4) for i < t do (map2 (\x y -> x + y + i) a d, a, b, c)

-- What is scattered into is swapped with what was read, as a Fourier transform does.
-- ==
-- entry: stages
-- input { 0i64 } output { [0i64, 1i64, 2i64, 3i64, 4i64, 5i64, 6i64, 7i64] }
-- input { 1i64 } output { [1i64, 3i64, 5i64, 7i64, 0i64, 2i64, 4i64, 6i64] }
-- input { 2i64 } output { [3i64, 7i64, 2i64, 6i64, 1i64, 5i64, 0i64, 4i64] }
entry stages (t: i64): []i64 =
  let (res, _) =
    loop (from: *[8]i64, to: *[8]i64) = (iota 8, replicate 8 0) for _i < t do
      (scatter to (map (\i -> if i % 2 == 0 then 4 + i / 2 else i / 2) (iota 8)) from, from)
  in res

-- Loops in loops, a third array that is updated in place, and a while loop.
-- ==
-- entry: nested
-- input { 3i64 } output { [4i64, 6i64] [8i64, 11i64] [3i64, 9i64] }
entry nested (t: i64): ([]i64, []i64, []i64) =
  let (a, b, c) =
    loop (a, b, c) = (iota 2, map (+ 4) (iota 2), replicate 2 0) for i < t do
      let (a, b) = loop (a, b) for _j < i + 1 do (b, map2 (\x y -> x + y * (i % 2)) a b)
      in (b, a, c with [0] = c[0] + i)
  let (x, y, k) = loop (x, y, k) = (a, b, 0) while k < 3 do (y, x, k + 1)
  in (x, y, map (+ k * 0) (c with [1] = 9))

-- Two names of one array, and an array that is given twice.
-- ==
-- entry: twice
-- input { 1i64 } output { [2i64, 3i64] [2i64, 3i64] }
-- input { 2i64 } output { [2i64, 3i64] [2i64, 3i64] }
entry twice (t: i64): ([]i64, []i64) =
  loop (a, b) = (map (+ 1) (iota 2), map (+ 2) (iota 2)) for _i < t do (b, b)
