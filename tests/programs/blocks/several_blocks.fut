-- Reductions and scans that several blocks share on GPUs: values of all sizes, several tiles of a scan, rows too long for
-- a block. Each entry says whether all elements are what a formula gives.

-- ==
-- entry: triangle bytes flags halves lines products five both
-- input { 0i64 } output { true }
-- input { 1i64 } output { true }
-- input { 1023i64 } output { true }
-- input { 1025i64 } output { true }
-- input { 9001i64 } output { true }

-- ==
-- entry: sums composed largest moments rows
-- input { 1i64 } output { true }
-- input { 2047i64 } output { true }
-- input { 4097i64 } output { true }
-- input { 30011i64 } output { true }

def agree 'a [n] (equal: a -> a -> bool) (xs: [n]a) (f: i64 -> a) : bool = and (map2 equal xs (map f (iota n)))

entry triangle (n: i64) : bool = agree (==) (scan (+) 0 (iota n)) (\i -> i * (i + 1) / 2)
entry bytes (n: i64) : bool = agree (==) (scan (+) 0 (map i8.i64 (iota n))) (\i -> i8.i64 (i * (i + 1) / 2))
entry flags (n: i64) : bool = agree (==) (scan (||) false (map (>= 3000) (iota n))) (>= 3000)
entry halves (n: i64) : bool =
  agree (==) (scan f16.max 0 (map (\i -> f16.i64 (i % 1000)) (iota n))) (\i -> f16.i64 (i64.min i 999))

-- Functions x -> a x + b, the first one first: their order matters.
def after (a: i64, b: i64) (c: i64, d: i64) = (a * c, b * c + d)
entry lines (n: i64) : bool =
  let (_, values) = unzip (scan after (1, 0) (map (\i -> (-1, i)) (iota n)))
  in agree (==) values (\i -> (i + 1) / 2)

-- Products of matrices: the largest values that blocks publish.
def times (a: f64, b: f64, c: f64, d: f64) (e: f64, f: f64, g: f64, h: f64) =
  (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)
entry products (n: i64) : bool =
  let powers = scan times (1, 0, 0, 1) (replicate n (1, 1, 0, 1))
  in agree (==) (map (\(_, b, _, _) -> b) powers) (\i -> f64.i64 (i + 1))

-- Values that are too large for that.
entry five (n: i64) : bool =
  let plus (a, b, c, d, e) (f, g, h, i, j) = (a + f, b + g, c + h, d + i, e + j : f64)
  let sums = scan plus (0, 0, 0, 0, 0) (map (\i -> let x = f64.i64 i in (x, 1, 2 * x, 3, x)) (iota n))
  in agree (==) (map (\(_, _, c, _, _) -> c) sums) (\i -> f64.i64 (i * (i + 1)))

-- What is scanned is wanted, too.
entry both (n: i64) : bool =
  let twice = map (* 2) (iota n)
  in agree (==) (zip (scan (+) 0 twice) twice |> map (\(s, t) -> s - t)) (\i -> i * (i - 1))

entry sums (n: i64) : bool = i64.sum (iota n) == n * (n - 1) / 2
entry composed (n: i64) : bool = (reduce after (1, 0) (map (\i -> (-1, i)) (iota n))).1 == n / 2
entry largest (n: i64) : bool =
  let later (a, i) (b, j) = if a > b || (a == b && i < j) then (a, i) else (b, j)
  in (reduce later (-1, -1) (zip (map (\i -> i * 7919 % n) (iota n)) (iota n))).0 == i64.maximum (map (\i -> i * 7919 % n) (iota n))
entry moments (n: i64) : bool =
  let (a, b, c) = reduce (\(a, b, c) (d, e, f) -> (a + d, b + e, c + f)) (0, 0, 0i32) (map (\i -> (i, f64.i64 i, 1)) (iota n))
  in a == n * (n - 1) / 2 && b == f64.i64 a && i64.i32 c == n
entry rows (n: i64) : bool =
  agree (==) (tabulate 3 (\r -> i64.sum (tabulate n (\i -> i * (r + 1))))) (\r -> (r + 1) * (n * (n - 1) / 2))
