-- Contractions among other code of a thread: in branches, beside other reductions, behind flat indices.

entry triangle [m][n][q] (A: [m][q]i32) (B: [q][n]i32): [m][n]i32 =
  tabulate_2d m n (\i j -> if j <= i then i32.sum (tabulate q (\k -> A[i,k] * B[k,j])) else -1)

entry either [m][n][q] (A: [m][q]i32) (B: [q][n]i32) (D: [m][q]i32): [m][n]i32 =
  tabulate_2d m n (\i j -> if i < j then i32.sum (map2 (*) D[i] B[:,j])
                           else i32.sum (tabulate q (\k -> A[i,k] * B[k,j])))

entry for_all [m][n][q] (c: bool) (A: [m][q]i32) (B: [q][n]i32): [m][n]i32 =
  tabulate_2d m n (\i j -> if c then i32.sum (tabulate q (\k -> A[i,k] * B[k,j])) else i32.i64 (i - j))

entry two_widths [m][n][p][q] (A: [m][q]i32) (B: [q][n]i32) (C: [m][p]i32) (D: [p][n]i32): [m][n]i32 =
  tabulate_2d m n (\i j -> i32.sum (tabulate q (\k -> A[i,k] * B[k,j]))
                           - i32.maximum (tabulate p (\k -> C[i,k] + D[k,j])))

entry deviations [m][n][q] (A: [m][q]i32) (B: [q][n]i32): [m][n]i32 =
  map (\row -> map (\col ->
         let s = i32.sum (map2 (*) row col)
         in i32.sum (map2 (\x y -> (x*y - s) * (x*y - s)) row col)) (transpose B)) A

entry flat [m][n][p][q] (A: [m][p][q]i32) (B: [p][q][n]i32): [m*n]i32 =
  tabulate (m*n) (\ij -> let (i, j) = (ij / n, ij % n)
                         in i32.sum (tabulate (p*q) (\k -> A[i,k/q,k%q] * B[k/q,k%q,j])))

entry weights_and_ones [m][n][p][q] (A: [m][p][q]i32) (B: [p][q][n]i32) (w: [q]i32): [m][n](i32, i32, i32) =
  tabulate_2d m n (\i j ->
    reduce (\(a, b, c) (d, e, f) -> (a + d, b + e, c + f)) (0, 0, 0)
           (flatten (tabulate_2d p q (\k l -> (A[i,k,l] * B[k,l,j], w[l], 1)))))
