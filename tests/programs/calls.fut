-- Functions that are called: those of scalars by kernels and by the host, those of arrays by the host.

-- Branches and a loop; several results.
#[noinline]
def collatz (x: i32) (limit: i32) : (i32, i32, bool) =
  let (steps, y) = loop (s, y) = (0, x) while y > 1 && s < limit do (s + 1, if y % 2 == 0 then y / 2 else 3 * y + 1)
  in (steps, y, y <= 1)

-- A function that calls another one; floats of other types.
#[noinline]
def weight (x: i32) (w: f32) : f32 =
  let (s, _, ended) = collatz (i32.abs x) 40
  in if ended then f32.i32 (s % 16) * w else f32.i32 (collatz (x & 7) 3).0 - w

#[noinline]
def halves (x: f16) (y: u8) (b: bool) : (f16, u8, bool) =
  if b then (x + 1, y + 3, y > 100) else (x * 0.5, y / 2, x > 4)

entry in_maps [n] (xs: [n]i32) : ([n]f32, [n]i32) =
  (map (\x -> weight x 0.5 + weight (x + 1) 2) xs, map (\x -> (collatz (x & 63) 9).1) xs)

entry in_nests [n][m] (xss: [n][m]i32) : [n][m]f32 =
  map (\xs -> map (\x -> weight x (f32.i64 (n % 8)) - weight (x + xs[0] % 8) 1) xs) xss

entry in_reductions [n][m] (xss: [n][m]i32) : ([n]i32, i32) =
  (map (\xs -> i32.sum (map (\x -> (collatz (x & 15) 20).0) xs)) xss,
   i32.maximum (flatten xss |> map (\x -> (collatz (x & 31) 10).1)))

entry in_scans [n] (xs: [n]i32) : [n]i32 = scan (+) 0 (map (\x -> (collatz (x & 15) 20).0) xs)

entry on_host [n] (xs: [n]i32) : (i32, i32, bool, f32) =
  let (s, y, e) = collatz (i32.i64 n) 100
  let w = loop w = 0 for i < 3 do w + weight (i32.i64 (n + i)) 1
  in (s, y, e, w)

entry small_types [n] (xs: [n]u8) : ([n]f16, [n]u8, [n]bool) =
  unzip3 (map (\x -> halves (f16.u8 (x % 9)) x (x % 3 == 0)) xs)

-- Arrays: a size that the function decides, branches, loops and calls inside.
#[noinline]
def joined (a: []i32) (b: []i32) : []i32 =
  if length a == 0 then map (+ 1) b else if length b == 0 then map (2 *) a else a ++ [7] ++ b

#[noinline]
def counted (k: i64) (by: i32) : []i32 = loop a = [] for i < k do joined a (replicate i (by + i32.i64 i))

entry arrays [n] (xs: [n]i32) : ([]i32, []i32, i64) =
  let a = joined xs (counted (n % 4) 3)
  let b = joined (reverse xs) a
  in (a, b, length (joined b b))

-- In a loop that carries what the function gives, and in a branch.
entry in_loops [n] (xs: [n]i32) : []i32 =
  let ys = loop ys = xs for i < 3 do if i % 2 == 0 then joined ys xs else joined xs ys
  in if n > 4 then joined ys [1, 2] else ys

-- Rows, columns and slices as arguments; a size that is given.
#[noinline]
def scaled [n] (xs: [n]i32) (k: i64) : ([k]i32, i32) =
  let ys = tabulate k (\i -> if n == 0 then 0 else xs[i % n] * 3)
  in (ys, loop s = 0 for i < k do s + i32.i64 i)

entry views [n][m] (xss: [n][m]i32) : ([]i32, []i32, i32) =
  let (a, s) = if m > 0 then scaled xss[:, m - 1] 5 else scaled [] 5
  let (b, t) = scaled (flatten (transpose xss)) (n + 2)
  let (c, _) = scaled (take (n / 2) b) 3
  in (a ++ b, c, s + t)

-- What is given back is a copy: the caller may overwrite it, and go on with what it gave.
entry overwritten [n] (xs: [n]i32) : ([]i32, []i32) =
  let ys = counted (n % 5) 1
  let zs = joined ys xs
  let ws = if length zs > 0 then copy zs with [0] = 100 else zs
  in (joined ws zs, zs)

-- Six levels, each of which calls the one before in two places or three: large ones stay functions, without attributes.
def s0 (x: i32) : i32 =
  if x > 100 then x / 3 else loop y = x for i < x do if y > i then y - 2 * i else y * 3
def s1 (x: i32) : i32 = if x > 1 then s0 x + s0 (x + 1) else s0 (x - 1)
def s2 (x: i32) : i32 = if x > 2 then s1 x + s1 (x + 1) else s1 (x - 1)
def s3 (x: i32) : i32 = if x > 3 then s2 x + s2 (x + 1) else s2 (x - 1)
def s4 (x: i32) : i32 = if x > 4 then s3 x + s3 (x + 1) else s3 (x - 1)
def s5 (x: i32) : i32 = if x > 5 then s4 x + s4 (x + 1) else s4 (x - 1)
def s6 (x: i32) : i32 = if x > 6 then s5 x + s5 (x + 1) else s5 (x - 1)

entry six_levels [n] (xs: [n]i32) : ([n]i32, i32) = (map s6 xs, s6 (i32.i64 n))

def a0 (x: i64) : []i64 = if x % 2 == 0 then iota (x % 5) else if x < 100 then [x, x + 1] else []
def a1 (x: i64) : []i64 = if x % 2 == 0 then a0 x ++ a0 (x + 1) else a0 (x - 1)
def a2 (x: i64) : []i64 = if x % 3 == 0 then a1 x ++ a1 (x + 1) else a1 (x - 1)
def a3 (x: i64) : []i64 = if x % 4 == 0 then a2 x ++ a2 (x + 1) else a2 (x - 1)
def a4 (x: i64) : []i64 = if x % 5 == 0 then a3 x ++ a3 (x + 1) else a3 (x - 1)
def a5 (x: i64) : []i64 = if x % 6 == 0 then a4 x ++ a4 (x + 1) else a4 (x - 1)
def a6 (x: i64) : []i64 = if x % 7 == 0 then a5 x ++ a5 (x + 1) else a5 (x - 1)

entry six_levels_of_arrays [n] (_: [n]i32) : ([]i64, []i64) = (a6 n, a6 (n + 35))
