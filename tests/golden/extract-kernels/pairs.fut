-- Distances of all pairs are folded where they are made, in tiles of points. Without a contraction inside, as between bodies,
-- and with an element for each pair, sums stay with teams.
-- RUN: inline,simplify,fuse,simplify,cse,extract-kernels,simplify
-- PARAM: nearest.pairs.T_q=2
-- PARAM: nearest.pairs.T_k=2
-- PARAM: nearest.pairs.R_q=1
-- PARAM: nearest.pairs.R_k=2
-- PARAM: nearest.pairs.T_d=2
-- PARAM: nearest.pairs.from=1
-- SIZES: n=5 m=5 d=3
-- WANT: choose/segmap(block) 1
entry bodies [n] (xs: [n]i32) (ms: [n]i32) : ([n]i32, [n]i32) =
  unzip (map (\x -> reduce_comm (\(a, b) (c, d) -> (a + c, i32.max b d)) (0, i32.lowest)
                                (map2 (\y m -> (m * (y - x), y - x * m)) xs ms)) xs)

entry nearest [n][m][d] (xs: [n][d]i32) (ys: [m][d]i32) : [n]i64 =
  map (\x -> let closer (a, i) (b, j) = if a < b || (a == b && i < j) then (a, i) else (b, j)
             let distance y = i32.sum (map2 (\a b -> (a - b) * (a - b)) x y)
             in (reduce_comm closer (i32.highest, i64.highest) (zip (map distance ys) (iota m))).1) xs

entry rows [n][m] (xss: [n][m]i32) (ys: [m]i32) : [n]i32 = map (\xs -> i32.sum (map2 (*) xs ys)) xss
-- OUTPUT
stage kernel of "pairs.fut"

#[result_type("([n]i32, [n]i32)")]
entry bodies (xs : "[n]i32", ms : "[n]i32") : {"[n]i32", "[n]i32"}
fun bodies [n] (xs : [n]i32, ms : [n]i32) : {[n]i32, [n]i32} = {
  let {threads : i64} = get_size("bodies.chunks", grid_size, 262144)
  let {team : i64} = get_size("bodies.team", thread_block_size, 256)
  let {team_1 : i64} = size(max(min(floor_div(n, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
  let {x : i64} = clz(team_1)
  let {digits : i64} = sub(63i64, x)
  let {team_2 : i64} = shl(1i64, digits)
  let {blocks : i64} = get_size("bodies.blocks", grid_size, 1)
  let {blocks_1 : i64} = size(max(max(min(n, blocks), min(floor_div(n, 2048), floor_div(threads, 256*max(n, 1)))), 1))
  #[chunks]
  let {r : [n][1]i32, r_1 : [n][1]i32} =
    segmap(thread) (i_n < n, c < 1) team(team_2) blocks(blocks_1) {
      let {x_1 : i32} = xs[i_n]
      let {r_2 : i32, r_3 : i32} =
        redomap(i < n, {xs, ms},
          \{y : i32, m : i32} -> {
            let {x_2 : i32} = sub(y, x_1)
            let {x_3 : i32} = mul(m, x_2)
            let {x_4 : i32} = mul(x_1, m)
            let {x_5 : i32} = sub(y, x_4)
            in {x_3, x_5}
          },
          {commutative \{a : i32, b : i32, c_1 : i32, d : i32} -> {
            let {x_6 : i32} = add(a, c_1)
            let {x_7 : i32} = max(b, d)
            in {x_6, x_7}
          }, {0i32, -2147483648i32}})
      return {returns r_2, returns r_3}
    }
  let {r_4 : [n]i32} = reshape(r, [n])
  let {r_5 : [n]i32} = reshape(r_1, [n])
  in {r_4, r_5}
}

entry nearest (xs : "[n][d]i32", ys : "[m][d]i32") : {"[n]i64"}
fun nearest [n, m, d] (xs : [n][d]i32, ys : [m][d]i32) : {[n]i64} = {
  let {from : i64} = get_size("nearest.pairs.from", threshold, 12)
  let {T_k : i64} = get_size("nearest.pairs.T_k", tile_size, 32)
  let {T_q : i64} = get_size("nearest.pairs.T_q", tile_size, 8)
  let {R_q : i64} = get_size("nearest.pairs.R_q", reg_tile_size, 8)
  let {R_k : i64} = get_size("nearest.pairs.R_k", reg_tile_size, 4)
  let {T_d : i64} = get_size("nearest.pairs.T_d", tile_size, 16)
  let {blocks : i64} = size(ceil_div(n, T_q*R_q))
  let {many : bool} = le(from, blocks)
  let {tile : i64} = size(T_k*R_k)
  let {long_enough : bool} = le(tile, m)
  let {pays : bool} = and(many, long_enough)
  let {xs_1 : [n]i64} =
    choose first "nearest.pairs.variant" {
      tiled when pays {
        let {xs_2 : [n]i64} =
          segmap(block) (b_q < ceil_div(n, T_q*R_q)) {
            let {folded : [T_k][T_q][R_q]i32, folded_1 : [T_k][T_q][R_q]i64} =
              segmap(inblock) (t_k < T_k, t_q < T_q) {
                let {init : [R_q]i32} = replicate([R_q], 2147483647i32)
                let {init_1 : [R_q]i64} = replicate([R_q], 9223372036854775807i64)
                return {private init, private init_1}
              }
            let {xs_s : [T_q*R_q][T_d]i32} = shared(i32, {offset: 0; shape: [T_q*R_q, T_d]; strides: [1, T_q*R_q + 4]})
            let {ys_s : [T_k*R_k][T_d]i32} = shared(i32, {offset: 0; shape: [T_k*R_k, T_d]; strides: [1, T_k*R_k + 4]})
            let {folded_2 : [T_k][T_q][R_q]i32, folded_3 : [T_k][T_q][R_q]i64, xs_s_1 : [T_q*R_q][T_d]i32, ys_s_1 : [T_k*R_k][T_d]i32} =
              loop {folded_4 : [T_k][T_q][R_q]i32 = folded, folded_5 : [T_k][T_q][R_q]i64 = folded_1, xs_s_2 : [T_q*R_q][T_d]i32 = xs_s, ys_s_2 : [T_k*R_k][T_d]i32 = ys_s} for tile_1 < ceil_div(m, T_k*R_k) {
                let {sums : [T_k][T_q][R_k][R_q]i32} =
                  segmap(inblock) (t_k_1 < T_k, t_q_1 < T_q) {
                    let {init_2 : [R_k][R_q]i32} = replicate([R_k, R_q], 0i32)
                    return {private init_2}
                  }
                let {sums_1 : [T_k][T_q][R_k][R_q]i32, xs_s_3 : [T_q*R_q][T_d]i32, ys_s_3 : [T_k*R_k][T_d]i32} =
                  loop {sums_2 : [T_k][T_q][R_k][R_q]i32 = sums, xs_s_4 : [T_q*R_q][T_d]i32 = xs_s_2, ys_s_4 : [T_k*R_k][T_d]i32 = ys_s_2} for tile_2 < ceil_div(d, T_d) {
                    let {xs_s_5 : [T_q*R_q][T_d]i32} = copy_tile xs_s_4 <- xs[{offset: d*T_q*R_q*b_q + T_d*tile_2; shape: [T_q*R_q, T_d]; strides: [d, 1]}] guard (T_q*R_q*b_q < n, T_d*tile_2 < d) pad 0i32
                    let {ys_s_5 : [T_k*R_k][T_d]i32} = copy_tile ys_s_4 <- ys[{offset: d*T_k*R_k*tile_1 + T_d*tile_2; shape: [T_k*R_k, T_d]; strides: [d, 1]}] guard (T_k*R_k*tile_1 < m, T_d*tile_2 < d) pad 0i32
                    let {sums_3 : [T_k][T_q][R_k][R_q]i32} =
                      tile_contract(space (T_k / R_k, T_q / R_q), depth (min(-T_d*tile_2 + d, T_d)), {sums_2}, {xs_s_5 at (1, 2), ys_s_5 at (0, 2)},
                        \{a : i32, b : i32} -> {
                          let {x : i32} = sub(a, b)
                          let {x_1 : i32} = mul(x, x)
                          in {x_1}
                        },
                        {commutative \{a_1 : i32, b_1 : i32} -> { let {x_2 : i32} = add(a_1, b_1) in {x_2} }, {0i32}})
                    in {sums_3, xs_s_5, ys_s_5}
                  }
                let {folded_6 : [T_k][T_q][R_q]i32, folded_7 : [T_k][T_q][R_q]i64} =
                  segmap(inblock) (t_k_2 < T_k, t_q_2 < T_q) {
                    let {row : [R_q]i32} = folded_4[t_k_2, t_q_2]
                    let {row_1 : [R_q]i64} = folded_5[t_k_2, t_q_2]
                    let {folded_8 : [R_q]i32, folded_9 : [R_q]i64} =
                      map(i < R_q, {row, row_1},
                        \{x_3 : i32, x_4 : i64} -> {
                          let {part : i32, part_1 : i64} =
                            redomap(i_1 < R_k, {},
                              \{} -> {
                                let {key : i64} = size(T_k*R_k*tile_1 + R_k*t_k_2 + i_1)
                                let {x_5 : i32} = sums_1[t_k_2, t_q_2, i_1, i]
                                let {inside : bool} = lt(key, m)
                                let {x_6 : i32, x_7 : i64} =
                                  if inside {
                                    in {x_5, key}
                                  } else {
                                    in {2147483647i32, 9223372036854775807i64}
                                  }
                                in {x_6, x_7}
                              },
                              {commutative \{a_2 : i32, i_2 : i64, b_2 : i32, j : i64} -> {
                                let {c : bool} = lt(a_2, b_2)
                                let {c_1 : bool} = eq(a_2, b_2)
                                let {c_2 : bool} = lt(i_2, j)
                                let {x_8 : bool} = and(c_1, c_2)
                                let {x_9 : bool} = or(c, x_8)
                                let {r : i32, r_1 : i64} =
                                  if x_9 {
                                    in {a_2, i_2}
                                  } else {
                                    in {b_2, j}
                                  }
                                in {r, r_1}
                              }, {2147483647i32, 9223372036854775807i64}})
                          let {c_3 : bool} = lt(x_3, part)
                          let {c_4 : bool} = eq(x_3, part)
                          let {c_5 : bool} = lt(x_4, part_1)
                          let {x_10 : bool} = and(c_4, c_5)
                          let {x_11 : bool} = or(c_3, x_10)
                          let {r_2 : i32, r_3 : i64} =
                            if x_11 {
                              in {x_3, x_4}
                            } else {
                              in {part, part_1}
                            }
                          in {r_2, r_3}
                        })
                    return {private folded_8, private folded_9}
                  }
                in {folded_6, folded_7, xs_s_3, ys_s_3}
              }
            let {parts : [T_k][T_q][R_q]i32, parts_1 : [T_k][T_q][R_q]i64} =
              segmap(inblock) (t_k_3 < T_k, t_q_3 < T_q) {
                let {row_2 : [R_q]i32} = folded_2[t_k_3, t_q_3]
                let {row_3 : [R_q]i64} = folded_3[t_k_3, t_q_3]
                return {returns row_2, returns row_3}
              }
            let {out : [T_q][R_q]i64} =
              segmap(inblock) (t_q_4 < T_q) {
                let {out_1 : [R_q]i64} =
                  map(i_3 < R_q, {},
                    \{} -> {
                      let {total : i32, total_1 : i64} =
                        redomap(i_4 < T_k, {},
                          \{} -> {
                            let {x_12 : i32} = parts[i_4, t_q_4, i_3]
                            let {x_13 : i64} = parts_1[i_4, t_q_4, i_3]
                            in {x_12, x_13}
                          },
                          {commutative \{a_3 : i32, i_5 : i64, b_3 : i32, j_1 : i64} -> {
                            let {c_6 : bool} = lt(a_3, b_3)
                            let {c_7 : bool} = eq(a_3, b_3)
                            let {c_8 : bool} = lt(i_5, j_1)
                            let {x_14 : bool} = and(c_7, c_8)
                            let {x_15 : bool} = or(c_6, x_14)
                            let {r_4 : i32, r_5 : i64} =
                              if x_15 {
                                in {a_3, i_5}
                              } else {
                                in {b_3, j_1}
                              }
                            in {r_4, r_5}
                          }, {2147483647i32, 9223372036854775807i64}})
                      let {query : i64} = size(T_q*R_q*b_q + R_q*t_q_4 + i_3)
                      let {inside_1 : bool} = lt(query, n)
                      let {out_2 : i64} =
                        if inside_1 {
                          in {total_1}
                        } else {
                          in {0i64}
                        }
                      in {out_2}
                    })
                return {private out_1}
              }
            return {regtile(n / T_q / R_q) out}
          }
        in {xs_2}
      }
      apart {
        let {threads : i64} = get_size("nearest.chunks", grid_size, 262144)
        let {team : i64} = get_size("nearest.team", thread_block_size, 256)
        let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
        let {x_16 : i64} = clz(team_1)
        let {digits : i64} = sub(63i64, x_16)
        let {team_2 : i64} = shl(1i64, digits)
        let {blocks_1 : i64} = get_size("nearest.blocks", grid_size, 1)
        let {blocks_2 : i64} = size(max(max(min(m, blocks_1), min(floor_div(m, 2048), floor_div(threads, 256*max(n, 1)))), 1))
        #[chunks]
        let {r_6 : [n][1]i64} =
          segmap(thread) (i_n < n, c_9 < 1) team(team_2) blocks(blocks_2) {
            let {x_17 : [d]i32} = xs[i_n]
            let {r_7 : i32, r_8 : i64} =
              redomap(k < m, {},
                \{} -> {
                  let {i_6 : i64} = size(m*c_9 + k)
                  let {y : [d]i32} = ys[m*c_9 + k]
                  let {r_9 : i32} =
                    redomap(i_7 < d, {x_17, y},
                      \{a_4 : i32, b_4 : i32} -> {
                        let {x_18 : i32} = sub(a_4, b_4)
                        let {x_19 : i32} = mul(x_18, x_18)
                        in {x_19}
                      },
                      {commutative \{a_5 : i32, b_5 : i32} -> { let {x_20 : i32} = add(a_5, b_5) in {x_20} }, {0i32}})
                  in {r_9, i_6}
                },
                {commutative \{a_6 : i32, i_8 : i64, b_6 : i32, j_2 : i64} -> {
                  let {c_10 : bool} = lt(a_6, b_6)
                  let {c_11 : bool} = eq(a_6, b_6)
                  let {c_12 : bool} = lt(i_8, j_2)
                  let {x_21 : bool} = and(c_11, c_12)
                  let {x_22 : bool} = or(c_10, x_21)
                  let {r_10 : i32, r_11 : i64} =
                    if x_22 {
                      in {a_6, i_8}
                    } else {
                      in {b_6, j_2}
                    }
                  in {r_10, r_11}
                }, {2147483647i32, 9223372036854775807i64}})
            return {returns r_8}
          }
        let {r_12 : [n]i64} = reshape(r_6, [n])
        in {r_12}
      }
    }
  in {xs_1}
}

entry rows (xss : "[n][m]i32", ys : "[m]i32") : {"[n]i32"}
fun rows [n, m] (xss : [n][m]i32, ys : [m]i32) : {[n]i32} = {
  let {threads : i64} = get_size("rows.chunks", grid_size, 262144)
  let {team : i64} = get_size("rows.team", thread_block_size, 256)
  let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
  let {x : i64} = clz(team_1)
  let {digits : i64} = sub(63i64, x)
  let {team_2 : i64} = shl(1i64, digits)
  let {blocks : i64} = get_size("rows.blocks", grid_size, 1)
  let {blocks_1 : i64} = size(max(max(min(m, blocks), min(floor_div(m, 2048), floor_div(threads, 256*max(n, 1)))), 1))
  #[chunks]
  let {r : [n][1]i32} =
    segmap(thread) (i_n < n, c < 1) team(team_2) blocks(blocks_1) {
      let {xs : [m]i32} = xss[i_n]
      let {r_1 : i32} =
        redomap(i < m, {xs, ys},
          \{x_1 : i32, x_2 : i32} -> { let {x_3 : i32} = mul(x_1, x_2) in {x_3} },
          {commutative \{a : i32, b : i32} -> { let {x_4 : i32} = add(a, b) in {x_4} }, {0i32}})
      return {returns r_1}
    }
  let {r_2 : [n]i32} = reshape(r, [n])
  in {r_2}
}

-- REMARKS
applied fuse:vertical, bodies 13:21: the map that makes 'xs' is fused into its use
applied fuse:vertical, nearest 18:31: the map that makes 'xs' is fused into its use
applied fuse:vertical, nearest 19:17: the map that makes 'xs' is fused into its use
applied fuse:vertical, rows 21:72: the map that makes 'xs' is fused into its use
applied extract-kernels:segmented, bodies 13:9: the reductions that make 'xs' are done in chunks, all at once
missed extract-kernels:not-tiled, bodies 13:21: the reduction is done in chunks, not tiled: what the reduction goes over (`xs`, `ms`) varies along no parallel dim: all threads read the same elements at a time, which the cache gives to all of them at once {reason=no-free-dim, einsum=a->n, dims=n:batch n_2:contracted, xs=<n_2:1> varies with <>, ms=<n_2:1> varies with <>, xs=one element a block, operator=commutative, condition.free-dim=fails, condition.reuse=fails: there is no free dim, along which elements are used again, condition.reduction=holds: operands vary along n_2, condition.total=holds: map function and operator cannot fail}
applied extract-kernels:segmented, nearest 17:3: the reductions that make 'xs' are done in chunks, all at once
missed extract-kernels:not-tiled, nearest 19:17: the reduction is done in chunks, not tiled: the redomap streams rows of `ys`, not elements {reason=operand-row, condition.one-reduction=holds: one redomap, condition.scalars=holds: it gives reduced scalars alone, condition.regular=holds: its widths and operator are the same for all indices, condition.surroundings=holds: code before and after can be done in the tiled kernel, condition.operands=fails}
  hint: make the inner results in a line of their own, `let D = map (\a -> map (\b -> ..) ..) ..`, which is tiled, and reduce its rows in the next, `map (reduce ..) D`
applied extract-kernels:pairs, nearest 17:3: the reduction that makes 'xs' goes through tiles, whose elements are read once for several indices of `n`, where there are enough of these {reused=ys, width=m, numbers=nearest.pairs.*}
applied extract-kernels:segmented, rows 21:60: the reductions that make 'xs' are done in chunks, all at once
missed extract-kernels:not-tiled, rows 21:72: the reduction is done in chunks, not tiled: what varies along a parallel dim (`xss`) varies along all of `n`: each element is used once {reason=no-free-dim, einsum=nm,m->n, dims=n:batch m:contracted, xss=<n:m, m:1> varies with <0>, ys=<m:1> varies with <>, operator=commutative, condition.free-dim=fails, condition.reuse=fails: there is no free dim, along which elements are used again, condition.reduction=holds: operands vary along m, condition.total=holds: map function and operator cannot fail}
  hint: map over one more dim, along which `xss` does not vary: several right-hand sides at once
