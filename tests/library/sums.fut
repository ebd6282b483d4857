-- Sum types at the border of a library: payloads that share places, arrays, records, nested ones, arrays of values.
type~ shape = #circle f32 | #box f32 f32 | #text ([]u8) | #nothing
type side = #left | #right
type found [n] = #all ([n]i64) | #one {at: i64, next: (#left i32 | #right i32)} | #none

entry grow (s: shape) (by: f32) : shape =
  match s
  case #circle r -> #circle (r * by)
  case #box a b -> #box (a * by) (b * by)
  case #text t -> #text (t ++ t)
  case #nothing -> #nothing

entry other (s: side) : side = match s case #left -> #right case #right -> #left

entry search [n] (xs: [n]i64) (x: i64) : found [n] =
  if all (== x) xs
  then #all xs
  else match filter (\i -> xs[i] == x) (indices xs)
       case is -> if length is == 0 then #none
                  else #one {at = is[0], next = if length is > 1 then #right (i32.i64 is[1]) else #left 0}

entry count [n] (f: found [n]) (s: (side, i64)) : i64 =
  match f
  case #all xs -> i64.sum xs + s.1
  case #one {at, next = #left _} -> at
  case #one {at, next = #right i} -> at + i64.i32 i
  case #none -> match s.0 case #left -> -1 case #right -> -2

entry sides [n] (xs: [n]i32) : [n]side = map (\x -> if x < 0 then #left else #right) xs
entry rights [n] (ss: [n]side) : i64 =
  i64.sum (map (\s -> match s case #left -> 0 case #right -> 1) ss)
