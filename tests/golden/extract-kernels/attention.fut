-- Maps over queries that pass scores and weights on are one map, and that is one kernel: for rows of queries and keys that
-- fit, and where there are blocks enough; else the nest is taken apart.
-- RUN: inline,simplify,fuse,simplify,cse,extract-kernels,simplify
-- PARAM: main.attention.from=1
-- PARAM: main.attention.short.T_d=4
-- WANT: choose/segmap(block) 2
-- NO-LAW: weights are rescaled, which rounds them in another order; test blocks compare results
entry main [h][n][m][d][e] (Q: [h][n][d]f32) (K: [h][m][d]f32) (V: [h][m][e]f32) : [h][n][e]f32 =
  map3 (\q k v ->
    let s = map (\x -> map (\y -> f32.sum (map2 (*) x y)) k) q
    let p = map (\xs -> let mx = f32.maximum xs
                        let es = map (\x -> f32.exp (x - mx)) xs
                        let t = f32.sum es
                        in map (/ t) es) s
    in map (\r -> map (\c -> f32.sum (map2 (*) r c)) (transpose v)) p) Q K V
-- OUTPUT
stage kernel of "attention.fut"

entry main (Q : "[h][n][d]f32", K : "[h][m][d]f32", V : "[h][m][e]f32") : {"[h][n][e]f32"}
fun main [h, n, m, d, e] (Q : [h][n][d]f32, K : [h][m][d]f32, V : [h][m][e]f32) : {[h][n][e]f32} = {
  let {from : i64} = get_size("main.attention.from", threshold, 256)
  let {T_k : i64} = get_size("main.attention.short.T_k", tile_size, 8)
  let {T_q : i64} = get_size("main.attention.short.T_q", tile_size, 32)
  let {R_q : i64} = get_size("main.attention.short.R_q", reg_tile_size, 4)
  let {R_k : i64} = get_size("main.attention.short.R_k", reg_tile_size, 8)
  let {R_c : i64} = get_size("main.attention.short.R_c", reg_tile_size, 8)
  let {T_d : i64} = get_size("main.attention.short.T_d", tile_size, 64)
  let {fits : bool} = le(d, T_d)
  let {blocks : i64} = size(h*ceil_div(n, T_q*R_q))
  let {pays : bool} = le(from, blocks)
  let {some : bool} = lt(0i64, m)
  let {x : bool} = and(fits, pays)
  let {fits_1 : bool} = and(x, some)
  let {T_k_1 : i64} = get_size("main.attention.long.T_k", tile_size, 8)
  let {T_q_1 : i64} = get_size("main.attention.long.T_q", tile_size, 32)
  let {R_q_1 : i64} = get_size("main.attention.long.R_q", reg_tile_size, 4)
  let {R_k_1 : i64} = get_size("main.attention.long.R_k", reg_tile_size, 8)
  let {R_c_1 : i64} = get_size("main.attention.long.R_c", reg_tile_size, 16)
  let {T_d_1 : i64} = get_size("main.attention.long.T_d", tile_size, 128)
  let {fits_2 : bool} = le(d, T_d_1)
  let {blocks_1 : i64} = size(h*ceil_div(n, T_q_1*R_q_1))
  let {pays_1 : bool} = le(from, blocks_1)
  let {some_1 : bool} = lt(0i64, m)
  let {x_1 : bool} = and(fits_2, pays_1)
  let {fits_3 : bool} = and(x_1, some_1)
  let {xs : [h][n][e]f32} =
    choose first "main.attention.variant" {
      short when fits_1 {
        let {xs_1 : [h][n][e]f32} =
          segmap(block) (b < h, b_c < ceil_div(e, T_k*R_c), b_q < ceil_div(n, T_q*R_q)) {
            let {Q_s : [T_q*R_q][T_d]f32} = shared(f32, {offset: 0; shape: [T_q*R_q, T_d]; strides: [1, T_q*R_q + 4]})
            let {K_s : [T_k*R_k][T_d]f32} = shared(f32, {offset: 0; shape: [T_k*R_k, T_d]; strides: [1, T_k*R_k + 4]})
            let {V_s : [T_k*R_k][T_k*R_c]f32} = shared(f32, {offset: 0; shape: [T_k*R_k, T_k*R_c]; strides: [T_k*R_c, 1]})
            let {Q_s_1 : [T_q*R_q][T_d]f32} = copy_tile Q_s <- Q[{offset: d*T_q*R_q*b_q + n*d*b; shape: [T_q*R_q, T_d]; strides: [d, 1]}] guard (T_q*R_q*b_q < n, 0 < d) pad 0.0f32
            let {most : [1][T_k][T_q][R_q]f32, total : [1][T_k][T_q][R_q]f32, sums : [1][T_k][T_q][1][R_c][R_q]f32} =
              segmap(inblock) (t < 1, t_k < T_k, t_q < T_q) {
                let {init : [R_q]f32} = replicate([R_q], -f32.inf)
                let {init_1 : [R_q]f32} = replicate([R_q], 0.0f32)
                let {init_2 : [1][R_c][R_q]f32} = replicate([1, R_c, R_q], 0.0f32)
                return {private init, private init_1, private init_2}
              }
            let {most_1 : [1][T_k][T_q][R_q]f32, total_1 : [1][T_k][T_q][R_q]f32, sums_1 : [1][T_k][T_q][1][R_c][R_q]f32, K_s_1 : [T_k*R_k][T_d]f32, V_s_1 : [T_k*R_k][T_k*R_c]f32} =
              loop {most_2 : [1][T_k][T_q][R_q]f32 = most, total_2 : [1][T_k][T_q][R_q]f32 = total, sums_2 : [1][T_k][T_q][1][R_c][R_q]f32 = sums, K_s_2 : [T_k*R_k][T_d]f32 = K_s, V_s_2 : [T_k*R_k][T_k*R_c]f32 = V_s} for tile < ceil_div(m, T_k*R_k) {
                let {K_s_3 : [T_k*R_k][T_d]f32} = copy_tile K_s_2 <- K[{offset: d*T_k*R_k*tile + m*d*b; shape: [T_k*R_k, T_d]; strides: [d, 1]}] guard (T_k*R_k*tile < m, 0 < d) pad 0.0f32
                let {V_s_3 : [T_k*R_k][T_k*R_c]f32} = copy_tile V_s_2 <- V[{offset: e*T_k*R_k*tile + m*e*b + T_k*R_c*b_c; shape: [T_k*R_k, T_k*R_c]; strides: [e, 1]}] guard (T_k*R_k*tile < m, T_k*R_c*b_c < e) pad 0.0f32
                let {sums_3 : [1][T_k][T_q][1][R_k][R_q]f32} =
                  segmap(inblock) (t_1 < 1, t_k_1 < T_k, t_q_1 < T_q) {
                    let {init_3 : [1][R_k][R_q]f32} = replicate([1, R_k, R_q], 0.0f32)
                    return {private init_3}
                  }
                let {sums_4 : [1][T_k][T_q][1][R_k][R_q]f32} =
                  tile_contract(space (1 / 1, T_k / R_k, T_q / R_q), depth (d), {sums_3}, {Q_s_1 at (2, 3), K_s_3 at (1, 3)},
                    \{x_2 : f32, x_3 : f32} -> { let {x_4 : f32} = mul(x_2, x_3) in {x_4} },
                    {commutative \{a : f32, b_1 : f32} -> { let {x_5 : f32} = add(a, b_1) in {x_5} }, {0.0f32}})
                let {scores : [1][T_k][T_q][1][R_k][R_q]f32, most_3 : [1][T_k][T_q][R_q]f32} =
                  segmap(inblock) (t_2 < 1, t_k_2 < T_k, t_q_2 < T_q) {
                    let {row : [1][R_k][R_q]f32} = sums_4[t_2, t_k_2, t_q_2]
                    let {scores_1 : [1][R_k][R_q]f32} =
                      map(i < 1, i_1 < R_k, i_2 < R_q, {row},
                        \{x_6 : f32} -> {
                          let {key : i64} = size(T_k*R_k*tile + R_k*t_k_2 + i_1)
                          let {inside : bool} = lt(key, m)
                          let {score : f32} =
                            if inside {
                              in {x_6}
                            } else {
                              in {-f32.inf}
                            }
                          in {score}
                        })
                    let {most_4 : [R_q]f32} =
                      map(i_3 < R_q, {},
                        \{} -> {
                          let {x_7 : f32} =
                            redomap(i_4 < R_k, {},
                              \{} -> { let {x_8 : f32} = scores_1[0, i_4, i_3] in {x_8} },
                              {commutative \{a_1 : f32, b_2 : f32} -> { let {x_9 : f32} = max(a_1, b_2) in {x_9} }, {-f32.inf}})
                          in {x_7}
                        })
                    return {private scores_1, returns most_4}
                  }
                let {most_5 : [1][T_k][T_q][R_q]f32, total_3 : [1][T_k][T_q][R_q]f32, sums_5 : [1][T_k][T_q][1][R_c][R_q]f32, weights : [1][T_k][T_q][1][R_k][R_q]f32} =
                  segmap(inblock) (t_3 < 1, t_k_3 < T_k, t_q_3 < T_q) {
                    let {row_1 : [1][R_k][R_q]f32} = scores[t_3, t_k_3, t_q_3]
                    let {row_2 : [R_q]f32} = most_2[t_3, t_k_3, t_q_3]
                    let {row_3 : [1][R_c][R_q]f32} = sums_2[t_3, t_k_3, t_q_3]
                    let {most_6 : [R_q]f32, base : [R_q]f32, factor : [R_q]f32} =
                      map(i_5 < R_q, {row_2},
                        \{x_10 : f32} -> {
                          let {x_11 : f32} =
                            redomap(i_6 < T_k, {},
                              \{} -> { let {x_12 : f32} = most_3[0, i_6, t_q_3, i_5] in {x_12} },
                              {commutative \{a_2 : f32, b_3 : f32} -> { let {x_13 : f32} = max(a_2, b_3) in {x_13} }, {-f32.inf}})
                          let {most_7 : f32} = max(x_10, x_11)
                          let {none : bool} = eq(most_7, -f32.inf)
                          let {base_1 : f32} =
                            if none {
                              in {0.0f32}
                            } else {
                              in {most_7}
                            }
                          let {x_14 : f32} = sub(x_10, base_1)
                          let {factor_1 : f32} = exp(x_14)
                          in {most_7, base_1, factor_1}
                        })
                    let {weights_1 : [1][R_k][R_q]f32} =
                      map(i_7 < 1, i_8 < R_k, i_9 < R_q, {row_1},
                        \{x_15 : f32} -> {
                          let {x_16 : f32} = base[i_9]
                          let {x_17 : f32} = sub(x_15, x_16)
                          let {w : f32} = exp(x_17)
                          in {w}
                        })
                    let {row_4 : [R_q]f32} = total_2[t_3, t_k_3, t_q_3]
                    let {total_4 : [R_q]f32} =
                      map(i_10 < R_q, {row_4, factor},
                        \{x_18 : f32, x_19 : f32} -> {
                          let {x_20 : f32} =
                            redomap(i_11 < R_k, {},
                              \{} -> { let {x_21 : f32} = weights_1[0, i_11, i_10] in {x_21} },
                              {commutative \{a_3 : f32, b_4 : f32} -> { let {x_22 : f32} = add(a_3, b_4) in {x_22} }, {0.0f32}})
                          let {x_23 : f32} = mul(x_18, x_19)
                          let {x_24 : f32} = add(x_23, x_20)
                          in {x_24}
                        })
                    let {sums_6 : [1][R_c][R_q]f32} =
                      map(i_12 < 1, i_13 < R_c, i_14 < R_q, {row_3},
                        \{x_25 : f32} -> {
                          let {x_26 : f32} = factor[i_14]
                          let {x_27 : f32} = mul(x_25, x_26)
                          in {x_27}
                        })
                    return {private most_6, private total_4, private sums_6, returns weights_1}
                  }
                let {weights_2 : [1][1][T_k][R_k][T_q][R_q]f32} = rearrange(weights, (0, 3, 1, 4, 2, 5))
                let {weights_s : [T_k*R_k][T_q*R_q]f32} = reshape(weights_2, [T_k*R_k, T_q*R_q])
                let {sums_7 : [1][T_k][T_q][1][R_c][R_q]f32} =
                  tile_contract(space (1 / 1, T_k / R_c, T_q / R_q), depth (min(-T_k*R_k*tile + m, T_k*R_k)), {sums_5}, {weights_s at (3, 2), V_s_3 at (3, 1)},
                    \{w_1 : f32, c : f32} -> { let {x_28 : f32} = mul(w_1, c) in {x_28} },
                    {commutative \{a_4 : f32, b_5 : f32} -> { let {x_29 : f32} = add(a_4, b_5) in {x_29} }, {0.0f32}})
                in {most_5, total_3, sums_7, K_s_3, V_s_3}
              }
            let {totals : [1][T_k][T_q][R_q]f32} =
              segmap(inblock) (t_4 < 1, t_k_4 < T_k, t_q_4 < T_q) {
                let {row_5 : [R_q]f32} = total_1[t_4, t_k_4, t_q_4]
                return {returns row_5}
              }
            let {out : [1][T_k][T_q][1][R_c][R_q]f32} =
              segmap(inblock) (t_5 < 1, t_k_5 < T_k, t_q_5 < T_q) {
                let {row_6 : [1][R_c][R_q]f32} = sums_1[t_5, t_k_5, t_q_5]
                let {total_5 : [R_q]f32} =
                  map(i_15 < R_q, {},
                    \{} -> {
                      let {x_30 : f32} =
                        redomap(i_16 < T_k, {},
                          \{} -> { let {x_31 : f32} = totals[0, i_16, t_q_5, i_15] in {x_31} },
                          {commutative \{a_5 : f32, b_6 : f32} -> { let {x_32 : f32} = add(a_5, b_6) in {x_32} }, {0.0f32}})
                      in {x_30}
                    })
                let {out_1 : [1][R_c][R_q]f32} =
                  map(i_17 < 1, i_18 < R_c, i_19 < R_q, {row_6},
                    \{x_33 : f32} -> {
                      let {column : i64} = size(T_k*R_c*b_c + R_c*t_k_5 + i_18)
                      let {query : i64} = size(T_q*R_q*b_q + R_q*t_q_5 + i_19)
                      let {c_1 : bool} = lt(column, e)
                      let {c_2 : bool} = lt(query, n)
                      let {inside_1 : bool} = and(c_2, c_1)
                      let {total_6 : f32} = total_5[i_19]
                      let {out_2 : f32} =
                        if inside_1 {
                          let {o : f32} = div(x_33, total_6)
                          in {o}
                        } else {
                          in {0.0f32}
                        }
                      in {out_2}
                    })
                return {private out_1}
              }
            return {regtile(h over [0 : h] / 1 / 1, e over [2 : e] / T_k / R_c, n over [1 : n] / T_q / R_q) out}
          }
        in {xs_1}
      }
      long when fits_3 {
        let {xs_2 : [h][n][e]f32} =
          segmap(block) (b_7 < h, b_c_1 < ceil_div(e, T_k_1*R_c_1), b_q_1 < ceil_div(n, T_q_1*R_q_1)) {
            let {Q_s_2 : [T_q_1*R_q_1][T_d_1]f32} = shared(f32, {offset: 0; shape: [T_q_1*R_q_1, T_d_1]; strides: [1, T_q_1*R_q_1 + 4]})
            let {K_s_4 : [T_k_1*R_k_1][T_d_1]f32} = shared(f32, {offset: 0; shape: [T_k_1*R_k_1, T_d_1]; strides: [1, T_k_1*R_k_1 + 4]})
            let {V_s_4 : [T_k_1*R_k_1][T_k_1*R_c_1]f32} = shared(f32, {offset: 0; shape: [T_k_1*R_k_1, T_k_1*R_c_1]; strides: [T_k_1*R_c_1, 1]})
            let {Q_s_3 : [T_q_1*R_q_1][T_d_1]f32} = copy_tile Q_s_2 <- Q[{offset: d*T_q_1*R_q_1*b_q_1 + n*d*b_7; shape: [T_q_1*R_q_1, T_d_1]; strides: [d, 1]}] guard (T_q_1*R_q_1*b_q_1 < n, 0 < d) pad 0.0f32
            let {most_8 : [1][T_k_1][T_q_1][R_q_1]f32, total_7 : [1][T_k_1][T_q_1][R_q_1]f32, sums_8 : [1][T_k_1][T_q_1][1][R_c_1][R_q_1]f32} =
              segmap(inblock) (t_6 < 1, t_k_6 < T_k_1, t_q_6 < T_q_1) {
                let {init_4 : [R_q_1]f32} = replicate([R_q_1], -f32.inf)
                let {init_5 : [R_q_1]f32} = replicate([R_q_1], 0.0f32)
                let {init_6 : [1][R_c_1][R_q_1]f32} = replicate([1, R_c_1, R_q_1], 0.0f32)
                return {private init_4, private init_5, private init_6}
              }
            let {most_9 : [1][T_k_1][T_q_1][R_q_1]f32, total_8 : [1][T_k_1][T_q_1][R_q_1]f32, sums_9 : [1][T_k_1][T_q_1][1][R_c_1][R_q_1]f32, K_s_5 : [T_k_1*R_k_1][T_d_1]f32, V_s_5 : [T_k_1*R_k_1][T_k_1*R_c_1]f32} =
              loop {most_10 : [1][T_k_1][T_q_1][R_q_1]f32 = most_8, total_9 : [1][T_k_1][T_q_1][R_q_1]f32 = total_7, sums_10 : [1][T_k_1][T_q_1][1][R_c_1][R_q_1]f32 = sums_8, K_s_6 : [T_k_1*R_k_1][T_d_1]f32 = K_s_4, V_s_6 : [T_k_1*R_k_1][T_k_1*R_c_1]f32 = V_s_4} for tile_1 < ceil_div(m, T_k_1*R_k_1) {
                let {K_s_7 : [T_k_1*R_k_1][T_d_1]f32} = copy_tile K_s_6 <- K[{offset: d*T_k_1*R_k_1*tile_1 + m*d*b_7; shape: [T_k_1*R_k_1, T_d_1]; strides: [d, 1]}] guard (T_k_1*R_k_1*tile_1 < m, 0 < d) pad 0.0f32
                let {V_s_7 : [T_k_1*R_k_1][T_k_1*R_c_1]f32} = copy_tile V_s_6 <- V[{offset: e*T_k_1*R_k_1*tile_1 + m*e*b_7 + T_k_1*R_c_1*b_c_1; shape: [T_k_1*R_k_1, T_k_1*R_c_1]; strides: [e, 1]}] guard (T_k_1*R_k_1*tile_1 < m, T_k_1*R_c_1*b_c_1 < e) pad 0.0f32
                let {sums_11 : [1][T_k_1][T_q_1][1][R_k_1][R_q_1]f32} =
                  segmap(inblock) (t_7 < 1, t_k_7 < T_k_1, t_q_7 < T_q_1) {
                    let {init_7 : [1][R_k_1][R_q_1]f32} = replicate([1, R_k_1, R_q_1], 0.0f32)
                    return {private init_7}
                  }
                let {sums_12 : [1][T_k_1][T_q_1][1][R_k_1][R_q_1]f32} =
                  tile_contract(space (1 / 1, T_k_1 / R_k_1, T_q_1 / R_q_1), depth (d), {sums_11}, {Q_s_3 at (2, 3), K_s_7 at (1, 3)},
                    \{x_34 : f32, x_35 : f32} -> { let {x_36 : f32} = mul(x_34, x_35) in {x_36} },
                    {commutative \{a_6 : f32, b_8 : f32} -> { let {x_37 : f32} = add(a_6, b_8) in {x_37} }, {0.0f32}})
                let {scores_2 : [1][T_k_1][T_q_1][1][R_k_1][R_q_1]f32, most_11 : [1][T_k_1][T_q_1][R_q_1]f32} =
                  segmap(inblock) (t_8 < 1, t_k_8 < T_k_1, t_q_8 < T_q_1) {
                    let {row_7 : [1][R_k_1][R_q_1]f32} = sums_12[t_8, t_k_8, t_q_8]
                    let {scores_3 : [1][R_k_1][R_q_1]f32} =
                      map(i_20 < 1, i_21 < R_k_1, i_22 < R_q_1, {row_7},
                        \{x_38 : f32} -> {
                          let {key_1 : i64} = size(T_k_1*R_k_1*tile_1 + R_k_1*t_k_8 + i_21)
                          let {inside_2 : bool} = lt(key_1, m)
                          let {score_1 : f32} =
                            if inside_2 {
                              in {x_38}
                            } else {
                              in {-f32.inf}
                            }
                          in {score_1}
                        })
                    let {most_12 : [R_q_1]f32} =
                      map(i_23 < R_q_1, {},
                        \{} -> {
                          let {x_39 : f32} =
                            redomap(i_24 < R_k_1, {},
                              \{} -> { let {x_40 : f32} = scores_3[0, i_24, i_23] in {x_40} },
                              {commutative \{a_7 : f32, b_9 : f32} -> { let {x_41 : f32} = max(a_7, b_9) in {x_41} }, {-f32.inf}})
                          in {x_39}
                        })
                    return {private scores_3, returns most_12}
                  }
                let {most_13 : [1][T_k_1][T_q_1][R_q_1]f32, total_10 : [1][T_k_1][T_q_1][R_q_1]f32, sums_13 : [1][T_k_1][T_q_1][1][R_c_1][R_q_1]f32, weights_3 : [1][T_k_1][T_q_1][1][R_k_1][R_q_1]f32} =
                  segmap(inblock) (t_9 < 1, t_k_9 < T_k_1, t_q_9 < T_q_1) {
                    let {row_8 : [1][R_k_1][R_q_1]f32} = scores_2[t_9, t_k_9, t_q_9]
                    let {row_9 : [R_q_1]f32} = most_10[t_9, t_k_9, t_q_9]
                    let {row_10 : [1][R_c_1][R_q_1]f32} = sums_10[t_9, t_k_9, t_q_9]
                    let {most_14 : [R_q_1]f32, base_2 : [R_q_1]f32, factor_2 : [R_q_1]f32} =
                      map(i_25 < R_q_1, {row_9},
                        \{x_42 : f32} -> {
                          let {x_43 : f32} =
                            redomap(i_26 < T_k_1, {},
                              \{} -> { let {x_44 : f32} = most_11[0, i_26, t_q_9, i_25] in {x_44} },
                              {commutative \{a_8 : f32, b_10 : f32} -> { let {x_45 : f32} = max(a_8, b_10) in {x_45} }, {-f32.inf}})
                          let {most_15 : f32} = max(x_42, x_43)
                          let {none_1 : bool} = eq(most_15, -f32.inf)
                          let {base_3 : f32} =
                            if none_1 {
                              in {0.0f32}
                            } else {
                              in {most_15}
                            }
                          let {x_46 : f32} = sub(x_42, base_3)
                          let {factor_3 : f32} = exp(x_46)
                          in {most_15, base_3, factor_3}
                        })
                    let {weights_4 : [1][R_k_1][R_q_1]f32} =
                      map(i_27 < 1, i_28 < R_k_1, i_29 < R_q_1, {row_8},
                        \{x_47 : f32} -> {
                          let {x_48 : f32} = base_2[i_29]
                          let {x_49 : f32} = sub(x_47, x_48)
                          let {w_2 : f32} = exp(x_49)
                          in {w_2}
                        })
                    let {row_11 : [R_q_1]f32} = total_9[t_9, t_k_9, t_q_9]
                    let {total_11 : [R_q_1]f32} =
                      map(i_30 < R_q_1, {row_11, factor_2},
                        \{x_50 : f32, x_51 : f32} -> {
                          let {x_52 : f32} =
                            redomap(i_31 < R_k_1, {},
                              \{} -> { let {x_53 : f32} = weights_4[0, i_31, i_30] in {x_53} },
                              {commutative \{a_9 : f32, b_11 : f32} -> { let {x_54 : f32} = add(a_9, b_11) in {x_54} }, {0.0f32}})
                          let {x_55 : f32} = mul(x_50, x_51)
                          let {x_56 : f32} = add(x_55, x_52)
                          in {x_56}
                        })
                    let {sums_14 : [1][R_c_1][R_q_1]f32} =
                      map(i_32 < 1, i_33 < R_c_1, i_34 < R_q_1, {row_10},
                        \{x_57 : f32} -> {
                          let {x_58 : f32} = factor_2[i_34]
                          let {x_59 : f32} = mul(x_57, x_58)
                          in {x_59}
                        })
                    return {private most_14, private total_11, private sums_14, returns weights_4}
                  }
                let {weights_5 : [1][1][T_k_1][R_k_1][T_q_1][R_q_1]f32} = rearrange(weights_3, (0, 3, 1, 4, 2, 5))
                let {weights_s_1 : [T_k_1*R_k_1][T_q_1*R_q_1]f32} = reshape(weights_5, [T_k_1*R_k_1, T_q_1*R_q_1])
                let {sums_15 : [1][T_k_1][T_q_1][1][R_c_1][R_q_1]f32} =
                  tile_contract(space (1 / 1, T_k_1 / R_c_1, T_q_1 / R_q_1), depth (min(-T_k_1*R_k_1*tile_1 + m, T_k_1*R_k_1)), {sums_13}, {weights_s_1 at (3, 2), V_s_7 at (3, 1)},
                    \{w_3 : f32, c_3 : f32} -> { let {x_60 : f32} = mul(w_3, c_3) in {x_60} },
                    {commutative \{a_10 : f32, b_12 : f32} -> { let {x_61 : f32} = add(a_10, b_12) in {x_61} }, {0.0f32}})
                in {most_13, total_10, sums_15, K_s_7, V_s_7}
              }
            let {totals_1 : [1][T_k_1][T_q_1][R_q_1]f32} =
              segmap(inblock) (t_10 < 1, t_k_10 < T_k_1, t_q_10 < T_q_1) {
                let {row_12 : [R_q_1]f32} = total_8[t_10, t_k_10, t_q_10]
                return {returns row_12}
              }
            let {out_3 : [1][T_k_1][T_q_1][1][R_c_1][R_q_1]f32} =
              segmap(inblock) (t_11 < 1, t_k_11 < T_k_1, t_q_11 < T_q_1) {
                let {row_13 : [1][R_c_1][R_q_1]f32} = sums_9[t_11, t_k_11, t_q_11]
                let {total_12 : [R_q_1]f32} =
                  map(i_35 < R_q_1, {},
                    \{} -> {
                      let {x_62 : f32} =
                        redomap(i_36 < T_k_1, {},
                          \{} -> { let {x_63 : f32} = totals_1[0, i_36, t_q_11, i_35] in {x_63} },
                          {commutative \{a_11 : f32, b_13 : f32} -> { let {x_64 : f32} = add(a_11, b_13) in {x_64} }, {0.0f32}})
                      in {x_62}
                    })
                let {out_4 : [1][R_c_1][R_q_1]f32} =
                  map(i_37 < 1, i_38 < R_c_1, i_39 < R_q_1, {row_13},
                    \{x_65 : f32} -> {
                      let {column_1 : i64} = size(T_k_1*R_c_1*b_c_1 + R_c_1*t_k_11 + i_38)
                      let {query_1 : i64} = size(T_q_1*R_q_1*b_q_1 + R_q_1*t_q_11 + i_39)
                      let {c_4 : bool} = lt(column_1, e)
                      let {c_5 : bool} = lt(query_1, n)
                      let {inside_3 : bool} = and(c_5, c_4)
                      let {total_13 : f32} = total_12[i_39]
                      let {out_5 : f32} =
                        if inside_3 {
                          let {o_1 : f32} = div(x_65, total_13)
                          in {o_1}
                        } else {
                          in {0.0f32}
                        }
                      in {out_5}
                    })
                return {private out_4}
              }
            return {regtile(h over [0 : h] / 1 / 1, e over [2 : e] / T_k_1 / R_c_1, n over [1 : n] / T_q_1 / R_q_1) out_3}
          }
        in {xs_2}
      }
      apart {
        let {xs_3 : [h][n][m]f32} =
          segmap(thread) (i_h < h, i_n < n, i_m < m) {
            let {x_66 : [d]f32} = Q[i_h, i_n]
            let {y : [d]f32} = K[i_h, i_m]
            let {r : f32} =
              redomap(i_40 < d, {x_66, y},
                \{x_67 : f32, x_68 : f32} -> { let {x_69 : f32} = mul(x_67, x_68) in {x_69} },
                {commutative \{a_12 : f32, b_14 : f32} -> { let {x_70 : f32} = add(a_12, b_14) in {x_70} }, {0.0f32}})
            return {returns r}
          }
        let {threads : i64} = get_size("main.chunks", grid_size, 262144)
        let {team : i64} = get_size("main.team", thread_block_size, 256)
        let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(h*n, 1)), 32))), 1))
        let {x_71 : i64} = clz(team_1)
        let {digits : i64} = sub(63i64, x_71)
        let {team_2 : i64} = shl(1i64, digits)
        let {blocks_2 : i64} = get_size("main.blocks", grid_size, 1)
        let {blocks_3 : i64} = size(max(max(min(m, blocks_2), min(floor_div(m, 2048), floor_div(threads, 256*max(h*n, 1)))), 1))
        #[chunks]
        let {mx : [h][n][1]f32} =
          segmap(thread) (i_h_1 < h, i_n_1 < n, c_6 < 1) team(team_2) blocks(blocks_3) {
            let {xs_4 : [m]f32} = xs_3[i_h_1, i_n_1]
            let {mx_1 : f32} =
              reduce(i_41 < m, {xs_4},
                \{x_72 : f32} -> { in {x_72} },
                {commutative \{a_13 : f32, b_15 : f32} -> { let {x_73 : f32} = max(a_13, b_15) in {x_73} }, {-f32.inf}})
            return {returns mx_1}
          }
        let {mx_2 : [h][n]f32} = reshape(mx, [h, n])
        let {es : [h][n][m]f32} =
          segmap(thread) (i_h_2 < h, i_n_2 < n, i_m_1 < m) {
            let {mx_3 : f32} = mx_2[i_h_2, i_n_2]
            let {x_74 : f32} = xs_3[i_h_2, i_n_2, i_m_1]
            let {x_75 : f32} = sub(x_74, mx_3)
            let {x_76 : f32} = exp(x_75)
            return {returns x_76}
          }
        let {threads_1 : i64} = get_size("main.chunks_2", grid_size, 262144)
        let {team_3 : i64} = get_size("main.team_2", thread_block_size, 256)
        let {team_4 : i64} = size(max(min(floor_div(m, 8), min(min(team_3, 256), max(floor_div(threads_1, max(h*n, 1)), 32))), 1))
        let {x_77 : i64} = clz(team_4)
        let {digits_1 : i64} = sub(63i64, x_77)
        let {team_5 : i64} = shl(1i64, digits_1)
        let {blocks_4 : i64} = get_size("main.blocks_2", grid_size, 1)
        let {blocks_5 : i64} = size(max(max(min(m, blocks_4), min(floor_div(m, 2048), floor_div(threads_1, 256*max(h*n, 1)))), 1))
        #[chunks]
        let {t_12 : [h][n][1]f32} =
          segmap(thread) (i_h_3 < h, i_n_3 < n, c_7 < 1) team(team_5) blocks(blocks_5) {
            let {es_1 : [m]f32} = es[i_h_3, i_n_3]
            let {t_13 : f32} =
              reduce(i_42 < m, {es_1},
                \{x_78 : f32} -> { in {x_78} },
                {commutative \{a_14 : f32, b_16 : f32} -> { let {x_79 : f32} = add(a_14, b_16) in {x_79} }, {0.0f32}})
            return {returns t_13}
          }
        let {t_14 : [h][n]f32} = reshape(t_12, [h, n])
        let {xs_5 : [h][n][m]f32} =
          segmap(thread) (i_h_4 < h, i_n_4 < n, i_m_2 < m) {
            let {t_15 : f32} = t_14[i_h_4, i_n_4]
            let {x_80 : f32} = es[i_h_4, i_n_4, i_m_2]
            let {x_81 : f32} = div(x_80, t_15)
            return {returns x_81}
          }
        let {xs_6 : [h][n][e]f32} =
          segmap(thread) (i_h_5 < h, i_n_5 < n, i_e < e) {
            let {xs_7 : [m]f32} = xs_5[i_h_5, i_n_5]
            let {c_8 : [m]f32} = V[i_h_5, 0 :+ m, i_e]
            let {r_1 : f32} =
              redomap(i_43 < m, {xs_7, c_8},
                \{x_82 : f32, x_83 : f32} -> { let {x_84 : f32} = mul(x_82, x_83) in {x_84} },
                {commutative \{a_15 : f32, b_17 : f32} -> { let {x_85 : f32} = add(a_15, b_17) in {x_85} }, {0.0f32}})
            return {returns r_1}
          }
        in {xs_6}
      }
    }
  in {xs}
}

-- REMARKS
applied fuse:vertical, main 10:35: the map that makes 'xs' is fused into its use
applied fuse:vertical, main 13:33: the map that makes 'es' is fused into its use
applied fuse:vertical, main 15:30: the map that makes 'xs' is fused into its use
missed fuse:keeps-contraction, main 11:13: the producer is a map nest around a reduction, which is tiled if it stands alone or with scalar code that cannot fail
  hint: fuse{keep-contractions=false} fuses all the same
missed fuse:needed-between, main 14:28: 't' is known only after the whole reduction
missed fuse:would-lose-parallelism, main 15:8: the rows of the producer are computed in parallel, and would not be
applied extract-kernels:streamed, main 9:3: the attention that makes 'xs' is one kernel, which holds no scores in memory, where its rows are short and its queries many enough {queries=n, keys=m, columns=e, maximum=running; sums are rescaled when it grows, numbers=main.attention.*}
applied extract-kernels:distributed, main 9:3: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=6}
missed extract-kernels:not-tiled, main 10:24: the reduction is done in chunks, not tiled: the kernel makes the array `xs` {reason=code-before, condition.one-reduction=holds: one redomap, condition.scalars=holds: it gives reduced scalars alone, condition.regular=holds: its widths and operator are the same for all indices, condition.surroundings=fails}
  hint: compute it before the map nest
missed extract-kernels:not-tiled, main 13:33: the reduction is done in chunks, not tiled: the reduction of `t` needs the results of others for its elements: `mx` {reason=several-redomaps, condition.one-reduction=fails}
  hint: make those before the nest, `let M = map (\a -> ..) A`, and take an element of them in it, `map2 (\a m -> ..) A M`: the reduction alone can be tiled
applied extract-kernels:kernel, main 10:24: 'xs' is a kernel {space=h, n, m}
applied extract-kernels:kernel, main 13:33: 'es' is a kernel {space=h, n, m}
applied extract-kernels:kernel, main 14:28: 'xs' is a kernel {space=h, n, m}
applied extract-kernels:kernel, main 15:19: 'xs' is a kernel {space=h, n, e}
