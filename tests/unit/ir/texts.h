// Textual IR that between its functions has every node, type, mark and name that the grammar knows. The texts
// are as the printer writes them, locations included.
#pragma once

#include <array>
#include <string_view>

namespace apl::test_texts {

inline constexpr std::string_view kBasic = R"ir(stage soac of "dir/a \"b\"\\.fut"

fun basic [n, m] (A : [n][m]f32, B : *[n*m]i32, flags : [n]bool, x : f32, i : i64, _y' : u8) : {f32, *[n*m]i32} = {
  let {y : f32} = x @3:5-3:12 from 7:1-7:9 from 20:2-21:8
  let {c : f32} = -1.5f32
  let {nan : f64} = f64.nan
  let {low : f32} = -f32.inf
  let {u : unit} = ()
  let {t : bool} = true
  let {x_1 : f32} = neg(x)
  let {z : f32} = add(x, 2.0f32) @1:1-2:80 from 20:2-21:8
  let {less : bool} = lt(z, -0.0f32)
  let {not_1 : bool} = not(less)
  let {half : f16} = convert(z, f16)
  let {k : i64} = size(3*n*m - i*min(n, m - 1) + ceil_div(n, m) - floor_div(i, 4) - max(0, i) + 7)
  let {zero : i64} = size(0)
  let {least : i64} = size(-9223372036854775808*n - 9223372036854775808)
  let {e : f32} = A[i, m - 1]
  let {row : [m]f32} = checked A[i]
  let {all : [n][m]f32} = A[]
  let {col : [n]f32} = A[0 :+ n, 2]
  let {back : [n]bool} = flags[n - 1 :+ n by -1]
  let {every : [ceil_div(n, 2)]bool} = checked flags[0 :+ ceil_div(n, 2) by 2]
  let {B_1 : [n*m]i32} = B with [i] = 3i32
  let {B_2 : [n*m]i32} = checked B_1 with [i :+ m] = B_1
  let {is : [n]i32} = iota(i32, n, 0i32, -1i32)
  let {r : [n][m]f32} = replicate([n], row)
  let {s : [n][m]f32} = replicate([n, m], 0.0f32)
  let {w : [n*m]u16} = scratch([n*m]u16)
  let {w_1 : bool} = scratch(bool)
  let {A' : [n][m]f32} = copy(A)
  let {At : [m][n]f32} = rearrange(A, (1, 0))
  let {Am : [m][n]f32} = manifest(A, (1, 0))
  let {flat : [n*m]f32} = reshape(A, [n*m])
  let {pair : [2]f32} = [x, 1.0f32] of f32
  let {rows : [2][m]f32} = [row, row] of [m]f32
  let {none : [0]f32} = [] of f32
  let {cert : unit} = assert(less, "index \"", i, "\" of\n", n, "\t\x01 ü")
  let {cert_1 : unit} = assert(true)
  #[unsafe]
  #[opaque(1, fun, "a b", "", x2)]
  let {v : f32, B_3 : [n*m]i32} = #{cert, cert_1} apply basic(n, m, A, B_2, flags, x, i, _y') @9:9-9:9
  let {T : i64} = get_size("mm.T_a", tile_size, 16)
  let {T_1 : i64} = get_size("mm \"x\"", threshold, -1)
  in {v, B_3}
} @1:1-40:1

fun "odd name" [] () : {} = {
  in {}
}

fun decided [n] (c : bool, A : [n]f32) : exists [d, d_1] {[d]f32, [d_1][d]f32} = {
  let {d_2 : i64, r : [d_2]f32} =
    if c {
      in {n, A}
    } else {
      let {none : [0]f32} = [] of f32
      in {0i64, none}
    }
  let {rs_0 : [1][d_2]f32} = replicate([1], r)
  let {d_3 : i64, rs : [d_3][d_2]f32} =
    loop {d_4 : i64 = 1i64, rs_1 : [d_4][d_2]f32 = rs_0} for i < n {
      let {d_5 : i64} = size(d_4 + 1)
      let {rs_2 : [d_4 + 1][d_2]f32} = replicate([d_4 + 1], r)
      in {d_5, rs_2}
    }
  in {r, rs}
}

fun let [] () : {i32} = {
  let {q : i32} = apply "odd name"()
  let {} = apply let()
  in {q}
}
)ir";

inline constexpr std::string_view kNested = R"ir(stage soac

#[noinline]
entry main (xs : "[n](f32, i32)" as 2, "+" : "f32 -> f32" as 0, k : "i64") : {"f32", "[n]i32"}
fun main_0 [n] (xs : [n]f32, xs_1 : [n]i32, k : i64) : {f32, [n]i32} = {
  let {c : bool} = lt(k, n)
  let {r : f32} =
    if c {
      let {a : f32} = xs[0]
      in {a}
    } else {
      in {0.0f32}
    } @2:1-3:3
  let {s : f32, ys : [n]i32} =
    loop {acc : f32 = r, zs : *[n]i32 = xs_1} for i < 2*n {
      let {a_1 : f32} = xs[i]
      let {acc_1 : f32} = add(acc, a_1)
      in {acc_1, zs}
    }
  let {go : bool, j : i64} =
    loop {again : bool = c, at : i64 = 0i64} while again {
      let {next : i64} = size(at + 1)
      let {more : bool} = lt(next, k)
      in {more, next}
    }
  let {os : [n]f32} =
    map(i_1 < n, {},
      \{} -> { in {1.0f32} })
  let {m : f32} =
    reduce(i_2 < n, {xs},
      \{x : f32} -> { in {x} },
      {\{a_2 : f32, b : f32} -> {
        let {c_1 : f32} = add(a_2, b)
        let {d : f32} = mul(c_1, b)
        in {d}
      }, {0.0f32}})
  let {sum : f32, low : i32, rows : [n][2]f32} =
    redomap(i_3 < n, j_1 < 2, {xs, xs_1},
      \{x_1 : f32, y : i32} -> {
        let {z : f32} =
          map({},
            \{} -> { let {w : f32} = mul(x_1, x_1) in {w} })
        in {z, y, x_1}
      },
      {commutative \{a_3 : f32, b_1 : f32} -> { let {c_2 : f32} = add(a_3, b_1) @7:7-7:8 in {c_2} }, {0.0f32}},
      {\{a_4 : i32, b_2 : i32} -> { let {c_3 : i32} = min(a_4, b_2) in {c_3} }, {2147483647i32}})
  let {sums : [n]f32} =
    scan(i_4 < n, {xs},
      \{x_3 : f32} -> { in {x_3} },
      {scan commutative \{a_5 : f32, b_3 : f32} -> { let {c_4 : f32} = add(a_5, b_3) in {c_4} }, {0.0f32}})
  let {sums_1 : [n]f32, squares : [n]f32} =
    screma(i_5 < n, {xs},
      \{x_4 : f32} -> { let {y_2 : f32} = mul(x_4, x_4) in {x_4, y_2} },
      {scan \{a_6 : f32, b_4 : f32} -> { let {c_5 : f32} = sub(a_6, b_4) in {c_5} }, {0.0f32}})
  let {written : [n]f32} =
    scatter(i_6 < n, {},
      \{} -> { in {i_6, 1.0f32} },
      {sums} at 1)
  let {low_1 : [n]f32, low_2 : [n]f32} =
    hist(i_7 < n, j_2 < n, {},
      \{} -> { in {j_2, 1.0f32, 2.0f32} },
      {sums_1, squares} at 1,
      {\{a_7 : f32, a_8 : f32, b_5 : f32, b_6 : f32} -> { in {a_7, b_6} }, {0.0f32, 1.0f32}})
  let {p : f32, dp : f32} =
    jvp({r}, {1.0f32},
      \{g : f32} -> { let {h : f32} = mul(g, g) in {h} })
  let {u : f32, du : f32} =
    vjp({s}, {dp},
      \{v : f32} -> { in {v} })
  let {two : f32} =
    map({xs},
      \{x_2 : [n]f32} -> {
        #[kept]
        let {y_1 : f32} = x_2[0]
        in {y_1}
      })
  in {sum, ys}
}
)ir";

inline constexpr std::string_view kKernel = R"ir(stage kernel of "mm.fut"

fun mm [m, n, q] (A : [m][q]f32, B : [q][n]f32) : {[m][n]f32} = {
  let {T : i64} = get_size("mm.T", reg_tile_size, 2)
  let {C : [m][n]f32} =
    segmap(block) (bi < ceil_div(m, T), bj < ceil_div(n, T)) {
      let {A_loc : [T][T]f32} = shared(f32, {offset: 0; shape: [T, T]; strides: [T + 1, 1]})
      let {B_loc : [T][T]f32} = shared(f32, {offset: 1; shape: [T, T]; strides: [T, 1]})
      let {acc : [T][1][T]f32} =
        segmap(inblock) (t < T) {
          let {zero : f32} = 0.0f32
          return {private zero}
        }
      let {none : [m]f32, more : [m]f32} =
        segmap(thread) () {
          return {returns 1.0f32, private A_loc}
        }
      let {acc_1 : [T][1][T]f32, A_1 : [T][T]f32} =
        loop {acc' : [T][1][T]f32 = acc, A_2 : [T][T]f32 = A_loc} for k < ceil_div(q, T) {
          let {A_3 : [T][T]f32} = copy_tile A_2 <- A[{offset: q*T*bi + T*k; shape: [T, T]; strides: [q, 1]}] guard (T*bi < m, T*k < q) pad 0.0f32
          let {B_1 : [T][T]f32} = copy_tile B_loc <- B[{offset: 0; shape: []; strides: []}] guard (T*k, 0 < n) pad -1.0f32
          let {acc_2 : [T][1][T]f32} =
            tile_contract(space (T / 1, 1 / T), depth (T, 2*T), {acc'}, {A_3 at (0, 2), B_1 at (1, 2)},
              \{a : f32, b : f32} -> { let {p : f32} = mul(a, b) in {p} },
              {commutative \{x : f32, y : f32} -> { let {s : f32} = add(x, y) in {s} }, {0.0f32}})
          in {acc_2, A_3}
        }
      return {regtile(m / T / 1, m*n / 1 / T) acc_1}
    }
  let {some : bool} = lt(0i64, n)
  let {D : [m][n]f32} =
    choose first "mm.variant" {
      kept when some {
        in {C}
      }
      "made anew" {
        let {E : [m][n]f32} =
          segmap(block) (i < m, j < n)
            schedule(general "mm.k2.", padded, stages 2, tiles_per_block 1, splits 1,
              dims (batch m / 1 / 1, free n / T / 1, depth q / T / 1),
              operands ("A" f16 [q, 0, 1] copy 0, "B" f32 [0, 1, n] copy 4 swizzled)) {
            return {returns 0.0f32}
          }
        in {E}
      }
    }
  in {C}
}
)ir";

inline constexpr std::string_view kMemory = R"ir(stage memory

fun f [n, m] (A_mem : mem@global, A : [n][m]f32 @ A_mem -> {offset: 0; strides: [m, 1]}) : {mem@global, *[n]f32} = {
  let {bytes : i64} = size(4*n*m)
  let {B_mem : mem@global} = alloc(4*n*m, global)
  let {S_mem : mem@shared} = alloc(bytes + 4, shared) @4:4-4:4
  let {R_mem : *mem@thread} = alloc(0, thread)
  let {B : *[m][n]f32 @ B_mem -> {offset: n; strides: [1, m]}} = rearrange(A, (1, 0))
  let {V : [n]f32 @ B_mem -> {offset: 0; shape: [m]; strides: [-n]}} = B[0]
  let {x : f32 @ B_mem -> {offset: 3; strides: []}} = V[0]
  let {L : [2]f32 @ B_mem -> {offset: 0; strides: [0]}} = [x, x] of f32 @ B_mem -> {offset: 0; strides: []} @1:2-3:4
  let {X_mem : mem@global, X : [n]f32 @ X_mem -> {offset: 0; strides: [1]}, Y : [n]f32 @ Z_mem -> {offset: 0; strides: [1]}, Z_mem : mem@global} = apply f(n, m, A_mem, A)
  in {X_mem, X}
}
)ir";

inline constexpr std::array kAll = {kBasic, kNested, kKernel, kMemory};

}  // namespace apl::test_texts
