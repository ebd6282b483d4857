-- The kernels of a function that stays a function have rows of their own, with the sizes of its calls.
-- ARGS: --size n=1000000
-- SHOWS: 8 let ys = .* map +one thread an element
-- SHOWS: 9 in tabulate k .* map +one thread an element
-- SHOWS: to start 5 kernels
#[noinline]
def scaled [n] (xs: [n]i32) (k: i64) : [k]i32 =
  let ys = map (+ i32.i64 n) xs
  in tabulate k (\i -> if n == 0 then 0 else ys[i % n] * 3)

entry main [n] (xs: [n]i32) : ([n]i32, [n]i32) = (scaled xs n, scaled (map (2 *) xs) n)
