-- A branch updates the array that a loop around carries, by a loop of its own; another leaves it as it is. All of them
-- have one block, and nothing is copied.
-- RUN: inline,simplify,cse,elide-copies,extract-kernels,place-memory{reuse=false}
-- SIZES: n=4 k=3
-- WANT: /alloc 1  /segmap 1  loop/segmap 0  if/segmap 0
def main (n: i64) (k: i64) : i32 =
  (loop a = replicate n 0i32 for i < k do
     if a[i] == 1 then a else loop a for j < 2 do a with [(i + j) % n] = 1)[0]
-- OUTPUT
stage memory of "loop-in-a-branch.fut"

entry main (n : "i64", k : "i64") : {"i32"}
fun main [] (n : i64, k : i64) : {i32} = {
  let {c : bool} = le(0i64, n)
  let {c_1 : unit} = assert(c, "replicate of size ", n, ".")
  let {x_mem : mem@global} = alloc(4*n, global)
  let {x : [n]i32 @ x_mem -> {offset: 0; strides: [1]}} =
    segmap(thread) (i_n < n) {
      return {returns 0i32}
    }
  let {r : [n]i32 @ x_mem -> {offset: 0; strides: [1]}} =
    loop {a : [n]i32 @ x_mem -> {offset: 0; strides: [1]} = x} for i < k {
      let {a_1 : i32} = checked a[i]
      let {c_2 : bool} = eq(a_1, 1i32)
      let {r_1 : [n]i32 @ x_mem -> {offset: 0; strides: [1]}} =
        if c_2 {
          in {a}
        } else {
          let {r_2 : [n]i32 @ x_mem -> {offset: 0; strides: [1]}} =
            loop {a_2 : [n]i32 @ x_mem -> {offset: 0; strides: [1]} = a} for j < 2 {
              let {n_1 : i64} = size(i + j)
              let {x_1 : i64} = mod(n_1, n)
              let {a_3 : [n]i32 @ x_mem -> {offset: 0; strides: [1]}} = checked a_2 with [x_1] = 1i32
              in {a_3}
            }
          in {r_2}
        }
      in {r_1}
    }
  let {r_3 : i32} = checked r[0]
  in {r_3}
}

-- REMARKS
applied elide-copies:in-place, main 7:3: 'x' is overwritten in place
applied elide-copies:in-place, main 8:31: 'a' is overwritten in place
applied elide-copies:in-place, main 8:51: 'a' is overwritten in place
