-- Types at the border of a library: tuples, records, nested ones, arrays of tuples, and what can go wrong.
type body = {mass: f64, position: (f32, f32), tags: [2]u8}

entry move (b: body) (dx: f32) : body =
  b with position = (b.position.0 + dx, b.position.1)

entry stats [n] (xs: [n]i64) : (i64, [n]i64) = (i64.sum xs, map (+ 1) xs)

entry pairs [n] (xs: [n]i32) : [n](i32, bool) = map (\x -> (x, x > 0)) xs

entry firsts [n] (ps: [n](i32, bool)) : [n]i32 = map (.0) ps

entry half (x: f16) (b: bool) : f16 = if b then x + 1 else x

entry at [n] (xs: [n]i32) (is: []i64) : []i32 = map (\i -> xs[i]) is

entry positive (xs: []i32) : []i32 = filter (> 0) xs

entry product [m] [n] [q] (A: [m][q]i32) (B: [q][n]i32) : [m][n]i32 =
  map (\a -> map (\b -> i32.sum (map2 (*) a b)) (transpose B)) A

entry rows (n: i64) (m: i64) : [n][m]i32 = replicate n (replicate m 1)

def pick [n] (xs: [n]i32) (i: i64) : i32 = xs[i]

entry nearby [n] [m] (xs: [n]i32) (is: [m]i64) (i: i64) : [m]i32 =
  let x = pick xs i
  in map (\j -> x + pick xs j) is

-- From an array of its own, whose size only the thread knows.
entry fibonacci [n] (xs: [n]i64) : [n]i64 =
  map (\x ->
         let start = replicate (x + 2) 1
         let all = loop all = start for k < x do all with [k + 2] = all[k] + all[k + 1]
         in all[x + 1])
      xs
