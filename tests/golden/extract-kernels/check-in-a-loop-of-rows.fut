-- A check that no row has a say in, in a loop that runs over all rows at once: the host makes it, unless there is no row.
-- RUN: inline,simplify,fuse,simplify,elide-copies,extract-kernels,simplify
-- SIZES: m=3 n=4
-- SIZES: m=0 n=3
-- WANT: /loop/assert 2  /loop/segmap(thread)/assert 0
def main [m][n] (xss: [m][n]i64) (t: i64): [m][n]i64 =
  map (\xs ->
         let half = n / 2
         let (res, _) =
           loop (from: *[n]i64, to: *[n]i64) = (copy xs, copy xs) for i < t do
             let (is, vs) = unzip (map (\j -> (2 * j, from[(j + i) % n])) (iota half))
             let (js, ws) = unzip (map (\j -> (2 * j + 1, from[(j + half) % n])) (iota half))
             in (scatter to ((is ++ js) :> [n]i64) ((vs ++ ws) :> [n]i64), from)
         in res)
      xss
-- OUTPUT
stage kernel of "check-in-a-loop-of-rows.fut"

entry main (xss : "[m][n]i64", t : "i64") : {"[m][n]i64"}
fun main [m, n] (xss : [m][n]i64, t : i64) : {[m][n]i64} = {
  let {n_1 : i64} = size(floor_div(n, 2))
  let {n_2 : i64} = size(2*floor_div(n, 2))
  let {c : bool} = eq(n, n_2)
  let {n_3 : i64} = size(2*floor_div(n, 2))
  let {n_4 : i64} = size(floor_div(n, 2))
  let {n_5 : i64} = size(2*floor_div(n, 2))
  let {c_1 : bool} = eq(n, n_5)
  let {n_6 : i64} = size(2*floor_div(n, 2))
  let {a : [m][n]i64} =
    segmap(thread) (i_m < m, i_n < n) {
      let {a_1 : i64} = xss[i_m, i_n]
      return {returns a_1}
    }
  let {a_2 : [m][n]i64} =
    segmap(thread) (i_m_1 < m, i_n_1 < n) {
      let {a_3 : i64} = xss[i_m_1, i_n_1]
      return {returns a_3}
    }
  let {c_2 : bool} = le(m, 0i64)
  let {passed : bool} = or(c, c_2)
  let {passed_1 : bool} = or(c_1, c_2)
  let {res : [m][n]i64, r : [m][n]i64} =
    loop {from : [m][n]i64 = a, to : [m][n]i64 = a_2} for i < t {
      let {is : [m][floor_div(n, 2)]i64, vs : [m][floor_div(n, 2)]i64} =
        segmap(thread) (i_m_2 < m, j < floor_div(n, 2)) {
          let {from_1 : [n]i64} = from[i_m_2]
          let {n_7 : i64} = size(i + j)
          let {x : i64} = mod(n_7, n)
          let {from_2 : i64} = checked from_1[x]
          let {n_8 : i64} = size(2*j)
          return {returns n_8, returns from_2}
        }
      let {js : [m][floor_div(n, 2)]i64, ws : [m][floor_div(n, 2)]i64} =
        segmap(thread) (i_m_3 < m, j_1 < floor_div(n, 2)) {
          let {n_9 : i64} = size(j_1 + floor_div(n, 2))
          let {x_1 : i64} = mod(n_9, n)
          let {from_3 : i64} = from[i_m_3, j_1 + floor_div(n, 2)]
          let {n_10 : i64} = size(2*j_1 + 1)
          return {returns n_10, returns from_3}
        }
      let {c_3 : unit} = assert(passed, "Value of shape [", n_3, "] cannot match shape of type \"[", n, "]i64\".")
      let {c_4 : unit} = assert(passed_1, "Value of shape [", n_6, "] cannot match shape of type \"[", n, "]i64\".")
      let {xs : [m][n]i64} =
        scatter(i_m_4 < m, i_1 < 2*floor_div(n, 2), {},
          \{} -> {
            let {c_5 : bool} = lt(i_1, n_1)
            let {x_2 : i64} =
              if c_5 {
                let {x_3 : i64} = is[i_m_4, i_1]
                in {x_3}
              } else {
                let {x_4 : i64} = js[i_m_4, i_1 - floor_div(n, 2)]
                in {x_4}
              }
            let {c_6 : bool} = lt(i_1, n_4)
            let {x_5 : i64} =
              if c_6 {
                let {x_6 : i64} = vs[i_m_4, i_1]
                in {x_6}
              } else {
                let {x_7 : i64} = ws[i_m_4, i_1 - floor_div(n, 2)]
                in {x_7}
              }
            in {i_m_4, x_2, x_5}
          },
          {to} at 2)
      in {xs, from}
    }
  in {res}
}

-- REMARKS
applied fuse:scatter, main 13:18: the map that makes 'xs' is fused into its use
applied fuse:scatter, main 13:18: the map that makes 'xs' is fused into its use
missed elide-copies:copy-kept, main 10:49: 'xs' is copied before it is overwritten: 'xs' belongs to the caller, or to a map
missed elide-copies:copy-kept, main 10:58: 'xs' is copied before it is overwritten: 'xs' belongs to the caller, or to a map
applied elide-copies:in-place, main 10:12: 'a' is overwritten in place
applied elide-copies:in-place, main 10:12: 'a' is overwritten in place
applied elide-copies:in-place, main 13:18: 'to' is overwritten in place
applied extract-kernels:distributed, main 7:3: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=3}
applied extract-kernels:kernel, main 10:49: 'a' is a kernel {space=m, n}
applied extract-kernels:kernel, main 10:58: 'a' is a kernel {space=m, n}
applied extract-kernels:distributed, main 10:12: the map that makes 'res' is split, so that what is inside runs in parallel {parts=4}
applied extract-kernels:kernel, main 11:35: 'is' is a kernel {space=m, floor_div(n, 2)}
applied extract-kernels:kernel, main 12:35: 'js' is a kernel {space=m, floor_div(n, 2)}
applied extract-kernels:scatter, main 13:18: the scatter into 'xs' is a kernel {width=2*m*floor_div(n, 2)}
