-- Arrays of records, tuples and sums at the border of a library: their elements one by one, and arrays of their fields.
type point = {x: f32, y: f32}
type side = #left i32 | #right
type path [n] = {closed: bool, points: [n]point}

entry walk [n] (xs: [n]f32) (ys: [n]f32) : [n]point = map2 (\x y -> {x, y}) xs ys
entry far [n] (ps: [n]point) : f32 = f32.maximum (map (\p -> p.x * p.x + p.y * p.y) ps)
entry labelled [n][k] (ps: [n]point) (rows: [n][k]i64) : [n](point, [k]i64) = zip ps rows
entry sides [n][m] (xs: [n][m]i32) : [n][m]side = map (map (\x -> if x < 0 then #right else #left x)) xs
entry total [n][m] (ss: [n][m]side) : i32 =
  i32.sum (map (\s -> match s case #left x -> x case #right -> 0) (flatten ss))
entry paths [n][k] (ps: [n][k]point) : [n](path [k]) = map (\points -> {closed = true, points}) ps
entry lengths [n][k] (ps: [n](path [k])) : [n]i64 = map (\p -> length p.points) ps
entry nothing (n: i64) : [n]() = replicate n ()

-- Fields of types behind names have names, too.
type ends = {first: point, last: point}
type segment = ends
entry ends_of [n] (ps: [n]point) : segment = {first = ps[0], last = ps[n - 1]}

-- Names of arrays as a whole, and of elements that are such; one of numbers stays what it is.
type points [n] = [n]point
type sides_of [n][m] = [n][m]side
type numbers [n] = [n]f32
entry moved [n] (by: numbers [n]) (ps: points [n]) : points [n] = map2 (\d p -> p with x = p.x + d) by ps
entry grouped [n][k] (ps: [k](points [n])) (kept: {all: points [n]}) : (points [n], [k](points [n])) = (kept.all, ps)
entry same_sides [n][m] (ss: sides_of [n][m]) : sides_of [n][m] = ss
