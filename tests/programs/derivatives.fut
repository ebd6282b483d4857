-- Derivatives, of integers so that they are exact: what each operation becomes, forwards and in reverse.

def poly (x: i64) (y: i64) : i64 = 3 * x * x * y - (x - y) ** 3

entry scalars (x: i64) (y: i64) : (i64, (i64, i64)) =
  (jvp (\(x, y) -> poly x y) (x, y) (2, 5), vjp (\(x, y) -> poly x y) (x, y) 7)

entry dot [n] (xs: [n]i32) (ys: [n]i32) : (i32, ([n]i32, [n]i32)) =
  let f (xs: [n]i32, ys: [n]i32) = i32.sum (map2 (*) xs ys)
  in (jvp f (xs, ys) (ys, xs), vjp f (xs, ys) 3)

-- The transpose of a product of matrices has two of them.
entry matmul [n][m][q] (a: [n][q]i32) (b: [q][m]i32) (c: [n][m]i32) : ([n][q]i32, [q][m]i32) =
  let mul (a: [n][q]i32, b: [q][m]i32) =
    map (\row -> map (\column -> i32.sum (map2 (*) row column)) (transpose b)) a
  in vjp mul (a, b) c

entry reductions [n] (xs: [n]i32) : ([n]i32, [n]i32, [n]i32) =
  (vjp i32.product xs 1, vjp i32.maximum xs 2, vjp (map (\x -> x * x) >-> i32.sum) xs 1)

-- An operator that does not commute.
entry lines [n] (xs: [n]i32) (ys: [n]i32) (d: (i32, i32)) : ([n]i32, [n]i32) =
  vjp (\(xs, ys) -> reduce (\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) (zip xs ys)) (xs, ys) d

entry scans [n] (xs: [n]i32) (ds: [n]i32) : ([n]i32, [n]i32, [n]i32) =
  (vjp (scan (+) 0) xs ds, vjp (scan (*) 1) xs ds, jvp (scan (*) 1) xs ds)

-- What is read at computed indices.
entry gather [n] (xs: [n]i32) (ds: [n]i32) : [n]i32 =
  vjp (\xs -> map (\i -> xs[(i * i) % n] * xs[i]) (iota n)) xs ds

entry gather_in_nests [n] (xs: [n]i32) (ds: [n]i32) : [n]i32 =
  vjp (\xs -> map (\i -> i32.sum (map (\j -> xs[(i + j) % n] * xs[j]) (iota n))) (iota n)) xs ds

entry histograms [n] (xs: [n]i32) (ds: [4]i32) : ([n]i32, [n]i32, [4]i32) =
  let is = map (\i -> i % 5) (iota n)
  in ( vjp (\xs -> reduce_by_index (replicate 4 0) (+) 0 is xs) xs ds
     , vjp (\xs -> reduce_by_index (replicate 4 1) (*) 1 is xs) xs ds
     , jvp (\xs -> reduce_by_index (replicate 4 1) (*) 1 is xs) xs xs )

entry scatters [n] (xs: [n]i32) (ys: [n]i32) (ds: [n]i32) : ([n]i32, [n]i32) =
  vjp (\(xs, ys) -> scatter (copy xs) (map (+ 1) (iota n)) (map2 (*) xs ys)) (xs, ys) ds

entry loops [n] (xs: [n]i32) (ds: [n]i32) : ([n]i32, [n]i32, i32) =
  let f (xs: [n]i32) = loop ys = xs for i < n do map (* (1 + ys[i] % 3)) (map2 (+) ys xs)
  let g (xs: [n]i32) = loop ys = copy xs for i < n - 1 do ys with [i + 1] = ys[i] * xs[i + 1]
  in (vjp f xs ds, vjp g xs ds, vjp (\x -> loop y = x while y < 100 && y > 1 do y * y) (i32.i64 n) 1)

entry branches [n] (xs: [n]i32) (ds: [n]i32) : ([n]i32, [n]i32) =
  let f (xs: [n]i32) = if n > 3 then map (* xs[0]) xs else reverse xs
  let g (x: i32) = if x % 2 == 0 then x * x else 3 * x
  in (vjp f xs ds, vjp (map g) xs ds)

entry second (x: i32) : (i32, i32, i32) =
  let f (x: i32) = x * x * x * x
  in (vjp (\x -> vjp f x 1) x 1, jvp (\x -> vjp f x 1) x 1, vjp (\x -> jvp f x 1) x 1)

entry jacobian [n] (xs: [n]i32) : ([n][n]i32, [n][n]i32) =
  let f (xs: [n]i32) = map2 (\x y -> x * y + y) xs (rotate 1 xs)
  let unit = tabulate_2d n n (\i j -> i32.bool (i == j))
  in (transpose (jmp f xs unit), mjp f xs unit)
