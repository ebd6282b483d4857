-- Derivatives of what is no sum or product: extrema and quotients of 64-bit integers, which are sizes in the IR; bits of
-- floats; bools; and the number of elements of an iota.

-- ==
-- entry: scalar_extrema
-- input { 3i64 5i64 } output { 1i64 0i64 0i64 1i64 10i64 40i64 }
-- input { 7i64 5i64 } output { 0i64 1i64 1i64 0i64 20i64 30i64 }
entry scalar_extrema (x: i64) (y: i64) : (i64, i64, i64, i64, i64, i64) =
  let (a, b) = vjp (\(x, y) -> i64.min x y) (x, y) 1
  let (c, d) = vjp (\(x, y) -> i64.max x y) (x, y) 1
  in (a, b, c, d, jvp (\(x, y) -> i64.min x y) (x, y) (10, 20), jvp (\(x, y) -> i64.max x y) (x, y) (30, 40))

-- Inside of polynomials, and of each other.
-- ==
-- entry: nested_extrema
-- input { 3i64 5i64 } output { 13i64 6i64 28i64 }
-- input { 4i64 2i64 } output { 17i64 6i64 36i64 }
-- input { 0i64 3i64 } output { 3i64 6i64 8i64 }
entry nested_extrema (x: i64) (y: i64) : (i64, i64, i64) =
  let f (x: i64, y: i64) = 2 * x * i64.max (x + 2) (i64.min y 4) - y + i64.max 1 (x - 7)
  let (a, b) = vjp (\(x, y) -> f (x, y) + 7 * y - 3 * x) (x, y) 1
  in (a, b, jvp f (x, y) (2, 4))

-- ==
-- entry: extrema
-- input { [4i64, 2i64, 9i64, 2i64, 9i64] } output { [0i64, 3i64, 0i64, 0i64, 0i64] [0i64, 0i64, 5i64, 0i64, 0i64] 2i64 3i64 }
-- input { empty([0]i64) } output { empty([0]i64) empty([0]i64) 0i64 0i64 }
entry extrema [n] (xs: [n]i64) : ([n]i64, [n]i64, i64, i64) =
  let tangents = map (+ 1) (iota n)
  in (vjp i64.minimum xs 3, vjp i64.maximum xs 5, jvp i64.minimum xs tangents, jvp i64.maximum xs tangents)

-- The position of a largest element, as an operator.
-- ==
-- entry: largest
-- input { [2f32, 7f32, 7f32, 1f32] [5i64, 8i64, 6i64, 4i64] } output { [0f32, 1f32, 0f32, 0f32] [0i64, 0i64, 1i64, 0i64] }
-- input { [7f32] [5i64] } output { [1f32] [1i64] }
entry largest [n] (xs: [n]f32) (is: [n]i64) : ([n]f32, [n]i64) =
  let op (x: f32, i: i64) (y: f32, j: i64) =
    if x == y then (x, i64.min i j) else if x > y then (x, i) else (y, j)
  in unzip (vjp (reduce op (f32.lowest, i64.highest)) (zip xs is) (1, 1))

-- ==
-- entry: histogram
-- input { [0i64, 1i64, 0i64, 1i64, 2i64] [3i64, 8i64, 2i64, 9i64, 4i64] } output { [0i64, 0i64, 0i64, 1i64, 0i64] }
entry histogram [n] (is: [n]i64) (xs: [n]i64) : [n]i64 =
  vjp (\xs -> reduce_by_index (replicate 2 5) i64.max i64.lowest is xs) xs [1, 1]

-- ==
-- entry: sums
-- input { [4i64, 2i64] } output { [2i64, 2i64] [10i64, 5i64] }
entry sums [n] (xs: [n]i64) : ([n]i64, [n]i64) =
  (vjp i64.sum xs 2, vjp (scan (+) 0 >-> i64.sum) xs 5)

-- ==
-- entry: quotients
-- input { 17i64 } output { 1i64 0i64 0i64 }
entry quotients (x: i64) : (i64, i64, i64) =
  (vjp (\x -> x % 5) x 1, vjp (\x -> x / 5) x 1, jvp (\x -> (x + 1) / 5) x 1)

-- The tangent's bits.
-- ==
-- entry: bits
-- input { 2f32 1f32 } output { 1065353216i32 1f32 }
entry bits (x: f32) (dx: f32) : (i32, f32) =
  let bits (x: f32) = i32.u32 (f32.to_bits x)
  in (jvp bits x dx, vjp bits x (bits dx))

-- Tangents of bools: added by `or`, multiplied by `and`.
-- ==
-- entry: bools
-- input { true true } output { true true false true }
-- input { true false } output { true true false true }
-- input { false true } output { false true false true }
entry bools (x: bool) (y: bool) : (bool, bool, bool, bool) =
  let (dx, dy) = vjp (\(x, y) -> x && y) (x, y) true
  in (jvp (\x -> !x) x true, dy || (dx && y), dx && !y, jvp i32.bool x true == 1)

-- ==
-- entry: numbers
-- input { 5i64 } output { 5i64 }
-- input { 0i64 } output { 0i64 }
entry numbers (n: i64) : i64 = vjp (\n -> i64.sum (iota n)) n 1

-- `flatmap` is linear in its elements; how many there are has no derivative.
def segments (ks: []i64) (xs: []f64) =
  let (_, _, _, rows, doubled) = flatmap (\(k: i64, x: f64) -> (replicate k [x, x * x], 2 * x)) (zip ks xs)
  in (take (i64.sum ks) rows, doubled)

-- ==
-- entry: segments_forward
-- input { [1i64, 0i64, 2i64] [4f64, 5f64, 6f64] }
-- output { [[1f64, 8f64], [1f64, 12f64], [1f64, 12f64]] [2f64, 2f64, 2f64] }
-- input { [0i64, 0i64] [4f64, 5f64] } output { empty([0][2]f64) [2f64, 2f64] }
-- input { empty([0]i64) empty([0]f64) } output { empty([0][2]f64) empty([0]f64) }
entry segments_forward [n] (ks: [n]i64) (xs: [n]f64) = jvp (segments ks) xs (replicate n 1)

-- ==
-- entry: segments_reverse
-- input { [1i64, 0i64, 2i64] [4f64, 5f64, 6f64] } output { [11f64, 2f64, 28f64] }
-- input { [0i64, 0i64] [4f64, 5f64] } output { [2f64, 2f64] }
entry segments_reverse [n] (ks: [n]i64) (xs: [n]f64) =
  vjp (segments ks) xs (replicate (i64.sum ks) (replicate 2 1), replicate n 1)

-- Rows whose size is computed from what each of them is given alike.
-- ==
-- entry: segments_each
-- input { [1i64, 2i64] [4f64, 5f64] }
-- output { [[[1f64, 8f64], [0f64, 0f64], [0f64, 0f64]], [[0f64, 0f64], [1f64, 10f64], [1f64, 10f64]]] }
entry segments_each [n] (ks: [n]i64) (xs: [n]f64) =
  tabulate n (\i -> (jvp (segments ks) xs (replicate n 0 with [i] = 1)).0)

-- ==
-- entry: filtered
-- input { [1f64, -2f64, 3f64] } output { [2f64, 0f64, 6f64] }
entry filtered (xs: []f64) = vjp (\xs -> f64.sum (map (\x -> x * x) (filter (> 0) xs))) xs 1
