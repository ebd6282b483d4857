-- Sizes of results that are known once a function is applied, through type parameters.

def apply 'a '^b (f: a -> b) (x: a) : b = f x
def both '^a '^b (f: a -> b) (x: a) (y: a) = (f y, f x)
def held '~a (c: bool) (x: a) (y: a) = if c then x else y
def inferred f x = f x
def made [a] [b] 't (size: i64 -> i64 -> i64) (x: t) : [size a b][size b a]t =
  replicate (size a b) (replicate (size b a) x)
def square (n: i64) (m: i64) (b: bool) = replicate n (replicate m b)
def uncurried = uncurry square
def filled (n: i64) (m: i64) : ([n][m](), [n][m]bool -> bool) = (replicate n (replicate m ()), \b -> b[n - 1, 0])
def parts [n] 'a (p: a -> bool) (s: [n]a) =
  let m = n + 1
  in (\(_, i, k) -> #[unsafe] s[i:i + k], map (\i -> (replicate m (p s[i]), i, 1i64)) (indices s))

-- ==
-- entry: one
-- input { 3i64 } output { [0i64, 1i64, 2i64] 3i64 [0i64, 1i64, 2i64] }
-- input { 0i64 } output { empty([0]i64) 0i64 empty([0]i64) }
entry one (n: i64) = (apply iota n, length (inferred iota n), (apply iota) n)

-- ==
-- entry: two
-- input { 1i64 2i64 } output { [0i64, 1i64] [0i64] }
entry two (n: i64) (m: i64) = both iota n m

-- ==
-- entry: several
-- input { 1i64 2i64 } output { 5i64 [[1i64], [2i64], [2i64]] }
entry several (n: i64) (m: i64) =
  let (xs, ys) = both (\k -> replicate k (k + 1)) n m
  in (i64.sum xs - 1, map (\x -> [x - 1]) (ys ++ xs))

-- ==
-- entry: branch
-- input { true } output { [0i64, 1i64] }
-- input { false } output { [1i64, 0i64] }
entry branch (c: bool) = held c (iota 2) (reverse (iota 2))

-- ==
-- entry: tuples
-- input { 1i64 2i64 } output { [[true, true]] }
entry tuples (a: i64) (b: i64) = map id (uncurried (a, b) true)

-- ==
-- entry: taken
-- input { 2i64 3i64 } output { true }
entry taken (x: i64) (y: i64) =
  let (a, f) = uncurry filled (x, y)
  in f (map (map (const true)) a)

-- ==
-- entry: sums
-- input { 1i64 2i64 } output { [[true, true, true], [true, true, true], [true, true, true]] }
entry sums (a: i64) (b: i64) = copy (made (+) true) : [a + b][b + a]bool

-- ==
-- entry: units
-- input { [5u8, 0u8] } output { [1i64, 1i64] 0i64 }
entry units (s: []u8) =
  let (get, fs) = parts (== 0) s
  let on_f (_, i, k) = length s[i:i + k]
  in (map on_f fs, length [])

def longer (p: {a: []i32, b: []i32}) = loop a = p.a for i < 3i32 do if a[0] > i then a else p.b
def named [n] (xs: [n]i32) (ys: []i32) = loop (a, k) = (xs, 0i32) while k < 2 do (if a[0] > k then a else ys, k + 1)

-- ==
-- entry: loops
-- input { [1, 2, 3] [9, 8] } output { [9, 8] [9, 8] }
-- input { [5, 2, 3] [9, 8] } output { [5, 2, 3] [5, 2, 3] }
-- input { [0] [1, 2] } output { [1, 2] [1, 2] }
entry loops (xs: []i32) (ys: []i32) = (longer {a = xs, b = ys}, (named xs ys).0)
