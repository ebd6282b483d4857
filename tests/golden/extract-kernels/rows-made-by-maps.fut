-- Reductions of rows that are made in their lambda are done column by column: by a map, of what is the same for all columns
-- and made once in a map before, and by a branch. A contraction comes of each.
-- RUN: inline,simplify,fuse,simplify,cse,extract-kernels,simplify
-- WANT: segmap(thread)/redomap 4  segmap(thread)/redomap/map 0
entry main [m][n][d] (A: [m][n]i64) (B: [n][d]i64) : ([m][d]i64, [m][d]i64, [m][d]i64) =
  let sums (f: i64 -> [d]i64 -> [d]i64) = map (\a -> reduce (map2 (+)) (replicate d 0) (map2 f a B)) A
  in (sums (\x -> map (* x)),
      sums (\x -> let square = reduce (*) 1 (map (+ x) (iota 2)) in map (* square)),
      map (\a -> reduce (map2 i64.max) (replicate d i64.lowest)
                        (map2 (\x b -> if x < 0 then replicate d 0 else map (x +) b) a B)) A)
-- OUTPUT
stage kernel of "rows-made-by-maps.fut"

#[result_type("([m][d]i64, [m][d]i64, [m][d]i64)")]
entry main (A : "[m][n]i64", B : "[n][d]i64") : {"[m][d]i64", "[m][d]i64", "[m][d]i64"}
fun main [m, n, d] (A : [m][n]i64, B : [n][d]i64) : {[m][d]i64, [m][d]i64, [m][d]i64} = {
  let {x : [d]i64} =
    segmap(thread) (i_d < d) {
      return {returns 0i64}
    }
  let {r : [m][d]i64} =
    segmap(thread) (i_m < m, i_d_1 < d) {
      let {a : [n]i64} = A[i_m]
      let {r_1 : i64} =
        redomap(i < n, {a},
          \{x_1 : i64} -> {
            let {x_2 : i64} = B[i, i_d_1]
            let {n_1 : i64} = size(x_1*x_2)
            in {n_1}
          },
          {\{x_3 : i64, x_4 : i64} -> { let {n_2 : i64} = size(x_3 + x_4) in {n_2} }, {0i64}})
      return {returns r_1}
    }
  let {square : [m][n]i64} =
    segmap(thread) (i_m_1 < m, i_n < n) {
      let {x_5 : i64} = A[i_m_1, i_n]
      let {square_1 : i64} =
        redomap(i_1 < 2, {},
          \{} -> { let {n_3 : i64} = size(x_5 + i_1) in {n_3} },
          {commutative \{a_1 : i64, b : i64} -> { let {n_4 : i64} = size(a_1*b) in {n_4} }, {1i64}})
      return {returns square_1}
    }
  let {r_2 : [m][d]i64} =
    segmap(thread) (i_m_2 < m, i_d_2 < d) {
      let {square_2 : [n]i64} = square[i_m_2]
      let {r_3 : i64} =
        redomap(i_2 < n, {square_2},
          \{square_3 : i64} -> {
            let {x_6 : i64} = B[i_2, i_d_2]
            let {n_5 : i64} = size(square_3*x_6)
            in {n_5}
          },
          {\{x_7 : i64, x_8 : i64} -> { let {n_6 : i64} = size(x_7 + x_8) in {n_6} }, {0i64}})
      return {returns r_3}
    }
  let {r_4 : [m][d]i64} =
    segmap(thread) (i_m_3 < m, i_d_3 < d) {
      let {a_2 : [n]i64} = A[i_m_3]
      let {r_5 : i64} =
        redomap(i_3 < n, {a_2},
          \{x_9 : i64} -> {
            let {c : bool} = lt(x_9, 0i64)
            let {r_6 : i64} =
              if c {
                let {x_10 : i64} = x[i_d_3]
                in {x_10}
              } else {
                let {b_1 : i64} = B[i_3, i_d_3]
                let {n_7 : i64} = size(x_9 + b_1)
                in {n_7}
              }
            in {r_6}
          },
          {\{x_11 : i64, x_12 : i64} -> { let {n_8 : i64} = size(max(x_11, x_12)) in {n_8} }, {-9223372036854775808i64}})
      return {returns r_5}
    }
  in {r, r_2, r_4}
}

-- REMARKS
applied fuse:vertical, main 6:54: the map that makes 'xs' is fused into its use
applied fuse:vertical, main 8:32: the map that makes 'xs' is fused into its use
applied fuse:vertical, main 6:54: the map that makes 'xs' is fused into its use
applied fuse:vertical, main 9:18: the map that makes 'xs' is fused into its use
applied extract-kernels:kernel, main 6:54: 'r' is a kernel {space=m, d}
applied extract-kernels:distributed, main 6:43: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=2}
applied extract-kernels:kernel, main 6:54: 'square' is a kernel {space=m, n}
applied extract-kernels:kernel, main 6:54: 'r' is a kernel {space=m, d}
applied extract-kernels:kernel, main 9:18: 'r' is a kernel {space=m, d}
