-- What fails in a function that stayed a function says by which calls, as where it was inlined.
-- ==
-- entry: host
-- input { 3 0 } error: ^Error: 29:8: error: division by zero.*\].33:3: note: called from here.49:3: note: called from here.$
-- input { 3 1 } error: ^Error: 29:8: error: division by zero.*\].34:5: note: called from here.49:3: note: called from here.$
-- input { 3 2 } output { 4 }

-- ==
-- entry: kernel
-- input { [3, 4] 0 } error: ^Error: 29:8: error: division by zero.*\].33:3: note: called from here.52:14: note: called from here.$
-- input { [3, 4] 1 } error: ^Error: 29:8: error: division by zero.*\].34:5: note: called from here.52:14: note: called from here.$
-- input { [3, 4] 2 } output { [4, 6] }

-- A check in a kernel that a function of the host launches.
-- ==
-- entry: arrays
-- input { [1] 2i64 } error: ^Error: 38:14: error: Index \[2\] out of bounds.*\].44:17: note: called from here.55:3: note: called from here.$
-- input { [1, 2, 3] 0i64 } output { [2, 3, 4] }

-- Behind a call in which all went well, a check of the caller fails.
-- ==
-- entry: behind
-- input { [1, 2, 3] 0i64 5i64 } error: ^Error: 59:6: error: Index \[5\] out of bounds.*\].$
-- input { [1, 2, 3] 0i64 2i64 } output { 4 }

#[noinline]
def divided (x: i32) (y: i32) : i32 =
  if x > 100 then x
  else x / y

#[noinline]
def twice (x: i32) (y: i32) : i32 =
  divided x y
  + divided x (y - 1)

#[noinline]
def moved [n] (xs: [n]i32) (by: i64) : [n]i32 =
  map (\i -> xs[i + by] + 1) (iota n)

#[noinline]
def longer [n] (xs: [n]i32) (by: i64) : []i32 =
  if n > 50 then []
  else if n > 40 then [1, 2]
  else let ys = moved xs by
       in if by == 0 then ys
          else filter (> 1) ys

entry host (x: i32) (y: i32) : i32 =
  twice x y

entry kernel [n] (xs: [n]i32) (y: i32) : [n]i32 =
  map (\x -> twice x y) xs

entry arrays [n] (xs: [n]i32) (by: i64) : []i32 =
  longer xs by

entry behind [n] (xs: [n]i32) (by: i64) (at: i64) : i32 =
  let ys = longer xs by
  in ys[at]
