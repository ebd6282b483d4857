-- What was summed cannot be rescaled: the weights are no exponentials of scores less their own maximum.
-- RUN: inline,simplify,fuse,simplify,cse,extract-kernels
-- WANT: choose/segmap(block) 0
-- NO-LAW: sums of exponentials in chunks are rounded in another order
def attend [n][m][d] (weights: [m]f32 -> [m]f32) (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) : [n][d]f32 =
  map (\q -> let w = weights (map (\k -> f32.sum (map2 (*) q k)) K)
             in map (\v -> f32.sum (map2 (*) w v)) (transpose V)) Q

entry base_two [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) =
  attend (\s -> let x = f32.maximum s in map (\s -> 2 ** (s - x)) s) Q K V
entry quotient [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) =
  attend (\s -> let x = f32.maximum s in map (\s -> f32.exp (s / x)) s) Q K V
entry mean [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) =
  attend (\s -> let x = f32.sum s in map (\s -> f32.exp (s - x)) s) Q K V
entry doubled [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) =
  attend (\s -> let x = f32.maximum s in map (\s -> f32.exp (2 * s - x)) s) Q K V
entry twice [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) =
  attend (\s -> let x = f32.maximum s
                let e = map (\s -> f32.exp (s - x)) s
                let t = f32.sum e
                in map (\e -> f32.exp (e / t)) e) Q K V
-- OUTPUT
stage kernel of "attention-that-is-none.fut"

entry base_two (Q : "[n][d]f32", K : "[m][d]f32", V : "[m][d]f32") : {"[n][d]f32"}
fun base_two [n, m, d] (Q : [n][d]f32, K : [m][d]f32, V : [m][d]f32) : {[n][d]f32} = {
  let {V_1 : [d][m]f32} = rearrange(V, (1, 0))
  let {s : [n][m]f32} =
    segmap(thread) (i_n < n, i_m < m) {
      let {q : [d]f32} = Q[i_n]
      let {k : [d]f32} = K[i_m]
      let {r : f32} =
        redomap(i < d, {q, k},
          \{x : f32, x_1 : f32} -> { let {x_2 : f32} = mul(x, x_1) in {x_2} },
          {commutative \{a : f32, b : f32} -> { let {x_3 : f32} = add(a, b) in {x_3} }, {0.0f32}})
      return {returns r}
    }
  let {threads : i64} = get_size("base_two.chunks", grid_size, 262144)
  let {team : i64} = get_size("base_two.team", thread_block_size, 256)
  let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
  let {x_4 : i64} = clz(team_1)
  let {digits : i64} = sub(63i64, x_4)
  let {team_2 : i64} = shl(1i64, digits)
  let {blocks : i64} = get_size("base_two.blocks", grid_size, 1)
  let {blocks_1 : i64} = size(max(max(min(m, blocks), min(floor_div(m, 2048), floor_div(threads, 256*max(n, 1)))), 1))
  #[chunks]
  let {x_5 : [n][1]f32} =
    segmap(thread) (i_n_1 < n, c < 1) team(team_2) blocks(blocks_1) {
      let {s_1 : [m]f32} = s[i_n_1]
      let {x_6 : f32} =
        reduce(i_1 < m, {s_1},
          \{x_7 : f32} -> { in {x_7} },
          {commutative \{a_1 : f32, b_1 : f32} -> { let {x_8 : f32} = max(a_1, b_1) in {x_8} }, {-f32.inf}})
      return {returns x_6}
    }
  let {x_9 : [n]f32} = reshape(x_5, [n])
  let {x_10 : [n]f32} = x_9
  let {w : [n][m]f32} =
    segmap(thread) (i_n_2 < n, i_m_1 < m) {
      let {s_2 : [m]f32} = s[i_n_2]
      let {x_11 : f32} = x_10[i_n_2]
      let {s_3 : f32} = s_2[i_m_1]
      let {x_12 : f32} = sub(s_3, x_11)
      let {x_13 : f32} = pow(2.0f32, x_12)
      return {returns x_13}
    }
  let {xs : [n][d]f32} =
    segmap(thread) (i_n_3 < n, i_d < d) {
      let {w_1 : [m]f32} = w[i_n_3]
      let {v : [m]f32} = V_1[i_d]
      let {r_1 : f32} =
        redomap(i_2 < m, {w_1, v},
          \{x_14 : f32, x_15 : f32} -> { let {x_16 : f32} = mul(x_14, x_15) in {x_16} },
          {commutative \{a_2 : f32, b_2 : f32} -> { let {x_17 : f32} = add(a_2, b_2) in {x_17} }, {0.0f32}})
      return {returns r_1}
    }
  let {xs_1 : [n][d]f32} = xs
  in {xs_1}
}

entry quotient (Q : "[n][d]f32", K : "[m][d]f32", V : "[m][d]f32") : {"[n][d]f32"}
fun quotient [n, m, d] (Q : [n][d]f32, K : [m][d]f32, V : [m][d]f32) : {[n][d]f32} = {
  let {V_1 : [d][m]f32} = rearrange(V, (1, 0))
  let {s : [n][m]f32} =
    segmap(thread) (i_n < n, i_m < m) {
      let {q : [d]f32} = Q[i_n]
      let {k : [d]f32} = K[i_m]
      let {r : f32} =
        redomap(i < d, {q, k},
          \{x : f32, x_1 : f32} -> { let {x_2 : f32} = mul(x, x_1) in {x_2} },
          {commutative \{a : f32, b : f32} -> { let {x_3 : f32} = add(a, b) in {x_3} }, {0.0f32}})
      return {returns r}
    }
  let {threads : i64} = get_size("quotient.chunks", grid_size, 262144)
  let {team : i64} = get_size("quotient.team", thread_block_size, 256)
  let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
  let {x_4 : i64} = clz(team_1)
  let {digits : i64} = sub(63i64, x_4)
  let {team_2 : i64} = shl(1i64, digits)
  let {blocks : i64} = get_size("quotient.blocks", grid_size, 1)
  let {blocks_1 : i64} = size(max(max(min(m, blocks), min(floor_div(m, 2048), floor_div(threads, 256*max(n, 1)))), 1))
  #[chunks]
  let {x_5 : [n][1]f32} =
    segmap(thread) (i_n_1 < n, c < 1) team(team_2) blocks(blocks_1) {
      let {s_1 : [m]f32} = s[i_n_1]
      let {x_6 : f32} =
        reduce(i_1 < m, {s_1},
          \{x_7 : f32} -> { in {x_7} },
          {commutative \{a_1 : f32, b_1 : f32} -> { let {x_8 : f32} = max(a_1, b_1) in {x_8} }, {-f32.inf}})
      return {returns x_6}
    }
  let {x_9 : [n]f32} = reshape(x_5, [n])
  let {x_10 : [n]f32} = x_9
  let {w : [n][m]f32} =
    segmap(thread) (i_n_2 < n, i_m_1 < m) {
      let {s_2 : [m]f32} = s[i_n_2]
      let {x_11 : f32} = x_10[i_n_2]
      let {s_3 : f32} = s_2[i_m_1]
      let {x_12 : f32} = div(s_3, x_11)
      let {x_13 : f32} = exp(x_12)
      return {returns x_13}
    }
  let {xs : [n][d]f32} =
    segmap(thread) (i_n_3 < n, i_d < d) {
      let {w_1 : [m]f32} = w[i_n_3]
      let {v : [m]f32} = V_1[i_d]
      let {r_1 : f32} =
        redomap(i_2 < m, {w_1, v},
          \{x_14 : f32, x_15 : f32} -> { let {x_16 : f32} = mul(x_14, x_15) in {x_16} },
          {commutative \{a_2 : f32, b_2 : f32} -> { let {x_17 : f32} = add(a_2, b_2) in {x_17} }, {0.0f32}})
      return {returns r_1}
    }
  let {xs_1 : [n][d]f32} = xs
  in {xs_1}
}

entry mean (Q : "[n][d]f32", K : "[m][d]f32", V : "[m][d]f32") : {"[n][d]f32"}
fun mean [n, m, d] (Q : [n][d]f32, K : [m][d]f32, V : [m][d]f32) : {[n][d]f32} = {
  let {V_1 : [d][m]f32} = rearrange(V, (1, 0))
  let {s : [n][m]f32} =
    segmap(thread) (i_n < n, i_m < m) {
      let {q : [d]f32} = Q[i_n]
      let {k : [d]f32} = K[i_m]
      let {r : f32} =
        redomap(i < d, {q, k},
          \{x : f32, x_1 : f32} -> { let {x_2 : f32} = mul(x, x_1) in {x_2} },
          {commutative \{a : f32, b : f32} -> { let {x_3 : f32} = add(a, b) in {x_3} }, {0.0f32}})
      return {returns r}
    }
  let {threads : i64} = get_size("mean.chunks", grid_size, 262144)
  let {team : i64} = get_size("mean.team", thread_block_size, 256)
  let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
  let {x_4 : i64} = clz(team_1)
  let {digits : i64} = sub(63i64, x_4)
  let {team_2 : i64} = shl(1i64, digits)
  let {blocks : i64} = get_size("mean.blocks", grid_size, 1)
  let {blocks_1 : i64} = size(max(max(min(m, blocks), min(floor_div(m, 2048), floor_div(threads, 256*max(n, 1)))), 1))
  #[chunks]
  let {x_5 : [n][1]f32} =
    segmap(thread) (i_n_1 < n, c < 1) team(team_2) blocks(blocks_1) {
      let {s_1 : [m]f32} = s[i_n_1]
      let {x_6 : f32} =
        reduce(i_1 < m, {s_1},
          \{x_7 : f32} -> { in {x_7} },
          {commutative \{a_1 : f32, b_1 : f32} -> { let {x_8 : f32} = add(a_1, b_1) in {x_8} }, {0.0f32}})
      return {returns x_6}
    }
  let {x_9 : [n]f32} = reshape(x_5, [n])
  let {x_10 : [n]f32} = x_9
  let {w : [n][m]f32} =
    segmap(thread) (i_n_2 < n, i_m_1 < m) {
      let {s_2 : [m]f32} = s[i_n_2]
      let {x_11 : f32} = x_10[i_n_2]
      let {s_3 : f32} = s_2[i_m_1]
      let {x_12 : f32} = sub(s_3, x_11)
      let {x_13 : f32} = exp(x_12)
      return {returns x_13}
    }
  let {xs : [n][d]f32} =
    segmap(thread) (i_n_3 < n, i_d < d) {
      let {w_1 : [m]f32} = w[i_n_3]
      let {v : [m]f32} = V_1[i_d]
      let {r_1 : f32} =
        redomap(i_2 < m, {w_1, v},
          \{x_14 : f32, x_15 : f32} -> { let {x_16 : f32} = mul(x_14, x_15) in {x_16} },
          {commutative \{a_2 : f32, b_2 : f32} -> { let {x_17 : f32} = add(a_2, b_2) in {x_17} }, {0.0f32}})
      return {returns r_1}
    }
  let {xs_1 : [n][d]f32} = xs
  in {xs_1}
}

entry doubled (Q : "[n][d]f32", K : "[m][d]f32", V : "[m][d]f32") : {"[n][d]f32"}
fun doubled [n, m, d] (Q : [n][d]f32, K : [m][d]f32, V : [m][d]f32) : {[n][d]f32} = {
  let {V_1 : [d][m]f32} = rearrange(V, (1, 0))
  let {s : [n][m]f32} =
    segmap(thread) (i_n < n, i_m < m) {
      let {q : [d]f32} = Q[i_n]
      let {k : [d]f32} = K[i_m]
      let {r : f32} =
        redomap(i < d, {q, k},
          \{x : f32, x_1 : f32} -> { let {x_2 : f32} = mul(x, x_1) in {x_2} },
          {commutative \{a : f32, b : f32} -> { let {x_3 : f32} = add(a, b) in {x_3} }, {0.0f32}})
      return {returns r}
    }
  let {threads : i64} = get_size("doubled.chunks", grid_size, 262144)
  let {team : i64} = get_size("doubled.team", thread_block_size, 256)
  let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
  let {x_4 : i64} = clz(team_1)
  let {digits : i64} = sub(63i64, x_4)
  let {team_2 : i64} = shl(1i64, digits)
  let {blocks : i64} = get_size("doubled.blocks", grid_size, 1)
  let {blocks_1 : i64} = size(max(max(min(m, blocks), min(floor_div(m, 2048), floor_div(threads, 256*max(n, 1)))), 1))
  #[chunks]
  let {x_5 : [n][1]f32} =
    segmap(thread) (i_n_1 < n, c < 1) team(team_2) blocks(blocks_1) {
      let {s_1 : [m]f32} = s[i_n_1]
      let {x_6 : f32} =
        reduce(i_1 < m, {s_1},
          \{x_7 : f32} -> { in {x_7} },
          {commutative \{a_1 : f32, b_1 : f32} -> { let {x_8 : f32} = max(a_1, b_1) in {x_8} }, {-f32.inf}})
      return {returns x_6}
    }
  let {x_9 : [n]f32} = reshape(x_5, [n])
  let {x_10 : [n]f32} = x_9
  let {w : [n][m]f32} =
    segmap(thread) (i_n_2 < n, i_m_1 < m) {
      let {s_2 : [m]f32} = s[i_n_2]
      let {x_11 : f32} = x_10[i_n_2]
      let {s_3 : f32} = s_2[i_m_1]
      let {x_12 : f32} = mul(s_3, 2.0f32)
      let {x_13 : f32} = sub(x_12, x_11)
      let {x_14 : f32} = exp(x_13)
      return {returns x_14}
    }
  let {xs : [n][d]f32} =
    segmap(thread) (i_n_3 < n, i_d < d) {
      let {w_1 : [m]f32} = w[i_n_3]
      let {v : [m]f32} = V_1[i_d]
      let {r_1 : f32} =
        redomap(i_2 < m, {w_1, v},
          \{x_15 : f32, x_16 : f32} -> { let {x_17 : f32} = mul(x_15, x_16) in {x_17} },
          {commutative \{a_2 : f32, b_2 : f32} -> { let {x_18 : f32} = add(a_2, b_2) in {x_18} }, {0.0f32}})
      return {returns r_1}
    }
  let {xs_1 : [n][d]f32} = xs
  in {xs_1}
}

entry twice (Q : "[n][d]f32", K : "[m][d]f32", V : "[m][d]f32") : {"[n][d]f32"}
fun twice [n, m, d] (Q : [n][d]f32, K : [m][d]f32, V : [m][d]f32) : {[n][d]f32} = {
  let {V_1 : [d][m]f32} = rearrange(V, (1, 0))
  let {s : [n][m]f32} =
    segmap(thread) (i_n < n, i_m < m) {
      let {q : [d]f32} = Q[i_n]
      let {k : [d]f32} = K[i_m]
      let {r : f32} =
        redomap(i < d, {q, k},
          \{x : f32, x_1 : f32} -> { let {x_2 : f32} = mul(x, x_1) in {x_2} },
          {commutative \{a : f32, b : f32} -> { let {x_3 : f32} = add(a, b) in {x_3} }, {0.0f32}})
      return {returns r}
    }
  let {threads : i64} = get_size("twice.chunks", grid_size, 262144)
  let {team : i64} = get_size("twice.team", thread_block_size, 256)
  let {team_1 : i64} = size(max(min(floor_div(m, 8), min(min(team, 256), max(floor_div(threads, max(n, 1)), 32))), 1))
  let {x_4 : i64} = clz(team_1)
  let {digits : i64} = sub(63i64, x_4)
  let {team_2 : i64} = shl(1i64, digits)
  let {blocks : i64} = get_size("twice.blocks", grid_size, 1)
  let {blocks_1 : i64} = size(max(max(min(m, blocks), min(floor_div(m, 2048), floor_div(threads, 256*max(n, 1)))), 1))
  #[chunks]
  let {x_5 : [n][1]f32} =
    segmap(thread) (i_n_1 < n, c < 1) team(team_2) blocks(blocks_1) {
      let {s_1 : [m]f32} = s[i_n_1]
      let {x_6 : f32} =
        reduce(i_1 < m, {s_1},
          \{x_7 : f32} -> { in {x_7} },
          {commutative \{a_1 : f32, b_1 : f32} -> { let {x_8 : f32} = max(a_1, b_1) in {x_8} }, {-f32.inf}})
      return {returns x_6}
    }
  let {x_9 : [n]f32} = reshape(x_5, [n])
  let {x_10 : [n]f32} = x_9
  let {e : [n][m]f32} =
    segmap(thread) (i_n_2 < n, i_m_1 < m) {
      let {s_2 : [m]f32} = s[i_n_2]
      let {x_11 : f32} = x_10[i_n_2]
      let {s_3 : f32} = s_2[i_m_1]
      let {x_12 : f32} = sub(s_3, x_11)
      let {x_13 : f32} = exp(x_12)
      return {returns x_13}
    }
  let {threads_1 : i64} = get_size("twice.chunks_2", grid_size, 262144)
  let {team_3 : i64} = get_size("twice.team_2", thread_block_size, 256)
  let {team_4 : i64} = size(max(min(floor_div(m, 8), min(min(team_3, 256), max(floor_div(threads_1, max(n, 1)), 32))), 1))
  let {x_14 : i64} = clz(team_4)
  let {digits_1 : i64} = sub(63i64, x_14)
  let {team_5 : i64} = shl(1i64, digits_1)
  let {blocks_2 : i64} = get_size("twice.blocks_2", grid_size, 1)
  let {blocks_3 : i64} = size(max(max(min(m, blocks_2), min(floor_div(m, 2048), floor_div(threads_1, 256*max(n, 1)))), 1))
  #[chunks]
  let {t : [n][1]f32} =
    segmap(thread) (i_n_3 < n, c_1 < 1) team(team_5) blocks(blocks_3) {
      let {s_4 : [m]f32} = s[i_n_3]
      let {e_1 : [m]f32} = e[i_n_3]
      let {t_1 : f32} =
        redomap(i_2 < m, {s_4, e_1},
          \{s_5 : f32, x_15 : f32} -> { in {x_15} },
          {commutative \{a_2 : f32, b_2 : f32} -> { let {x_16 : f32} = add(a_2, b_2) in {x_16} }, {0.0f32}})
      return {returns t_1}
    }
  let {t_2 : [n]f32} = reshape(t, [n])
  let {t_3 : [n]f32} = t_2
  let {w : [n][m]f32} =
    segmap(thread) (i_n_4 < n, i_m_2 < m) {
      let {e_2 : [m]f32} = e[i_n_4]
      let {t_4 : f32} = t_3[i_n_4]
      let {e_3 : f32} = e_2[i_m_2]
      let {x_17 : f32} = div(e_3, t_4)
      let {x_18 : f32} = exp(x_17)
      return {returns x_18}
    }
  let {xs : [n][d]f32} =
    segmap(thread) (i_n_5 < n, i_d < d) {
      let {w_1 : [m]f32} = w[i_n_5]
      let {v : [m]f32} = V_1[i_d]
      let {r_1 : f32} =
        redomap(i_3 < m, {w_1, v},
          \{x_19 : f32, x_20 : f32} -> { let {x_21 : f32} = mul(x_19, x_20) in {x_21} },
          {commutative \{a_3 : f32, b_3 : f32} -> { let {x_22 : f32} = add(a_3, b_3) in {x_22} }, {0.0f32}})
      return {returns r_1}
    }
  let {xs_1 : [n][d]f32} = xs
  in {xs_1}
}

-- REMARKS
applied fuse:vertical, base_two 6:42: the map that makes 'xs' is fused into its use
applied fuse:vertical, base_two 7:28: the map that makes 'xs' is fused into its use
missed fuse:producer-used-elsewhere, base_two 10:25: the array between them is needed by others, too
missed fuse:needed-between, base_two 10:42: a statement between them needs 's' and is needed by its user
missed fuse:would-duplicate-work, base_two 7:17: 'w' is used for every index of an outer map, and would be computed for each
applied fuse:vertical, quotient 6:42: the map that makes 'xs' is fused into its use
applied fuse:vertical, quotient 7:28: the map that makes 'xs' is fused into its use
missed fuse:producer-used-elsewhere, quotient 12:25: the array between them is needed by others, too
missed fuse:needed-between, quotient 12:42: a statement between them needs 's' and is needed by its user
missed fuse:would-duplicate-work, quotient 7:17: 'w' is used for every index of an outer map, and would be computed for each
applied fuse:vertical, mean 6:42: the map that makes 'xs' is fused into its use
applied fuse:vertical, mean 7:28: the map that makes 'xs' is fused into its use
missed fuse:producer-used-elsewhere, mean 14:25: the array between them is needed by others, too
missed fuse:needed-between, mean 14:38: a statement between them needs 's' and is needed by its user
missed fuse:would-duplicate-work, mean 7:17: 'w' is used for every index of an outer map, and would be computed for each
applied fuse:vertical, doubled 6:42: the map that makes 'xs' is fused into its use
applied fuse:vertical, doubled 7:28: the map that makes 'xs' is fused into its use
missed fuse:producer-used-elsewhere, doubled 16:25: the array between them is needed by others, too
missed fuse:needed-between, doubled 16:42: a statement between them needs 's' and is needed by its user
missed fuse:would-duplicate-work, doubled 7:17: 'w' is used for every index of an outer map, and would be computed for each
applied fuse:vertical, twice 6:42: the map that makes 'xs' is fused into its use
applied fuse:vertical, twice 7:28: the map that makes 'xs' is fused into its use
applied fuse:vertical, twice 20:25: the map that makes 'e' is fused into its use
missed fuse:producer-used-elsewhere, twice 18:25: the array between them is needed by others, too
missed fuse:needed-between, twice 20:25: a statement between them needs 's' and is needed by its user
missed fuse:needed-between, twice 21:20: 't' is known only after the whole reduction
missed fuse:would-duplicate-work, twice 7:17: 'w' is used for every index of an outer map, and would be computed for each
missed extract-kernels:not-streamed, base_two 7:17: the scores of an attention are written to memory: what was summed is rescaled as the maximum grows, which takes weights exp(s - m) of scores s and their maximum m: these are no exponentials {reason=no-exponential}
applied extract-kernels:distributed, base_two 6:3: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=4}
missed extract-kernels:not-tiled, base_two 6:30: the reduction is done in chunks, not tiled: the kernel makes the array `s` {reason=code-before, condition.one-reduction=holds: one redomap, condition.scalars=holds: it gives reduced scalars alone, condition.regular=holds: its widths and operator are the same for all indices, condition.surroundings=fails}
  hint: compute it before the map nest
applied extract-kernels:kernel, base_two 6:30: 's' is a kernel {space=n, m}
applied extract-kernels:kernel, base_two 10:42: 'w' is a kernel {space=n, m}
applied extract-kernels:kernel, base_two 7:17: 'xs' is a kernel {space=n, d}
missed extract-kernels:not-streamed, quotient 7:17: the scores of an attention are written to memory: what was summed is rescaled as the maximum grows, which takes weights exp(s - m) of scores s and their maximum m: the exponent is no score less a maximum {reason=no-difference}
applied extract-kernels:distributed, quotient 6:3: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=4}
missed extract-kernels:not-tiled, quotient 6:30: the reduction is done in chunks, not tiled: the kernel makes the array `s` {reason=code-before, condition.one-reduction=holds: one redomap, condition.scalars=holds: it gives reduced scalars alone, condition.regular=holds: its widths and operator are the same for all indices, condition.surroundings=fails}
  hint: compute it before the map nest
applied extract-kernels:kernel, quotient 6:30: 's' is a kernel {space=n, m}
applied extract-kernels:kernel, quotient 12:42: 'w' is a kernel {space=n, m}
applied extract-kernels:kernel, quotient 7:17: 'xs' is a kernel {space=n, d}
missed extract-kernels:not-streamed, mean 7:17: the scores of an attention are written to memory: what was summed is rescaled as the maximum grows, which takes weights exp(s - m) of scores s and their maximum m: what is subtracted is not the maximum of a row {reason=no-maximum}
applied extract-kernels:distributed, mean 6:3: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=4}
missed extract-kernels:not-tiled, mean 6:30: the reduction is done in chunks, not tiled: the kernel makes the array `s` {reason=code-before, condition.one-reduction=holds: one redomap, condition.scalars=holds: it gives reduced scalars alone, condition.regular=holds: its widths and operator are the same for all indices, condition.surroundings=fails}
  hint: compute it before the map nest
applied extract-kernels:kernel, mean 6:30: 's' is a kernel {space=n, m}
applied extract-kernels:kernel, mean 14:38: 'w' is a kernel {space=n, m}
applied extract-kernels:kernel, mean 7:17: 'xs' is a kernel {space=n, d}
missed extract-kernels:not-streamed, doubled 7:17: the scores of an attention are written to memory: what was summed is rescaled as the maximum grows, which takes weights exp(s - m) of scores s and their maximum m: the maximum is not that of the scores that it is subtracted from {reason=other-scores}
applied extract-kernels:distributed, doubled 6:3: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=4}
missed extract-kernels:not-tiled, doubled 6:30: the reduction is done in chunks, not tiled: the kernel makes the array `s` {reason=code-before, condition.one-reduction=holds: one redomap, condition.scalars=holds: it gives reduced scalars alone, condition.regular=holds: its widths and operator are the same for all indices, condition.surroundings=fails}
  hint: compute it before the map nest
applied extract-kernels:kernel, doubled 6:30: 's' is a kernel {space=n, m}
applied extract-kernels:kernel, doubled 16:42: 'w' is a kernel {space=n, m}
applied extract-kernels:kernel, doubled 7:17: 'xs' is a kernel {space=n, d}
missed extract-kernels:not-streamed, twice 7:17: the scores of an attention are written to memory: what was summed is rescaled as the maximum grows, which takes weights exp(s - m) of scores s and their maximum m: the exponent is no score less a maximum {reason=no-difference}
applied extract-kernels:distributed, twice 6:3: the map that makes 'xs' is split, so that what is inside runs in parallel {parts=6}
missed extract-kernels:not-tiled, twice 6:30: the reduction is done in chunks, not tiled: the kernel makes the array `s` {reason=code-before, condition.one-reduction=holds: one redomap, condition.scalars=holds: it gives reduced scalars alone, condition.regular=holds: its widths and operator are the same for all indices, condition.surroundings=fails}
  hint: compute it before the map nest
missed extract-kernels:not-tiled, twice 6:3: the reduction is done in chunks, not tiled: the kernel streams several redomaps {reason=several-redomaps, condition.one-reduction=fails}
  hint: reduce in one redomap over one width, or in map nests of their own
applied extract-kernels:kernel, twice 6:30: 's' is a kernel {space=n, m}
applied extract-kernels:kernel, twice 20:25: 'e' is a kernel {space=n, m}
applied extract-kernels:kernel, twice 21:20: 'w' is a kernel {space=n, m}
applied extract-kernels:kernel, twice 7:17: 'xs' is a kernel {space=n, d}
