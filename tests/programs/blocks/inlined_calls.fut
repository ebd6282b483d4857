-- What fails in a function that was inlined says by which calls, the innermost first, on every backend.
-- ==
-- entry: host
-- input { [1, 2, 3] 1i64 } error: ^Error: 38:3: error: Index \[3\] out of bounds.*\].41:3: note: called from here.56:5: note: called from here.$
-- input { [1, 2, 3] 0i64 } error: ^Error: 38:3: error: Index \[3\] out of bounds.*\].42:5: note: called from here.56:5: note: called from here.$
-- input { [1, 2, 3] 4i64 } error: ^Error: 38:3: error: Index \[4\] out of bounds.*\].41:3: note: called from here.55:3: note: called from here.$
-- input { [1, 2, 3, 4] 0i64 } output { -4 }

-- ==
-- entry: kernel
-- input { [1, 2, 3] [0i64] } error: ^Error: 38:3: error: Index \[3\] out of bounds.*\].42:5: note: called from here.60:16: note: called from here.$
-- input { [1, 2, 3] [5i64] } error: ^Error: 38:3: error: Index \[5\] out of bounds.*\].41:3: note: called from here.59:14: note: called from here.$

-- A function that is given to another one is called there; what stands where it is applied is not called.
-- ==
-- entry: given
-- input { [1, 2] [7i64] } error: ^Error: 63:15: error: Index \[7\] out of bounds.*\].45:3: note: called from here.63:3: note: called from here.$

-- ==
-- entry: in_place
-- input { [1, 2] [7i64] } error: ^Error: 66:14: error: Index \[7\] out of bounds.*\].$

-- Local functions, and constants.
-- ==
-- entry: inner
-- input { 0 } error: ^Error: 69:21: error: division by zero.*\].70:6: note: called from here.$

-- ==
-- entry: constant
-- input { 1 } error: ^Error: 47:32: error: division by zero.*\].49:12: note: called from here.$

-- An array that cannot be made.
-- ==
-- entry: made
-- input { -2i64 } error: ^Error: 52:3: error: replicate of size -2.*\].75:3: note: called from here.$

def pick [n] (xs: [n]i32) (i: i64) : i32 =
  xs[i]

def twice [n] (xs: [n]i32) (i: i64) : i32 =
  pick xs i
  + pick xs (i + 1)

def each [n] 'a 'b (f: a -> b) (xs: [n]a) : [n]b =
  map f xs

def over_none (x: i32) : i32 = x / 0

def none = over_none 1

def row (n: i64) : [n]i32 =
  replicate n 0

entry host [n] (xs: [n]i32) (i: i64) : i32 =
  twice xs i
  - twice xs (i + 2)

entry kernel [n] [m] (xs: [n]i32) (is: [m]i64) : [m]i32 =
  map (\i -> twice xs i
             - twice xs (i + 2)) is

entry given [n] [m] (xs: [n]i32) (is: [m]i64) : [m]i32 =
  each (\i -> xs[i]) is

entry in_place [n] [m] (xs: [n]i32) (is: [m]i64) : [m]i32 =
  map (\i -> xs[i]) is

entry inner (x: i32) : i32 =
  let by (y: i32) = y / x
  in by 3

entry constant (x: i32) : i32 = x + none

entry made (n: i64) : []i32 =
  row n
