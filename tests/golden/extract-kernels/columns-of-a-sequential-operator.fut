-- #[sequential_inner] before a reduction whose operator is a map over rows: columns are reductions in parallel all the same.
-- RUN: extract-kernels
-- PARAM: main.chunks=8 main.team=1
-- SIZES: n=70 m=2
-- SIZES: n=3 m=90
-- WANT: /if/segmap/redomap 3

def main [n][m] (xss: [n][m]f32): [m]f32 = #[sequential_inner] reduce (map2 (+)) (replicate m 0) xss
-- OUTPUT
stage kernel of "columns-of-a-sequential-operator.fut"

entry main (xss : "[n][m]f32") : {"[m]f32"}
fun main [n, m] (xss : [n][m]f32) : {[m]f32} = {
  let {x : [m]f32} =
    segmap(thread) (i_m < m) {
      return {returns 0.0f32}
    }
  let {xss_1 : [m][n]f32} = rearrange(xss, (1, 0))
  let {threads : i64} = get_size("main.chunks", grid_size, 262144)
  let {team : i64} = get_size("main.team", thread_block_size, 256)
  let {chunks : i64} = size(max(min(min(floor_div(n, 8), floor_div(threads, max(m, 1))), 8192), 1))
  let {one_chunk : bool} = eq(chunks, 1i64)
  let {r : [m]f32} =
    if one_chunk {
      let {per_chunk : i64} = size(n)
      #[chunks]
      let {r_1 : [1][m]f32} =
        segmap(thread) (c < 1, i_m_1 < m) {
          let {xss_2 : [n]f32} = xss_1[i_m_1]
          let {r_2 : f32} =
            redomap(k < n, {},
              \{} -> {
                let {at : i64} = size(c + k)
                let {i : i64} = size(at)
                let {xss_3 : f32} = xss_2[i]
                in {xss_3}
              },
              {\{x_1 : f32, x_2 : f32} -> { let {x_3 : f32} = add(x_1, x_2) in {x_3} }, {0.0f32}})
          return {returns r_2}
        }
      let {r_3 : [m][1]f32} = rearrange(r_1, (1, 0))
      let {r_4 : [m]f32} = r_3[0 :+ m, 0]
      in {r_4}
    } else {
      let {n_1 : i64} = size(n + chunks - 1)
      let {per_chunk_1 : i64} = quot(n_1, chunks)
      #[chunks]
      let {r_5 : [chunks][m]f32} =
        segmap(thread) (c_1 < chunks, i_m_2 < m) {
          let {xss_4 : [n]f32} = xss_1[i_m_2]
          let {own : i64} = size(max(0, ceil_div(n - c_1, chunks)))
          let {r_6 : f32} =
            redomap(k_1 < own, {},
              \{} -> {
                let {at_1 : i64} = size(chunks*k_1 + c_1)
                let {i_1 : i64} = size(at_1)
                let {xss_5 : f32} = xss_4[i_1]
                in {xss_5}
              },
              {\{x_4 : f32, x_5 : f32} -> { let {x_6 : f32} = add(x_4, x_5) in {x_6} }, {0.0f32}})
          return {returns r_6}
        }
      let {r_7 : [m][chunks]f32} = rearrange(r_5, (1, 0))
      let {team_1 : i64} = size(max(min(floor_div(chunks, 2), min(min(team, 256), max(floor_div(threads, max(m, 1)), 32))), 1))
      let {x_7 : i64} = clz(team_1)
      let {digits : i64} = sub(63i64, x_7)
      let {team_2 : i64} = shl(1i64, digits)
      let {per_chunk_2 : i64} = size(chunks)
      #[chunks]
      let {r_8 : [m][1]f32} =
        segmap(thread) (i_m_3 < m, c_2 < 1) team(team_2) {
          let {xss_6 : [n]f32} = xss_1[i_m_3]
          let {r_9 : [chunks]f32} = r_7[i_m_3]
          let {r_10 : f32} =
            redomap(k_2 < chunks, {},
              \{} -> {
                let {at_2 : i64} = size(per_chunk_2*c_2 + k_2)
                let {i_2 : i64} = size(at_2)
                let {r_11 : f32} = r_9[i_2]
                in {r_11}
              },
              {\{x_8 : f32, x_9 : f32} -> { let {x_10 : f32} = add(x_8, x_9) in {x_10} }, {0.0f32}})
          return {returns r_10}
        }
      let {r_12 : [m]f32} = reshape(r_8, [m])
      in {r_12}
    }
  let {r_13 : [m]f32} = r
  let {r_14 : [m]f32} = r_13
  in {r_14}
}

-- REMARKS
applied extract-kernels:by-columns, main 8:64: neighbouring threads fold neighbouring elements of 'r': those lie side by side in what is read {chunks=main.chunks}
applied extract-kernels:segmented, main 8:64: the reductions that make 'r' are done in chunks, all at once
missed extract-kernels:not-tiled, main 8:64: the reduction is done in chunks, not tiled: what varies along a parallel dim (`xss`) varies along all of `m`: each element is used once {reason=no-free-dim, einsum=mn->m, dims=m:batch n:contracted, xss=<m:n, n:1> varies with <0>, operator=commutative, condition.free-dim=fails, condition.reuse=fails: there is no free dim, along which elements are used again, condition.reduction=holds: operands vary along n, condition.total=holds: map function and operator cannot fail}
  hint: map over one more dim, along which `xss` does not vary: several right-hand sides at once
