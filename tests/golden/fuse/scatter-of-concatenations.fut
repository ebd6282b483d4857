-- Concatenations whose size a coercion gives another name go into the scatter that reads them.
-- RUN: inline,simplify,fuse,simplify
-- SIZES: n=6
-- SIZES: n=0
-- WANT: /scatter 1  /map 0  /reshape 0
def main [n] (xs: [n]i64): *[n]i64 =
  let half = n / 2
  let (is, vs, js, ws) =
    unzip4 (map (\i -> let x = #[unsafe] xs[i] * xs[i + half] in (2 * i, x + 1, 2 * i + 1, x * x)) (iota half))
  in scatter (replicate n 0) ((is ++ js) :> [n]i64) ((vs ++ ws) :> [n]i64)
-- OUTPUT
stage soac of "scatter-of-concatenations.fut"

entry main (xs : "[n]i64") : {"[n]i64"}
fun main [n] (xs : [n]i64) : {[n]i64} = {
  let {x : [n]i64} = replicate([n], 0i64)
  let {n_1 : i64} = size(floor_div(n, 2))
  let {n_2 : i64} = size(2*floor_div(n, 2))
  let {c : bool} = eq(n, n_2)
  let {n_3 : i64} = size(2*floor_div(n, 2))
  let {c_1 : unit} = assert(c, "Value of shape [", n_3, "] cannot match shape of type \"[", n, "]i64\".")
  let {n_4 : i64} = size(floor_div(n, 2))
  let {n_5 : i64} = size(2*floor_div(n, 2))
  let {c_2 : bool} = eq(n, n_5)
  let {n_6 : i64} = size(2*floor_div(n, 2))
  let {c_3 : unit} = assert(c_2, "Value of shape [", n_6, "] cannot match shape of type \"[", n, "]i64\".")
  let {xs_1 : [n]i64} = copy(x)
  let {xs_2 : [n]i64} =
    scatter(i < 2*floor_div(n, 2), {},
      \{} -> {
        let {c_4 : bool} = lt(i, n_1)
        let {x_1 : i64} =
          if c_4 {
            let {n_7 : i64} = size(2*i)
            in {n_7}
          } else {
            let {n_8 : i64} = size(2*i - 2*floor_div(n, 2) + 1)
            in {n_8}
          }
        let {c_5 : bool} = lt(i, n_4)
        let {x_2 : i64} =
          if c_5 {
            let {xs_3 : i64} = xs[i]
            #[unsafe]
            let {xs_4 : i64} = xs[i + floor_div(n, 2)]
            let {n_9 : i64} = size(xs_3*xs_4 + 1)
            in {n_9}
          } else {
            let {xs_5 : i64} = xs[i - floor_div(n, 2)]
            #[unsafe]
            let {xs_6 : i64} = xs[i]
            let {n_10 : i64} = size(xs_5*xs_5*xs_6*xs_6)
            in {n_10}
          }
        in {x_1, x_2}
      },
      {xs_1} at 1)
  in {xs_2}
}

-- REMARKS
applied fuse:vertical, main 10:54: 'ws' is computed where its elements are read
applied fuse:vertical, main 10:31: 'js' is computed where its elements are read
applied fuse:vertical, main 10:54: 'vs' is computed where its elements are read
applied fuse:vertical, main 10:31: 'is' is computed where its elements are read
applied fuse:scatter, main 10:6: the map that makes 'xs' is fused into its use
applied fuse:scatter, main 10:6: the map that makes 'xs' is fused into its use
