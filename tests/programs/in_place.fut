-- Updates in place, and what must not be overwritten.

entry in_loop [n] (xs: *[n]i32): [n]i32 = loop ys = xs for i < n do ys with [i] = ys[n - 1 - i] + 1

entry in_loops [n] (xs: [n]i32): [n]i32 =
  loop ys = copy xs for i < n do
    loop zs = ys for j < n do zs with [j] = zs[i] + zs[j]

-- The array of before the loop is read after it.
entry kept [n] (xs: [n]i32): ([n]i32, [n]i32) =
  let start = map (+ 1) xs
  let end = loop ys = copy start for i < n do ys with [i] = ys[i] * 2
  in (start, end)

-- What an iteration started with is read after the update.
entry both_sides [n] (xs: [n]i32): [n]i32 =
  loop ys = copy xs for i < n do
    let zs = copy ys with [i] = 7
    in map2 (+) ys zs

-- One of two names for a carried array is updated.
entry two_carried [n] (xs: [n]i32): ([n]i32, [n]i32) =
  loop (ys, zs) = (copy xs, copy xs) for i < n do
    (ys with [i] = zs[n - 1 - i], zs with [i] = i32.i64 i)

-- Only one branch updates.
entry in_branch [n] (xs: [n]i32): [n]i32 =
  let ys = map (* 3) xs
  in if n > 3 then ys with [0] = 5 else ys

entry in_threads [m][n] (xss: [m][n]i32): [m][n]i32 =
  map (\xs -> loop ys = copy xs for i < n - 1 do ys with [i + 1] = ys[i] + ys[i + 1]) xss

-- Rows of an array that is read later.
entry of_rows [m][n] (xss: [m][n]i32): [n]i32 =
  let yss = map (map (+ 1)) xss
  in loop acc = replicate n 0 for i < m do
       let row = loop r = copy yss[i] for j < n / 2 do r with [j] = 9
       in map2 (+) acc (map2 (+) row yss[i])

-- A slice moves inside its own array.
entry moves [n] (xs: [n]i32): [n]i32 =
  let ys = map (+ 1) xs
  in if n > 2 then let zs = copy ys in zs with [1:n] = copy zs[0:n - 1] else ys

-- The loop may run not at all: its result is what it started with.
entry maybe_never [n] (xs: [n]i32) (k: i32): ([n]i32, i32) =
  let ys = map (+ 1) xs
  let (zs, _) = loop (zs, j) = (copy ys, k) while j > 3 do (map (* 2) zs, j - 1)
  in (zs, i32.sum ys)

entry scattered [n] (xs: [n]i32): ([n]i32, i32) =
  let ys = map (+ 1) xs
  let zs = scatter (copy ys) (map (* 2) (iota n)) xs
  in (zs, i32.sum ys)
