-- An array that a branch makes longer comes with its block: the branch that leaves it as it is hands the block on.
-- RUN: inline,simplify,cse,elide-copies,extract-kernels,place-memory{reuse=false}
-- SIZES: n=4
-- WANT: loop/if/alloc 1  loop/if/segmap 1
def main [n] (xs: [n]i32) : []i32 =
  (loop (buffer: *[]i32, size: i64) = ([0], 0) for i < n do
     let buffer: []i32 = if size == length buffer then buffer ++ buffer else buffer
     in (buffer with [size] = xs[i], size + 1)).0
-- OUTPUT
stage memory of "branch-that-grows.fut"

entry main (xs : "[n]i32") : {"[]i32"}
fun main [n] (xs : [n]i32 @ xs_mem_1 -> {offset: 0; strides: [1]}) : exists [d] {[d]i32} = {
  let {a_mem : mem@global} = alloc(4, global)
  let {a : [1]i32 @ a_mem -> {offset: 0; strides: [1]}} = [0i32] of i32
  let {d_1 : i64, r_mem : mem@global, r : [d_1]i32 @ r_mem -> {offset: 0; strides: [1]}, r_1 : i64} =
    loop {d_2 : i64 = 1i64, buffer_mem : mem@global = a_mem, buffer : [d_2]i32 @ buffer_mem -> {offset: 0; strides: [1]} = a, size : i64 = 0i64} for i < n {
      let {c : bool} = eq(size, d_2)
      let {d_3 : i64, buffer_mem_1 : mem@global, buffer_1 : [d_3]i32 @ buffer_mem_1 -> {offset: 0; strides: [1]}} =
        if c {
          let {xs_mem : mem@global} = alloc(8*d_2, global)
          let {xs_1 : [2*d_2]i32 @ xs_mem -> {offset: 0; strides: [1]}} =
            segmap(thread) (i_1 < 2*d_2) {
              let {c_1 : bool} = lt(i_1, d_2)
              let {x : i32} =
                if c_1 {
                  let {x_1 : i32} = buffer[i_1]
                  in {x_1}
                } else {
                  let {x_2 : i32} = buffer[-d_2 + i_1]
                  in {x_2}
                }
              return {returns x}
            }
          let {n_1 : i64} = size(2*d_2)
          in {n_1, xs_mem, xs_1}
        } else {
          in {d_2, buffer_mem, buffer}
        }
      let {xs_2 : i32} = xs[i]
      let {a_1 : [d_3]i32 @ buffer_mem_1 -> {offset: 0; strides: [1]}} = checked buffer_1 with [size] = xs_2
      let {n_2 : i64} = size(size + 1)
      in {d_3, buffer_mem_1, a_1, n_2}
    }
  in {r}
}

-- REMARKS
applied elide-copies:in-place, main 6:3: 'a' is overwritten in place
applied elide-copies:in-place, main 8:10: 'buffer' is overwritten in place
applied extract-kernels:kernel, main 7:56: 'xs' is a kernel {space=2*d_2}
