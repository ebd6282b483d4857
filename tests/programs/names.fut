-- Names that mean something in C, C++, CUDA, their headers or the runtime, and names with primes.

type p' = {a': i32, azq: i64}
type p = {a_b: i32, c: i64}
type p_a = {b: i32, c: i64}

-- Macros, types, words and what generated functions have themselves.
entry main [int] (NULL: [int]i32) (EOF: i32) (apl_ceil_div: i64) (unix: []f32) (int64_t: i64) (size_t: []i64) (M_PI: f32)
    (x': i32) (x_: i32) : ([]i32, []f32, []i64, []i32) =
  let INT64_MAX = map (\v -> v + EOF + x' - x_ + i32.i64 (apl_ceil_div + int)) NULL
  -- Rounded, since the last bits of `exp` are each library's own.
  let float = map (\threadIdx -> threadIdx + M_PI + f32.round (f32.exp threadIdx)) unix
  let malloc = map (+ int64_t) size_t
  in (INT64_MAX, float, malloc, copy NULL)

-- What host code calls its own.
entry host_names (elements: i32) (element: i32) (ctx: i32) (done: []i32) (status: i64) : ([]i32, []i32, i64) =
  let inputs = [elements, element, ctx]
  let outputs = map (+ ctx) done
  let launch = loop args = inputs for tries < i64.min 4 (status % 4 + 4) do map (+ i32.i64 tries) args
  in (launch, outputs, status)

-- In C both look alike.
entry x' (n: i64) : []i64 = map (+ 1) (iota (n % 5 + 5))
entry xzq (n: i64) : []i64 = map (+ 2) (iota (n % 5 + 5))

-- Their kernels would have one name.
entry a_b (c: []i32) : []i32 =
  let c' = map (+ 1) c
  in scan (+) 0 c'
entry a (b_c: []i32) : []i32 =
  let b_c' = map (+ 2) b_c
  in scan (+) 0 b_c'

-- Fields that would make one function of the C API.
entry records (r: p') (s: p) (t: p_a) : p' = r with a' = s.a_b + t.b with azq = s.c - t.c

-- Names of the runtime.
entry shape (q: i32) : []i32 = map (+ q) [q, 1]
entry apl_reserve [apl_entry_main] (apl_fail: [apl_entry_main]i32) (futhark_entry_main: i32) : [apl_entry_main]i32 =
  map (+ futhark_entry_main) apl_fail
entry pthread (create: []i64) : []i64 = map (* 3) create
entry int (double: []f64) : []f64 = map (* 2) double

-- As the variables are called that pass arguments to a kernel.
-- ==
-- entry: arg_0
-- input { [1, 2] [10, 20] 3 5 [100, 200] } output { [547, 1094] }
entry arg_0 [n] (arg_1: [n]i32) (arg_0: [n]i32) (arg_4: i32) (arg_5: i32) (arg_2: [n]i32): [n]i32 =
  map3 (\a b c -> a * arg_4 + b * 4 + c * arg_5 + a * 4) arg_1 arg_0 arg_2
