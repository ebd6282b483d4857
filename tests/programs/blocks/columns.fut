-- Sums along columns that lie side by side, of rows, and of flattened arrays, beside the same one element after the other.

def number (x: i64) (y: i64): i32 = i32.i64 ((x * 37 + y * 11) % 23 - 11)

def in_order [n] (xs: [n]i32): i32 = loop s = 0 for x in xs do s * 1 + x

-- ==
-- entry: columns
-- input { 0i64 5i64 } output { true }
-- input { 3i64 0i64 } output { true }
-- input { 1i64 1i64 } output { true }
-- input { 37i64 16i64 } output { true }
-- input { 5i64 1000i64 } output { true }
-- input { 300i64 257i64 } output { true }
entry columns (n: i64) (m: i64): bool =
  let A = tabulate_2d n m number
  let weights = tabulate n (\i -> i32.i64 (i % 5))
  let sums = map (\col -> i32.sum (map2 (*) col weights)) (transpose A)
  in and (tabulate m (\j -> sums[j] == in_order (tabulate n (\i -> A[i, j] * weights[i]))))

-- Rows from the second on: how many is computed.
-- ==
-- entry: later_rows
-- input { [[1, 2, 3]] } output { [0, 0, 0] }
-- input { [[1, 2, 3], [4, 5, 6], [7, 8, -9]] } output { [11, 13, -3] }
entry later_rows [n][m] (A: [n][m]i32): [m]i32 = map i32.sum (transpose (drop 1 A))

-- Sums and largest of columns of a batch, with what comes before and after them.
-- ==
-- entry: batch
-- input { 3i64 17i64 40i64 } output { true }
-- input { 2i64 5i64 600i64 } output { true }
entry batch (b: i64) (n: i64) (m: i64): bool =
  let A = tabulate_3d b n m (\k i j -> number (k + i) j)
  let scale = tabulate m (\j -> number j 3)
  let both =
    map (\a -> map2 (\col s -> let xs = map (* s) col in (i32.sum xs + s, i32.maximum xs)) (transpose a) scale) A
  in and (tabulate b (\k -> and (tabulate m (\j ->
       let xs = tabulate n (\i -> A[k, i, j] * scale[j])
       in both[k, j].0 == in_order xs + scale[j]
          && both[k, j].1 == (loop most = i32.lowest for x in xs do if most < x then x else most)))))

-- ==
-- entry: flattened
-- input { 0i64 5i64 7i64 } output { true }
-- input { 9i64 33i64 21i64 } output { true }
entry flattened (a: i64) (b: i64) (c: i64): bool =
  let A = tabulate_3d a b c (\i j k -> number (i + j) k)
  in i32.sum (flatten_3d A) == in_order (flatten_3d A)
     && i32.sum (flatten (map transpose A |> map flatten)) == in_order (flatten_3d A)

-- Bits and truth values have operators of their own.
-- ==
-- entry: bits
-- input { 77i64 } output { true }
entry bits (n: i64): bool =
  let xs = tabulate n (\i -> u8.i64 (i * 31))
  let rows = map (\k -> let ys = map (u8.^ k) xs
                        in (reduce (&) 255 ys, reduce (|) 0 ys, reduce (^) 0 ys, u8.product ys, u8.minimum ys,
                            all (< 200) ys, any (> 250) ys))
                 (tabulate 3 u8.i64)
  in and (map2 (\k (a, o, x, p, least, every, some) ->
                  let ys = map (u8.^ k) xs
                  in a == (loop r = 255 for y in ys do r & y) && o == (loop r = 0 for y in ys do r | y)
                     && x == (loop r = 0 for y in ys do r ^ y) && p == (loop r = 1 for y in ys do r * y)
                     && least == (loop r = 255 for y in ys do if y < r then y else r)
                     && every == (loop r = true for y in ys do r && y < 200)
                     && some == (loop r = false for y in ys do r || y > 250))
               (tabulate 3 u8.i64) rows)
