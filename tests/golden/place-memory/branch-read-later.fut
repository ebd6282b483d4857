-- The array that a branch leaves as it is, is read after the branches, or in the next iteration: what the branches give
-- has a block of its own.
-- RUN: inline,simplify,cse,elide-copies,extract-kernels,place-memory{reuse=false}
-- SIZES: n=4 k=3
-- WANT: if/segmap 4
def main [n] (xs: [n]i32) (k: i64) : ([n]i32, [n]i32, [n]i32) =
  let a = map (+ 1) xs
  let b = if k > 2 then a else map (* 2) xs
  let c = map (+ 3) xs
  let d = loop d = replicate n 0 for i < k do
            let e = if i % 2 == 0 then c else map (+ i32.i64 i) d
            in map2 (+) d e
  in (a, b, d)
-- OUTPUT
stage memory of "branch-read-later.fut"

#[result_type("([n]i32, [n]i32, [n]i32)")]
entry main (xs : "[n]i32", k : "i64") : {"[n]i32", "[n]i32", "[n]i32"}
fun main [n] (xs : [n]i32 @ xs_mem_3 -> {offset: 0; strides: [1]}, k : i64) : {[n]i32, [n]i32, [n]i32} = {
  let {a_mem : mem@global} = alloc(4*n, global)
  let {a : [n]i32 @ a_mem -> {offset: 0; strides: [1]}} =
    segmap(thread) (i_n < n) {
      let {x : i32} = xs[i_n]
      let {x_1 : i32} = add(x, 1i32)
      return {returns x_1}
    }
  let {c : bool} = lt(2i64, k)
  let {b_mem : mem@global} = alloc(4*n, global)
  let {b : [n]i32 @ b_mem -> {offset: 0; strides: [1]}} =
    if c {
      let {a_mem_1 : mem@global} = alloc(4*n, global)
      let {a_1 : [n]i32 @ a_mem_1 -> {offset: 0; strides: [1]}} =
        segmap(thread) (i < n) {
          let {x_2 : i32} = a[i]
          return {returns x_2}
        }
      in {a_1}
    } else {
      let {xs_mem : mem@global} = alloc(4*n, global)
      let {xs_1 : [n]i32 @ xs_mem -> {offset: 0; strides: [1]}} =
        segmap(thread) (i_n_1 < n) {
          let {x_3 : i32} = xs[i_n_1]
          let {x_4 : i32} = mul(x_3, 2i32)
          return {returns x_4}
        }
      in {xs_1}
    }
  let {c_mem : mem@global} = alloc(4*n, global)
  let {c_1 : [n]i32 @ c_mem -> {offset: 0; strides: [1]}} =
    segmap(thread) (i_n_2 < n) {
      let {x_5 : i32} = xs[i_n_2]
      let {x_6 : i32} = add(x_5, 3i32)
      return {returns x_6}
    }
  let {x_mem : mem@global} = alloc(4*n, global)
  let {x_7 : [n]i32 @ x_mem -> {offset: 0; strides: [1]}} =
    segmap(thread) (i_n_3 < n) {
      return {returns 0i32}
    }
  let {d : [n]i32 @ x_mem -> {offset: 0; strides: [1]}} =
    loop {d_1 : [n]i32 @ x_mem -> {offset: 0; strides: [1]} = x_7} for i_1 < k {
      let {n_1 : i64} = size(i_1 - 2*floor_div(i_1, 2))
      let {c_2 : bool} = eq(n_1, 0i64)
      let {e_mem : mem@global} = alloc(4*n, global)
      let {e : [n]i32 @ e_mem -> {offset: 0; strides: [1]}} =
        if c_2 {
          let {c_mem_1 : mem@global} = alloc(4*n, global)
          let {c_3 : [n]i32 @ c_mem_1 -> {offset: 0; strides: [1]}} =
            segmap(thread) (i_2 < n) {
              let {x_8 : i32} = c_1[i_2]
              return {returns x_8}
            }
          in {c_3}
        } else {
          let {x_9 : i32} = convert(i_1, i32)
          let {xs_mem_1 : mem@global} = alloc(4*n, global)
          let {xs_2 : [n]i32 @ xs_mem_1 -> {offset: 0; strides: [1]}} =
            segmap(thread) (i_n_4 < n) {
              let {x_10 : i32} = d_1[i_n_4]
              let {x_11 : i32} = add(x_10, x_9)
              return {returns x_11}
            }
          in {xs_2}
        }
      let {xs_mem_2 : mem@global} = alloc(4*n, global)
      let {xs_3 : [n]i32 @ xs_mem_2 -> {offset: 0; strides: [1]}} =
        segmap(thread) (i_n_5 < n) {
          let {x_12 : i32} = d_1[i_n_5]
          let {x_13 : i32} = e[i_n_5]
          let {x_14 : i32} = add(x_12, x_13)
          return {returns x_14}
        }
      in {xs_3}
    }
  in {a, b, d}
}

-- REMARKS
applied extract-kernels:kernel, main 7:11: 'a' is a kernel {space=n}
applied extract-kernels:kernel, main 8:32: 'xs' is a kernel {space=n}
applied extract-kernels:kernel, main 9:11: 'c' is a kernel {space=n}
applied extract-kernels:kernel, main 11:47: 'xs' is a kernel {space=n}
applied extract-kernels:kernel, main 12:16: 'xs' is a kernel {space=n}
