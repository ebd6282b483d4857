-- What one result of a loop started with may be where the other lies afterwards: neither is overwritten while the other is
-- read. The last one is.
-- RUN: inline,simplify,elide-copies
-- SIZES: n=3 t=0
-- SIZES: n=4 t=2
-- WANT: /copy 1
def main [n] (xs: [n]i64) (t: i64): ([n]i64, [n]i64) =
  let (a, b) = loop (a: [n]i64, b: [n]i64) = (map (+ 1) xs, map (+ 2) xs) for _i < t do (b, map (+ 3) a)
  let c = copy a with [0] = b[n - 1]
  let d = copy b with [0] = c[n - 1]
  in (c, d)
-- OUTPUT
stage soac of "loop-results-that-may-share.fut"

#[result_type("([n]i64, [n]i64)")]
entry main (xs : "[n]i64", t : "i64") : {"[n]i64", "[n]i64"}
fun main [n] (xs : [n]i64, t : i64) : {[n]i64, [n]i64} = {
  let {xs_1 : [n]i64} =
    map(i < n, {xs},
      \{x : i64} -> { let {n_1 : i64} = size(x + 1) in {n_1} })
  let {xs_2 : [n]i64} =
    map(i_1 < n, {xs},
      \{x_1 : i64} -> { let {n_2 : i64} = size(x_1 + 2) in {n_2} })
  let {a : [n]i64, b : [n]i64} =
    loop {a_1 : [n]i64 = xs_1, b_1 : [n]i64 = xs_2} for _i < t {
      let {xs_3 : [n]i64} =
        map(i_2 < n, {a_1},
          \{x_2 : i64} -> { let {n_3 : i64} = size(x_2 + 3) in {n_3} })
      in {b_1, xs_3}
    }
  let {b_2 : i64} = checked b[n - 1]
  let {a_2 : [n]i64} = copy(a)
  let {c : [n]i64} = checked a_2 with [0] = b_2
  let {c_1 : i64} = checked c[n - 1]
  let {d : [n]i64} = checked b with [0] = c_1
  in {c, d}
}

-- REMARKS
missed elide-copies:copy-kept, main 9:11: 'a' is copied before it is overwritten: 'b' is read later
applied elide-copies:in-place, main 10:11: 'b' is overwritten in place
