-- Loops and branches around kernels: how often explain says that they run.

-- ==
-- entry: powers
-- input { [[1, 2], [3, 4]] }

-- ==
-- entry: doubling halves growing
-- input { [1, 2, 3, 4, 5, 6, 7, 8] }

-- ==
-- entry: nested
-- input { 3i64 [1, 2, 3, 4] }

-- ==
-- entry: by_size
-- input { [1, 2, 3, 4] }

-- ==
-- entry: until
-- input { [1, 2, 3, 4] }

-- ==
-- entry: one_side
-- input { 3 [1, 2, 3, 4] }

-- ==
-- entry: either
-- input { 3 [1, 2, 3, 4] }

-- ==
-- entry: kept
-- input { [[1, 2], [3, 4]] [[1, 2], [3, 4]] }

-- ==
-- entry: of_none
-- input { empty([0]i32) }

def product [n] [m] [k] (a: [n][m]i32) (b: [m][k]i32) : [n][k]i32 =
  map (\r -> map (\c -> i32.sum (map2 (*) r c)) (transpose b)) a

entry powers [n] (a: [n][n]i32) = loop c = a for _i < 100 do product c a

entry doubling [n] (xs: [n]i32) =
  let (xs, _) =
    loop (xs, k) = (xs, 1)
    while k < n do
      (map2 (+) xs (rotate k xs), 2 * k)
  in xs

-- Arrays of sizes that the loop changes.
entry halves [n] (xs: [n]i32) =
  let (xs, _) =
    loop (xs: []i32, m) = (copy xs, n)
    while m > 1 do
      (map (\i -> xs[i] + xs[i + m / 2]) (iota (m / 2)), m / 2)
  in xs

entry growing [n] (xs: [n]i32) =
  loop ys = copy xs for i < 70 do
    let zs = map (+ i) (take (i64.min n (i64.i32 i)) ys)
    in map2 (+) ys (replicate n (i32.sum zs))

entry nested [n] (m: i64) (xs: [n]i32) =
  loop xs = xs for i < m do loop xs = xs for _j < i + 1 do map (+ 1) (scan (+) 0 xs)

entry by_size [n] (xs: [n]i32) =
  if n > 3 then map (+ 1) (scan (+) 0 xs) else scan (+) 0 (map (* 2) (scan (+) 0 xs))

-- The elements decide.
entry until [n] (xs: [n]i32) = loop xs = xs while xs[0] < 100 do map (* 2) xs
entry one_side [n] (k: i32) (xs: [n]i32) = if k > xs[0] then scan (+) 0 xs else xs
entry either [n] (k: i32) (xs: [n]i32) = if k > xs[0] then scan (+) 0 xs else map (* 2) (rotate 1 (scan (+) 0 xs))

-- A contraction and a map that keeps its products, on one line.
entry kept [n] [m] [q] (a: [n][q]i32) (b: [m][q]i32) =
  unzip (map (\r -> map (\c -> let p = map2 (*) r c in (i32.sum p, p)) b |> unzip) a)

entry of_none [n] (xs: [n]i32) = map (+ 1) (scan (+) 0 xs)
