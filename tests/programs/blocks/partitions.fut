-- Scans that say where a scatter puts elements: one kernel each on GPUs, of several blocks for the larger sizes.
-- ==
-- entry: halves thirds
-- input { empty([0]i32) } auto output
-- input { [3, -1, 0, 7, -2, 5] } auto output
-- random input { [1000]i32 } auto output
-- random input { [9001]i32 } auto output

-- ==
-- entry: sorted sorted_pairs
-- input { empty([0]u32) } auto output
-- input { [3u32, 1u32, 2u32, 0u32, 4294967295u32] } auto output
-- random input { [1000]u32 } auto output
-- random input { [5003]u32 } auto output

-- ==
-- entry: centred
-- input { [1f32] } output { [0f32] 0f32 }
-- input { [1f32, 2f32, 6f32] } output { [-2f32, -1f32, 3f32] 3f32 }

-- A step of a sort by digits of two bits, in the manner of diku-dk's package of sorts.
def step [n] 't (digit: t -> i8) (xs: [n]t) : [n]t =
  let bins = map digit xs
  let flags = map (\b -> (i64.bool (b == 0), i64.bool (b == 1), i64.bool (b == 2), i64.bool (b == 3))) bins
  let plus4 (a, b, c, d) (e, f, g, h) = (a + e, b + f, c + g, d + h)
  let plus3 (a, b, c) (e, f, g) = (a + e, b + f, c + g)
  let offsets = scan plus4 (0, 0, 0, 0) flags
  let (na, nb, nc) = reduce_comm plus3 (0, 0, 0) (map (\(a, b, c, _) -> (a, b, c)) flags)
  let place b (a, b', c, d) =
    (-1) + a * i64.bool (b == 0) + na * i64.bool (b > 0) + b' * i64.bool (b == 1) + nb * i64.bool (b > 1)
    + c * i64.bool (b == 2) + nc * i64.bool (b > 2) + d * i64.bool (b == 3)
  in scatter (#[scratch] copy xs) (map2 place bins offsets) xs

entry halves [n] (xs: [n]i32) = partition (> 0) xs
entry thirds [n] (xs: [n]i32) = partition2 (> 0) (\x -> x % 3 == 0) xs
entry sorted [n] (xs: [n]u32) : [n]u32 =
  loop xs for i < 16 do step (\x -> i8.u32 ((x >> u32.i32 (2 * i)) & 3)) xs
entry sorted_pairs [n] (xs: [n]u32) : ([n]u32, [n]i64) =
  unzip (loop ps = zip xs (iota n) for i < 4 do step (\(x, _) -> i8.u32 ((x >> u32.i32 (2 * i)) & 3)) ps)

-- Scalars that kernels alone read, one after the other.
entry centred [n] (xs: [n]f32) : ([n]f32, f32) =
  let mean = f32.sum xs / f32.i64 n
  let ys = map (\x -> x - mean) xs
  in (ys, f32.maximum ys)
