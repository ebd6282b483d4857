-- The inverse of a matrix, by Gauss and Jordan, with the largest pivot of each column.
--
-- Sizes are part of types. A matrix that is not square is refused when the entry is called; `both`, the matrix with the
-- identity beside it, has the type [n][n + n]f64; `drop n` makes of it [n][n + n - n]f64, and `:> [n][n]f64` says that
-- this is the same, which is checked where it is not plain. Columns are taken in turn, by a loop; each step is a map.

-- ==
-- entry: inverse
-- input { [[2.0, 1.0], [1.0, 1.0]] } output { [[1.0, -1.0], [-1.0, 2.0]] }
-- "rows must be swapped" input { [[0.0, 2.0], [4.0, 0.0]] } output { [[0.0, 0.25], [0.5, 0.0]] }
-- input { [[4.0, -2.0, 1.0], [3.0, 6.0, -4.0], [2.0, 1.0, 8.0]] } output { [[0.197718631, 0.064638783, 0.007604563],
--           [-0.121673004, 0.114068441, 0.072243346],
--           [-0.034220532, -0.030418251, 0.114068441]] }
-- input { empty([0][0]f64) } output { empty([0][0]f64) }

-- ==
-- entry: residue
-- input { [[4.0, -2.0, 1.0], [3.0, 6.0, -4.0], [2.0, 1.0, 8.0]] } output { 0.0 }

-- The row at or below the diagonal whose element in column j is largest.
def pivot_row [n] [m] (a: [n][m]f64) (j: i64) : i64 =
  let larger (x, i) (y, k) = if x > y || (x == y && i < k) then (x, i) else (y, k)
  let candidates = map (\i -> (if i < j then -1 else f64.abs a[i, j], i)) (iota n)
  in (reduce_comm larger (-f64.inf, n) candidates).1

def eliminate [n] [m] (a: [n][m]f64) (j: i64) : [n][m]f64 =
  let p = pivot_row a j
  let pivot = map (/ a[p, j]) a[p]
  let rest i = map2 (\x y -> x - a[i, j] * y) a[i] pivot
  -- Row j goes where the pivot was.
  let swapped i = if i == p then map2 (\x y -> x - a[j, j] * y) a[j] pivot else rest i
  in tabulate n (\i -> if i == j then pivot else swapped i)

entry inverse [n] (a: [n][n]f64) : [n][n]f64 =
  let identity = tabulate_2d n n (\i j -> f64.bool (i == j))
  let both = map2 concat a identity
  let reduced = loop m = both for j < n do eliminate m j
  in map (drop n) reduced :> [n][n]f64

-- The largest element of A * A^-1 - I.
entry residue [n] (a: [n][n]f64) : f64 =
  let b = inverse a
  let product = map (\xs -> map (\ys -> f64.sum (map2 (*) xs ys)) (transpose b)) a
  in f64.maximum (flatten (tabulate_2d n n (\i j -> f64.abs (product[i, j] - f64.bool (i == j)))))
