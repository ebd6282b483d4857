-- Two arrays that a loop carries swap their roles in one branch, and stay where they are in the other: host code
-- exchanges blocks, and nothing is copied.
-- RUN: inline,simplify,cse,elide-copies,extract-kernels,place-memory{reuse=false}
-- SIZES: n=4 k=3
-- WANT: /segmap 2  loop/if/if/alloc 1  loop/if/if/segmap 1
def main [n][k] (xs: [n]i32) (ys: [n]i32) (kinds: [k]i32): ([n]i32, [n]i32) =
  loop (before, now) = (copy xs, copy ys) for i < k do
    if kinds[i] % 3 == 0 then (before, now)
    else if kinds[i] % 3 == 1 then (now, before)
    else (now, map (\j -> 2 * now[n - 1 - j] - before[j]) (iota n))
-- OUTPUT
stage memory of "branches-that-swap.fut"

#[result_type("([n]i32, [n]i32)")]
entry main (xs : "[n]i32", ys : "[n]i32", kinds : "[k]i32") : {"[n]i32", "[n]i32"}
fun main [n, k] (xs : [n]i32 @ xs_mem_1 -> {offset: 0; strides: [1]}, ys : [n]i32 @ ys_mem -> {offset: 0; strides: [1]}, kinds : [k]i32 @ kinds_mem -> {offset: 0; strides: [1]}) : {[n]i32, [n]i32} = {
  let {a_mem : mem@global} = alloc(4*n, global)
  let {a : [n]i32 @ a_mem -> {offset: 0; strides: [1]}} =
    segmap(thread) (i_n < n) {
      let {a_1 : i32} = xs[i_n]
      return {returns a_1}
    }
  let {a_mem_1 : mem@global} = alloc(4*n, global)
  let {a_2 : [n]i32 @ a_mem_1 -> {offset: 0; strides: [1]}} =
    segmap(thread) (i_n_1 < n) {
      let {a_3 : i32} = ys[i_n_1]
      return {returns a_3}
    }
  let {r : [n]i32 @ a_mem -> {offset: 0; strides: [1]}, r_1 : [n]i32 @ a_mem_1 -> {offset: 0; strides: [1]}} =
    loop {before : [n]i32 @ a_mem -> {offset: 0; strides: [1]} = a, now : [n]i32 @ a_mem_1 -> {offset: 0; strides: [1]} = a_2} for i < k {
      let {kinds_1 : i32} = kinds[i]
      let {x : i32} = mod(kinds_1, 3i32)
      let {c : bool} = eq(x, 0i32)
      let {r_2 : [n]i32 @ a_mem -> {offset: 0; strides: [1]}, r_3 : [n]i32 @ a_mem_1 -> {offset: 0; strides: [1]}} =
        if c {
          in {before, now}
        } else {
          let {c_1 : bool} = eq(x, 1i32)
          let {r_4 : [n]i32 @ a_mem -> {offset: 0; strides: [1]}} =
            if c_1 {
              in {before}
            } else {
              let {xs_mem : mem@global} = alloc(4*n, global)
              let {xs_1 : [n]i32 @ xs_mem -> {offset: 0; strides: [1]}} =
                segmap(thread) (i_n_2 < n) {
                  let {now_1 : i32} = now[n - i_n_2 - 1]
                  let {x_1 : i32} = mul(now_1, 2i32)
                  let {before_1 : i32} = before[i_n_2]
                  let {x_2 : i32} = sub(x_1, before_1)
                  return {returns x_2}
                }
              in {xs_1}
            }
          in {now, r_4}
        }
      in {r_2, r_3}
    }
  in {r, r_1}
}

-- REMARKS
missed elide-copies:copy-kept, main 7:25: 'xs' is copied before it is overwritten: 'xs' belongs to the caller, or to a map
missed elide-copies:copy-kept, main 7:34: 'ys' is copied before it is overwritten: 'ys' belongs to the caller, or to a map
applied extract-kernels:kernel, main 10:16: 'xs' is a kernel {space=n}
