-- What host code traces: scalars of every kind, arrays in any order, parts of tuples, in loops and branches; kernels
-- trace nothing.
entry numbers (x: i32) (y: f32) : (i32, f32) =
  let a = trace (x + 1)
  let b = #[trace(half)] (y / 2)
  let c = #[trace(flags)] (x > 3, u8.i32 x, f64.f32 y, f16.f32 y, i64.i32 x)
  in (a + i32.u8 c.1, b)

entry arrays [n] [m] (xs: [n][m]i32) : i32 =
  let ys = #[trace(ys)] map (map (+ 1)) xs
  let zs = trace (transpose ys)
  let none = #[trace(none)] take 0 xs
  in length none |> i32.i64 |> (+ zs[0, n - 1])

entry rounds (n: i32) : i32 =
  loop x = 1 for i < n do
    let y = #[trace(y)] (x * 3)
    in if y > 5 then #[trace(large)] (y - 1) else y

entry in_kernel [n] (xs: [n]i32) : [n]i32 = map (\x -> #[trace] (x * 2)) xs

-- Traced twice, printed twice; of a value that nobody uses.
entry twice (x: i32) : i32 =
  let _ = trace x
  in trace x
