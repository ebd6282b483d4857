-- Three columns, elements that need their neighbours, and what is shared and no scalar: the rows stay as they are.
-- RUN: inline,simplify,fuse,simplify,cse,extract-kernels,simplify
-- WANT: segmap(thread)/redomap/map 4
entry main [m][n][d] (A: [m][n]i64) (B: [n][d]i64) (P: [n][3]i64) : ([m][3]i64, [m][d]i64) =
  (map (\a -> reduce (map2 (+)) (replicate 3 0) (map2 (\x p -> map (* x) p) a P)) A,
   map (\a -> reduce (map2 (+)) (replicate d 0)
                     (map2 (\x b -> let sums = scan (+) 0 b in map (* x) (rotate 1 sums)) a B)) A)
-- OUTPUT
stage kernel of "rows-that-stay-together.fut"

#[result_type("([m][3]i64, [m][d]i64)")]
entry main (A : "[m][n]i64", B : "[n][d]i64", P : "[n][3]i64") : {"[m][3]i64", "[m][d]i64"}
fun main [m, n, d] (A : [m][n]i64, B : [n][d]i64, P : [n][3]i64) : {[m][3]i64, [m][d]i64} = {
  let {x : [3]i64} =
    segmap(thread) (i_x < 3) {
      return {returns 0i64}
    }
  let {xs : [m][3]i64} =
    segmap(thread) (i_m < m) {
      let {a : [n]i64} = A[i_m]
      let {r : [3]i64} =
        redomap(i < n, {a, P},
          \{x_1 : i64, p : [3]i64} -> {
            let {xs_1 : [3]i64} =
              map(i_1 < 3, {p},
                \{x_2 : i64} -> { let {n_1 : i64} = size(x_1*x_2) in {n_1} })
            in {xs_1}
          },
          {\{a_1 : [3]i64, b : [3]i64} -> {
            let {xs_2 : [3]i64} =
              map(i_2 < 3, {a_1, b},
                \{x_3 : i64, x_4 : i64} -> { let {n_2 : i64} = size(x_3 + x_4) in {n_2} })
            in {xs_2}
          }, {x}})
      return {returns r}
    }
  let {x_5 : [d]i64} =
    segmap(thread) (i_d < d) {
      return {returns 0i64}
    }
  let {xs_3 : [m][d]i64} =
    segmap(thread) (i_m_1 < m) {
      let {a_2 : [n]i64} = A[i_m_1]
      let {r_1 : [d]i64} =
        redomap(i_3 < n, {a_2, B},
          \{x_6 : i64, b_1 : [d]i64} -> {
            let {sums : [d]i64} =
              scan(i_4 < d, {b_1},
                \{x_7 : i64} -> { in {x_7} },
                {scan commutative \{a_3 : i64, b_2 : i64} -> { let {n_3 : i64} = size(a_3 + b_2) in {n_3} }, {0i64}})
            let {xs_4 : [d]i64} =
              map(i_5 < d, {},
                \{} -> {
                  let {x_8 : i64} = sums[-d*floor_div(i_5 + 1, d) + i_5 + 1]
                  let {n_4 : i64} = size(x_6*x_8)
                  in {n_4}
                })
            in {xs_4}
          },
          {\{a_4 : [d]i64, b_3 : [d]i64} -> {
            let {xs_5 : [d]i64} =
              map(i_6 < d, {a_4, b_3},
                \{x_9 : i64, x_10 : i64} -> { let {n_5 : i64} = size(x_9 + x_10) in {n_5} })
            in {xs_5}
          }, {x_5}})
      return {returns r_1}
    }
  in {xs, xs_3}
}

-- REMARKS
applied fuse:vertical, main 5:15: the map that makes 'xs' is fused into its use
applied fuse:vertical, main 7:64: the map that makes 'xs' is fused into its use
applied fuse:vertical, main 6:15: the map that makes 'xs' is fused into its use
applied extract-kernels:kernel, main 5:4: 'xs' is a kernel {space=m}
analysis extract-kernels:sequentialised, main 5:64: the map that makes 'xs' runs sequentially in each thread
analysis extract-kernels:sequentialised, main 5:15: the map that makes 'xs' runs sequentially in each thread
applied extract-kernels:kernel, main 6:4: 'xs' is a kernel {space=m}
analysis extract-kernels:sequentialised, main 7:48: the map that makes 'sums' runs sequentially in each thread
analysis extract-kernels:sequentialised, main 7:64: the map that makes 'xs' runs sequentially in each thread
analysis extract-kernels:sequentialised, main 6:15: the map that makes 'xs' runs sequentially in each thread
