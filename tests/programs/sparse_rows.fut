-- Rows that are computed from rows of a sparse operand, in nests that do more with them: no version of these nests may
-- need the operand as a dense matrix (tests/explain_test.cmake), and the results are those of the dense program.

def mm [n][m][k] (P: [n][m]i32) (Q: [m][k]i32) : [n][k]i32 =
  map (\r -> map (\c -> i32.sum (map2 (*) r c)) (transpose Q)) P

-- A row is made, summed, divided by the sum and multiplied, all in one nest.
#[sparse(A)]
entry weights [n][m][k] (A: [n][m]i32) (X: [m][k]i32) (l: [n]i32) (r: [m]i32) : [n][k]i32 =
  map2 (\a li ->
    let e = map2 (\x rj -> if x == 0 then 0 else i32.max (3 * (li + rj)) (li + rj)) a r
    let s = i32.sum e
    in map (\c -> i32.sum (map2 (*) e c) / i32.max s 1) (transpose X)) A l

-- Scores that an operand masks.
#[sparse(A)]
entry scores [n][m][d] (A: [n][m]i32) (Q: [n][d]i32) (K: [m][d]i32) (V: [m][d]i32) : [n][d]i32 =
  map2 (\a q ->
    let s = map2 (\x k -> if x == 0 then 0 else x * i32.sum (map2 (*) q k)) a K
    let t = i32.sum s
    in map (\v -> i32.sum (map2 (*) s v) / i32.max t 1) (transpose V)) A Q

-- Rows divided by their sums are an operand of a product, are reduced, and are the result.
#[sparse(A)]
entry normalised [n][k] (A: [n][n]i32) (X: [n][k]i32) : [n][k]i32 =
  mm (map (\a -> let e = map (\x -> if x == 0 then 0 else x * x + 1) a
                 let s = i32.sum e
                 in map (\y -> if s == 0 then 0 else 50 * y / s) e) A) X

#[sparse(A)]
entry reduced [n][m] (A: [n][m]i32) : [n]i32 =
  map (\a -> let e = map (\x -> if x == 0 then 0 else x * x + 1) a
             let s = i32.sum e
             in i32.sum (map (\y -> if s == 0 then 0 else y / s * y) e)) A

#[sparse(A, result)]
entry kept [n][m] (A: [n][m]i32) : [n][m]i32 =
  map (\a -> let e = map (\x -> if x == 0 then 0 else x * x + 1) a
             let s = i32.sum e
             in map (\y -> if s == 0 then 0 else 50 * y / s) e) A

-- Indices that need a check, for each element of a row.
#[sparse(A)]
entry checked [n][m] (A: [n][m]i32) (v: [m]i32) (is: [m]i64) : [n]i32 =
  map (\a -> let e = map2 (\x i -> x * v[i % m]) a is
             let s = i32.sum e
             in i32.sum (map (\y -> y * s) e)) A

-- Heads around the nest, and a loop.
#[sparse(A)]
entry heads [h][n][m][k] (A: [n][m]i32) (X: [h][m][k]i32) : [h][n][k]i32 =
  map (\x -> map (\a -> let e = map (\y -> 2 * y) a
                        let s = i32.sum e
                        in map (\c -> i32.sum (map2 (*) e c) + s) (transpose x)) A) X

#[sparse(A)]
entry repeated [n][k] (A: [n][n]i32) (X: [n][k]i32) : [n][k]i32 =
  loop X for i < 2 do
    map (\a -> let e = map (\y -> y * (1 + i32.i64 i)) a
               let s = i32.sum e
               in map (\c -> i32.sum (map2 (*) e c) % i32.max 7 s) (transpose X)) A

-- The adjoint of a nest.
#[sparse(A)]
entry adjoint [n][m][k] (A: [n][m]i32) (X: [m][k]i32) (l: [n]i32) (r: [m]i32) : ([n]i32, [m]i32) =
  vjp (\(l, r) ->
    i32.sum (map i32.sum
      (map2 (\a li -> let e = map2 (\x rj -> if x == 0 then 0 else i32.max (3 * (li + rj)) (li + rj)) a r
                      let s = i32.sum e
                      in map (\c -> i32.sum (map2 (*) e c) * s) (transpose X)) A l))) (l, r) 1
